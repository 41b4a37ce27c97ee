"""MONet: polynomials instead of activations."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.channel.monet import MONet


def test_it_is_its_equation():
    layer = MONet(6, hidden=5, rank=2).double()
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    a, d, low = layer.inward.weight.split([5, 5, 2])
    hidden = (x @ a.T) * (x @ low.T @ layer.lift.weight.T) + x @ d.T
    assert torch.allclose(layer(x), hidden @ layer.outward.weight.T)


def test_it_is_a_polynomial_of_degree_two():
    """T11-16: third differences along any line vanish, second ones do not."""
    layer = MONet(6).double()
    start, way = torch.randn(2, 1, 1, 6, dtype=torch.float64)
    values = torch.cat([layer(start + step * way) for step in range(4)])
    assert values.diff(dim=0).diff(dim=0).abs().max() > 1e-3
    assert values.diff(dim=0).diff(dim=0).diff(dim=0).abs().max() < 1e-12


def test_shift_takes_half_the_features_from_the_token_before():
    layer, plain = MONet(6, shift=True), MONet(6)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(2, 4, 6)
    moved = torch.cat([torch.cat([torch.zeros(2, 1, 3), x[:, :-1, :3]], 1), x[..., 3:]], -1)
    assert torch.allclose(layer(x), plain(moved), atol=1e-6)


def test_only_the_shifted_form_has_a_state():
    assert MONet(6).start(2) == ()
    assert [tuple(entry.shape) for entry in MONet(6, shift=True).start(2)] == [(2, 1, 6), (2,)]
    assert MONet(6).stream(torch.randn(1, 2, 6))[1] == ()


def test_a_rank_of_nothing_is_refused():
    with pytest.raises(WonderlandError) as error:
        MONet(6, rank=0)
    assert str(error.value) == "MONet needs a rank of at least 1, not 0."
