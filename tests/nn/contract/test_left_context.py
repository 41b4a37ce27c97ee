"""The few real tokens before a piece."""

import pytest
import torch

from wonderland.nn.contract.left_context import last_context, next_context, prepend_context


def test_zeros_stand_before_the_first_token():
    x = torch.ones(2, 3, 1)
    assert prepend_context(x, None, 2)[0, :, 0].tolist() == [0, 0, 1, 1, 1]


def test_the_last_real_tokens_of_each_row_are_kept():
    x = torch.arange(1.0, 7).view(2, 3, 1)
    full = prepend_context(x, torch.tensor([[[-2.0], [-1]], [[-4.0], [-3]]]), 2)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert last_context(full, mask, 2)[..., 0].tolist() == [[2, 3], [-3, 4]]
    assert last_context(full, torch.zeros_like(mask), 2)[..., 0].tolist() == [[-2, -1], [-4, -3]]
    assert last_context(full, None, 2)[..., 0].tolist() == [[2, 3], [5, 6]]


def test_a_long_piece_is_not_kept_alive():
    full = prepend_context(torch.randn(1, 100, 4), None, 2)
    assert last_context(full, None, 2).untyped_storage().nbytes() == 2 * 4 * 4


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("t", [1, 2, 7])
def test_the_latest_tokens_reach_back_before_the_piece(t, ragged):
    x, tail = torch.randn(2, t, 3), torch.randn(2, 3, 3)
    mask = torch.arange(t) < torch.tensor([[t], [t // 2]]) if ragged else None
    found = next_context(x, tail, mask, 3)
    for row in range(2):
        real = t if mask is None else int(mask[row].sum())
        assert torch.equal(found[row], torch.cat([tail[row], x[row, :real]])[-3:])
