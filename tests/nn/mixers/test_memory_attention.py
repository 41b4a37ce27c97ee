"""A memory layer: attention over parameters, and the MLP hidden in it."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.memory_attention import MemoryAttention


def test_it_is_the_equation():
    mixer = MemoryAttention(6, slots=9, key_dim=4)
    x = torch.randn(2, 5, 6)
    scores = x @ mixer.query.weight.t() @ mixer.keys.t() / 2
    assert torch.allclose(mixer(x), scores.softmax(-1) @ mixer.values, atol=1e-6)
    assert torch.allclose(mixer.weights(x).sum(-1), torch.ones(2, 5))


def test_without_projection_scale_and_softmax_it_is_an_mlp():
    mixer = MemoryAttention(6, slots=9, project=False, scale=1.0, activation=torch.relu)
    x = torch.randn(2, 5, 6)
    first, second = torch.nn.Linear(6, 9, bias=False), torch.nn.Linear(9, 6, bias=False)
    first.load_state_dict({"weight": mixer.keys})
    second.load_state_dict({"weight": mixer.values.t()})
    assert torch.allclose(mixer(x), second(torch.relu(first(x))), atol=1e-6)


def test_the_state_is_empty():
    mixer = MemoryAttention(6)
    assert mixer.keys.shape == (24, 6)
    assert mixer.stream(torch.randn(1, 2, 6))[1] == ()
    assert mixer.state_numbers(100) == 0


def test_sizes_that_do_not_fit_are_told():
    with pytest.raises(WonderlandError) as error:
        MemoryAttention(6, slots=3, key_dim=4, project=False)
    assert str(error.value) == (
        "MemoryAttention cannot be built with dim=6, slots=3, key_dim=4, project=False: "
        "sizes are whole numbers from 1, and without a projection key_dim is dim."
    )
