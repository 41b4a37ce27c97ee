"""Quarantine: a broken token is kept from those before it, and not from those after it."""

import math

import pytest
import torch

from wonderland import nn
from wonderland.nn.contract.nonfinite import quarantine, release, spoil


def broken(*places, t=6):
    x = torch.ones(1, t, 2)
    for place, value in places:
        x[0, place, 1] = value
    return x


def test_sound_tokens_pass_untouched():
    x = broken()
    same, found = quarantine(x)
    assert same is x
    assert found is None
    assert release(x, None) is x
    assert spoil(x, None) is x


def test_a_single_token_has_nothing_before_it():
    x = broken((0, math.nan), t=1)
    assert quarantine(x) == (x, None)


def test_broken_tokens_become_zero_and_are_named():
    clean, found = quarantine(broken((2, math.nan), (4, -math.inf)))
    assert found.tolist() == [[False, False, True, False, True, False]]
    assert clean[0, :, 0].tolist() == [1, 1, 0, 1, 0, 1]


def test_what_saw_them_is_marked():
    found = torch.tensor([[False, True, False, False, False, False]])
    y = torch.zeros(1, 6, 2)
    assert release(y, found).isnan()[0, :, 0].tolist() == [False, True, True, True, True, True]
    assert release(y, found, window=2).isnan()[0, :, 0].tolist() == [False, True, True, False, False, False]
    assert release(y, found, window=9).isnan()[0, :, 0].tolist() == [False, True, True, True, True, True]


def test_a_cache_remembers_them():
    found = torch.tensor([[False, True]])
    assert spoil(torch.zeros(1, 5, 2), found).isnan()[0, :, 0].tolist() == [False, False, False, False, True]


@pytest.mark.parametrize("mixer", [nn.Attention(64, window=3), nn.Attention(64), nn.HardAttention(64), nn.AFT(64)])
def test_half_precision_whose_sum_overflows_is_sound(mixer):
    x = torch.full((1, 6, 64), 1500.0, dtype=torch.float16)
    mixer = mixer.half()
    with torch.no_grad():
        for weight in mixer.parameters():
            weight.mul_(0.01)
        assert mixer(x).isfinite().all()
        assert mixer.stream(x)[0].isfinite().all()
