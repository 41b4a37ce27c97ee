"""Maxout units."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.channel.maxout import Maxout


def test_each_unit_is_the_largest_of_its_pieces():
    layer = Maxout(6, pieces=3).double()
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    weights, biases = layer.inward.weight.split(6), layer.inward.bias.split(6)
    pieces = [x @ w.T + b for w, b in zip(weights, biases, strict=True)]
    assert torch.allclose(layer(x), torch.maximum(torch.maximum(pieces[0], pieces[1]), pieces[2]))


def test_one_piece_is_linear():
    layer, x = Maxout(6, pieces=1), torch.randn(1, 4, 6)
    assert torch.equal(layer(x), layer.inward(x))


def test_a_piece_of_zeros_makes_a_relu():
    layer, x = Maxout(6, pieces=2, bias=False), torch.randn(1, 4, 6)
    with torch.no_grad():
        layer.inward.weight[:6] = 0
    assert torch.allclose(layer(x), torch.relu(x @ layer.inward.weight[6:].T), atol=1e-6)


def test_hidden_units_are_brought_back():
    layer, x = Maxout(6, hidden=5), torch.randn(1, 4, 6)
    assert layer.outward.weight.shape == (6, 5)
    assert layer(x).shape == x.shape


def test_no_pieces_is_refused():
    with pytest.raises(WonderlandError) as error:
        Maxout(6, pieces=0)
    assert str(error.value) == "Maxout takes the largest of at least one piece, not of 0."
