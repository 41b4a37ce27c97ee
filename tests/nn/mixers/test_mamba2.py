"""Mamba 2: its heads, and what it cannot be; its equation is compared in tests/ops and tests/checkpoints."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn import Mamba2


def test_heads_are_64_wide_where_they_fit():
    assert Mamba2(64, state_size=4).heads == 2
    assert Mamba2(8, state_size=4).heads == 1


def test_the_state_does_not_grow():
    mixer = Mamba2(8, state_size=4, heads=2)
    assert mixer.state_numbers(10) == mixer.state_numbers(1000) == 3 * (16 + 8) + 16 * 4


def test_the_size_of_chunks_changes_nothing():
    mixer, x = Mamba2(8, state_size=4, heads=2).double(), torch.randn(2, 17, 8, dtype=torch.float64)
    expected = mixer(x)
    for chunk in (1, 5, 17):
        mixer.chunk = chunk
        torch.testing.assert_close(mixer(x), expected)


def test_what_it_cannot_be_is_told():
    with pytest.raises(WonderlandError) as error:
        Mamba2(8, heads=3)
    assert str(error.value) == (
        "Mamba2 cannot be built with dim=8, state_size=64, expand=2, heads=3, groups=1, width=4, chunk=64: "
        "each is at least 1, heads divide expand * dim, and groups heads."
    )
    with pytest.raises(WonderlandError) as error:
        Mamba2(8, limit=[0.5, 0.1])
    assert str(error.value) == "Mamba2 takes as limit the least and the largest step, not [0.5, 0.1]."
