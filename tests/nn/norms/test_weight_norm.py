"""Weight norm is torch's, and its direction learns at right angles to itself."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.norms.weight_norm import WeightNormLinear, weight_norm


def test_it_begins_as_a_linear_layer_and_is_torchs():
    ours = WeightNormLinear(5).double()
    torch.testing.assert_close(ours.weight, ours.direction)
    torchs = nn.utils.parametrizations.weight_norm(nn.Linear(5, 5).double())
    nn.init.normal_(ours.gain)
    torchs.parametrizations.weight.original0.data = ours.gain.data.unsqueeze(1)
    torchs.parametrizations.weight.original1.data = ours.direction.data
    torchs.bias.data = ours.bias.data
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(ours(x), torchs(x))


def test_the_length_of_the_direction_changes_nothing_and_its_gradient_is_at_right_angles():
    layer = WeightNormLinear(5).double()
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    before = layer(x)
    before.square().sum().backward()
    assert float((layer.direction.grad * layer.direction.detach()).sum(1).abs().max()) < 1e-12
    layer.direction.data *= 3
    torch.testing.assert_close(layer(x), before)


def test_a_gain_for_each_row():
    torch.testing.assert_close(
        weight_norm(torch.randn(3, 2, 4), torch.tensor([1.0, 2, 3])).flatten(1).norm(dim=1), torch.tensor([1.0, 2, 3])
    )
    with pytest.raises(WonderlandError) as error:
        weight_norm(torch.randn(3, 2), torch.ones(2))
    assert str(error.value) == "weight_norm takes a gain for each of the 3 rows, not of shape (2,)."
