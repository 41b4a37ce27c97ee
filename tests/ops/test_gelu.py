"""GELU: the kernel equals the equation and torch's own, to the left end too."""

import pytest
import torch
import torch.nn.functional as F

from tests.ops.compare import PRECISION, agree
from wonderland.ops.gelu import gelu, reference


@pytest.mark.parametrize("tanh", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 7, 19), (5, 4099)])
def test_all_forms_agree(shape, dtype, tanh):
    x = (3 * torch.randn(shape, dtype=dtype)).requires_grad_()
    forms = [lambda: (reference(x, tanh=tanh),), lambda: (gelu(x, tanh=tanh),)]
    agree([*forms, lambda: (F.gelu(x, approximate="tanh" if tanh else "none"),)], [x], PRECISION[dtype])


@pytest.mark.parametrize("tanh", [False, True])
def test_it_is_as_near_to_the_truth_as_torch(tanh):
    x = torch.linspace(-12, 12, 100_001)
    exact = reference(x.double(), tanh=tanh)
    ours = (gelu(x, tanh=tanh) - exact).abs().max()
    theirs = (F.gelu(x, approximate="tanh" if tanh else "none") - exact).abs().max()
    assert ours <= 1.5 * theirs + 1e-9


def test_ends():
    x = torch.tensor([float("inf"), float("nan"), 1e4, -1e4], requires_grad=True)
    y = gelu(x, tanh=True)
    assert y[0] == float("inf")
    assert y[1].isnan()
    y[2:].sum().backward()
    for found in (y[2:] / 1e4, x.grad[2:]):
        assert torch.allclose(found, torch.tensor([1.0, 0.0]), rtol=0, atol=1e-25)


def test_memory_of_another_order_is_read_rightly():
    x = torch.randn(8, 5, 3).transpose(0, 2)
    assert torch.allclose(gelu(x, tanh=True), F.gelu(x, approximate="tanh"), atol=1e-6)


def test_half_precision_and_second_derivatives_go_elsewhere():
    assert gelu(torch.ones(3, dtype=torch.bfloat16), tanh=True).dtype == torch.bfloat16
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: gelu(x, tanh=True), x)
