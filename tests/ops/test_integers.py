"""Arithmetic with few bits: rounding errors are at most half a step, and products are those of the rounded numbers."""

import pytest
import torch

from wonderland import WonderlandError
from wonderland.ops.integers import quantise, quantised_linear


@pytest.mark.parametrize(("bits", "group"), [(8, None), (4, 16), (4, 8), (2, 4)])
def test_rounding_and_products(bits, group):
    torch.manual_seed(0)
    weight, x = torch.randn(6, 32), torch.randn(5, 32)
    packed = quantise(weight, bits=bits, group=group)
    steps = packed.scales.repeat_interleave(group or 32, 1)
    assert ((packed.decoded() - weight).abs() <= 0.5001 * steps).all()
    inputs = quantise(x, bits=8, group=group or 32)
    assert torch.allclose(quantised_linear(x, packed), inputs.decoded() @ packed.decoded().T, atol=1e-5)
    assert packed.bytes == 6 * 32 * bits // 8 + 2 * packed.scales.numel()


def test_smaller_groups_have_smaller_errors():
    torch.manual_seed(0)
    weight = torch.randn(16, 128)
    errors = [float((quantise(weight, bits=4, group=g).decoded() - weight).norm()) for g in (128, 32, 8)]
    assert errors == sorted(errors, reverse=True)
    with pytest.raises(WonderlandError, match=r"not from \(16, 128\) in groups of 7\.$"):
        quantise(weight, group=7)
