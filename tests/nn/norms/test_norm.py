"""Norms are torch's, with names that specs can give."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.norms.norm import LayerNorm, RMSNorm, ZeroCentredRMSNorm


def test_layer_norm_is_torchs():
    x = torch.randn(2, 3, 6)
    with torch.no_grad():
        assert torch.equal(LayerNorm(6)(x), nn.LayerNorm(6)(x))
    # What learns goes through a kernel of ours, whose sums have another order.
    x, weight = x.double().requires_grad_(), torch.randn(2, 3, 6, dtype=torch.float64)
    ours, theirs = LayerNorm(6).double(), nn.LayerNorm(6).double()
    found, expected = ours(x), theirs(x)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)
    slopes = [torch.autograd.grad(y, (x, *m.parameters()), weight) for m, y in ((ours, found), (theirs, expected))]
    torch.testing.assert_close(*slopes, rtol=1e-12, atol=1e-12)


def test_rms_norm_is_its_equation():
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    norm = RMSNorm(6).double()
    nn.init.normal_(norm.weight)
    expected = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.weight
    assert torch.allclose(norm(x), expected)


def test_eps_is_positive():
    with pytest.raises(WonderlandError) as error:
        RMSNorm(6, eps=0)
    assert str(error.value) == ("RMSNorm adds a small positive eps, which keeps a token of zeros finite, not 0.")


def test_a_gain_around_1_begins_as_rms_norm_and_adds_its_weight():
    norm, x = ZeroCentredRMSNorm(8), torch.randn(2, 3, 8)
    assert torch.equal(norm(x), RMSNorm(8)(x))
    with torch.no_grad():
        norm.weight += torch.randn(8)
    expected = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * (1 + norm.weight)
    torch.testing.assert_close(norm(x), expected)
