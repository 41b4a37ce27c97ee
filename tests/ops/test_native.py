"""Kernels: used where they can be, and done without where not."""

import pytest
import torch

from wonderland import nn
from wonderland.ops import native


def test_kernels_take_numbers_of_one_type_on_the_cpu():
    single, double = torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    assert native.usable("scan", single, None, single)
    assert not native.usable("scan", single, double)
    assert not native.usable("scan", single.half())
    assert not native.usable("scan", single.to("meta"))


@pytest.mark.parametrize("kind", ["Attention", "MLP", "LayerNorm", "GRU", "Mamba", "RWKV"])
def test_many_slopes_at_once_go_through_equations(kind):
    module = getattr(nn, kind)(8).double()
    x = torch.randn(4, 33, 8, dtype=torch.float64, requires_grad=True)
    y = module(x)
    many = torch.randn(3, *y.shape, dtype=torch.float64)
    (found,) = torch.autograd.grad(y, x, many, is_grads_batched=True, retain_graph=True)
    for one, slope in zip(found, many, strict=True):
        assert torch.allclose(one, torch.autograd.grad(y, x, slope, retain_graph=True)[0], atol=1e-12)
