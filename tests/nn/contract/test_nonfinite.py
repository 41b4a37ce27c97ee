"""Tokens that are not finite change nothing before them, and everything after them that sees them."""

import math

import pytest
import torch

from wonderland import nn
from wonderland.nn.contract.nonfinite import mask_nonfinite, restore_nonfinite, restore_state


def tokens(*places, t=6):
    x = torch.ones(1, t, 2)
    for place, value in places:
        x[0, place, 1] = value
    return x


def test_finite_tokens_pass_as_they_are():
    x = tokens()
    same, found = mask_nonfinite(x)
    assert same is x
    assert found is None
    assert restore_nonfinite(x, None) is x
    assert restore_state((x,), None, None) == (x,)


def test_a_single_token_has_nothing_before_it():
    x = tokens((0, math.nan), t=1)
    assert mask_nonfinite(x) == (x, None)


def test_such_tokens_become_zero_and_are_told():
    clean, found = mask_nonfinite(tokens((2, math.nan), (4, -math.inf)))
    assert found.tolist() == [[False, False, True, False, True, False]]
    assert clean[0, :, 0].tolist() == [1, 1, 0, 1, 0, 1]


def test_outputs_that_see_them_are_nan():
    found = torch.tensor([[False, True, False, False, False, False]])
    y = torch.zeros(1, 6, 2)
    assert restore_nonfinite(y, found).isnan()[0, :, 0].tolist() == [False, True, True, True, True, True]
    assert restore_nonfinite(y, found, window=2).isnan()[0, :, 0].tolist() == [False, True, True, False, False, False]
    assert restore_nonfinite(y, found, window=9).isnan()[0, :, 0].tolist() == [False, True, True, True, True, True]


def test_the_entries_of_such_tokens_are_nan_in_a_cache():
    nonfinite, none = torch.tensor([[False, True]]), torch.empty(1, 0, dtype=torch.int64)
    (entries, places) = restore_state((torch.zeros(1, 5, 2), none), nonfinite, None)
    assert entries.isnan()[0, :, 0].tolist() == [False, False, False, False, True]
    assert places is none
    (entries, _) = restore_state((torch.zeros(1, 1, 2), none), nonfinite, None)
    assert entries.isnan()[0, :, 0].tolist() == [True]


def test_with_masks_entries_are_found_by_their_places():
    nonfinite, places = torch.tensor([[True, False, True]]), torch.tensor([[6, 5, 4, -1, 2]])
    (entries, _) = restore_state((torch.zeros(1, 5, 2), places), nonfinite, torch.tensor([4]))
    assert entries.isnan()[0, :, 0].tolist() == [True, False, True, False, False]


def test_a_state_of_fixed_size_is_nan_in_rows_with_such_a_token():
    nonfinite = torch.tensor([[False, False], [False, True]])
    (sums,) = restore_state((torch.zeros(2, 3, 2),), nonfinite, None)
    assert sums.isnan().flatten(1).all(1).tolist() == [False, True]


@pytest.mark.parametrize(
    "mixer",
    [
        nn.Attention(8, heads=2), nn.Attention(8, heads=2, window=3), nn.HardAttention(8), nn.LinearAttention(8),
        nn.AdditiveSelfAttention(8), nn.AFT(8, form="full"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("masked", [False, True])
def test_a_stream_is_nan_from_such_a_token_on_in_all_pieces(mixer, masked):
    x = torch.randn(2, 9, 8)
    mask = torch.ones(2, 9, dtype=torch.bool) if masked else None
    with torch.no_grad():
        clean = mixer(x)
        x[1, 4] = math.nan
        whole, pieces, state = mixer(x, mask), [], None
        for first, last in ((0, 3), (3, 6), (6, 7), (7, 9)):
            y, state = mixer.stream(x[:, first:last], state, None if mask is None else mask[:, first:last])
            pieces.append(y)
    y = torch.cat(pieces, 1)
    assert torch.equal(y.isnan(), whole.isnan())
    assert torch.allclose(y[1, :4], clean[1, :4], atol=1e-6)
    assert torch.allclose(y[0], clean[0], atol=1e-6)
    assert y[1, 4].isnan().all()


@pytest.mark.parametrize("mixer", [nn.Attention(64, window=3), nn.Attention(64), nn.HardAttention(64), nn.AFT(64)])
def test_half_precision_whose_sum_overflows_is_finite(mixer):
    x = torch.full((1, 6, 64), 1500.0, dtype=torch.float16)
    mixer = mixer.half()
    with torch.no_grad():
        for weight in mixer.parameters():
            weight.mul_(0.01)
        assert mixer(x).isfinite().all()
        assert mixer.stream(x)[0].isfinite().all()
