"""The residual block: shapes, its start as a shortcut, gradients, and rows that do not see each other."""

import re

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.nn.vision.residual_convolution import ResidualConvolution


@pytest.mark.parametrize(
    ("out", "stride", "size", "expected"), [(4, 1, 7, 7), (6, 1, 7, 7), (6, 2, 7, 4), (4, 2, 8, 4)]
)
def test_shapes(out, stride, size, expected):
    block = ResidualConvolution(4, out, stride=stride)
    assert block(torch.randn(2, 4, size, size + 1)).shape == (2, out, expected, (size + 1 + stride - 1) // stride)


def test_it_starts_as_its_shortcut():
    x = torch.randn(2, 4, 5, 5)
    assert torch.equal(ResidualConvolution(4)(x), x)


def test_every_weight_learns():
    torch.manual_seed(0)
    block = ResidualConvolution(3, 5, stride=2)
    for _ in range(2):
        loss = block(torch.randn(4, 3, 6, 6)).square().mean()
        block.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in block.parameters():
                weight -= 0.1 * weight.grad
    assert all(weight.grad.abs().sum() > 0 for weight in block.parameters())


def test_gradients():
    torch.manual_seed(0)
    block = ResidualConvolution(2, 3, stride=2).double().eval()
    torch.nn.init.normal_(block.conv_out.weight)
    assert torch.autograd.gradcheck(block, torch.randn(2, 2, 5, 5, dtype=torch.float64, requires_grad=True))


def test_rows_are_independent_in_use():
    block = ResidualConvolution(3).double().eval()
    torch.nn.init.normal_(block.conv_out.weight)
    x = torch.randn(5, 3, 6, 6, dtype=torch.float64)
    assert torch.allclose(block(x)[2:3], block(x[2:3]), atol=1e-12)


def test_dropout_is_off_in_use():
    block = ResidualConvolution(3, dropout=0.5)
    torch.nn.init.normal_(block.conv_out.weight)
    x = torch.randn(2, 3, 6, 6)
    assert not torch.equal(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))


def test_spec_and_refusal():
    assert Spec.from_json(ResidualConvolution.spec(dim=4, stride=2).to_json()).build().stride == 2
    sentence = (
        "ResidualConvolution cannot be built with dim=0, out=0, stride=3, dropout=0.0: "
        "sizes are at least 1, stride is 1 or 2, dropout is in [0, 1)."
    )
    with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
        ResidualConvolution(0, stride=3)
