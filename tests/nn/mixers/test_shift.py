"""Token shift."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.shift import Shift


def test_groups_move_one_token_each_way():
    x = torch.arange(1.0, 10).view(1, 3, 3)
    assert Shift(3, causal=False)(x)[0].tolist() == [[0, 2, 6], [1, 5, 9], [4, 8, 0]]


def test_the_causal_form_moves_only_from_the_past():
    x = torch.arange(1.0, 7).view(1, 3, 2)
    assert Shift(2)(x)[0].tolist() == [[0, 2], [1, 4], [3, 6]]


def test_a_row_ends_where_its_tokens_end():
    x = torch.randn(2, 4, 3)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    x[1, 2:] = torch.nan
    assert torch.equal(Shift(3, causal=False)(x, mask)[1, :2], Shift(3, causal=False)(x[1:, :2])[0])


def test_the_state_is_the_last_real_token():
    x = torch.randn(2, 4, 4)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    _, (last, count) = Shift(4).stream(x, None, mask)
    assert torch.equal(last[:, 0], torch.stack([x[0, 3, :2], x[1, 1, :2]]))
    assert count.tolist() == [4, 2]


@pytest.mark.parametrize(("causal", "groups"), [(True, 2), (False, 3)])
def test_too_few_features_are_refused(causal, groups):
    with pytest.raises(WonderlandError) as error:
        Shift(1, causal=causal)
    assert str(error.value) == f"Shift moves {groups} groups of features, so dim is at least {groups}, not 1."
