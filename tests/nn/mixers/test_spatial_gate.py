"""The spatial gate of gMLP."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.mixers.spatial_gate import SpatialGate


def test_it_is_its_equation():
    layer = SpatialGate(4, length=6, hidden=5).double()
    nn.init.normal_(layer.weight)
    x = torch.randn(2, 6, 4, dtype=torch.float64)
    first, second = F.gelu(layer.inward(x)).chunk(2, -1)
    gate = torch.einsum("ij,bjd->bid", layer.weight, F.layer_norm(second, (5,))) + layer.bias.view(1, -1, 1)
    assert torch.allclose(layer(x), layer.outward(first * gate))


def test_it_begins_as_a_network_for_each_token():
    layer, x = SpatialGate(4, length=6, hidden=5), torch.randn(2, 6, 4)
    first, _ = F.gelu(layer.inward(x)).chunk(2, -1)
    assert torch.allclose(layer(x), layer.outward(first), atol=1e-3)


def test_a_longer_sequence_is_refused():
    with pytest.raises(WonderlandError) as error:
        SpatialGate(4, length=6)(torch.zeros(1, 7, 4))
    assert str(error.value) == "This SpatialGate mixes at most 6 tokens, not 7: cut the sequence or raise length."
