"""Norms are torch's, with names that specs can give."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.norm import LayerNorm, RMSNorm


def test_layer_norm_is_torchs():
    x = torch.randn(2, 3, 6)
    assert torch.allclose(LayerNorm(6)(x), nn.LayerNorm(6)(x), atol=1e-6)


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
