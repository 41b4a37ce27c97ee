"""Disentangled attention against its equation, term by term."""

import math

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn import DisentangledAttention, RelativeTable, Rotary


@pytest.mark.parametrize("shared", [True, False])
def test_scores_are_the_sum_of_three_products(shared):
    mixer = DisentangledAttention(6, heads=1, shared_keys=shared, position=RelativeTable.spec(farthest=3)).double()
    x = torch.randn(1, 5, 6, dtype=torch.float64)
    q, k, v = mixer.project(x)[0].split(6, -1)
    own_keys = (
        mixer.position_key if not shared else lambda r: r @ mixer.project.weight[6:12].T + mixer.project.bias[6:12]
    )
    own_queries = (
        mixer.position_query if not shared else lambda r: r @ mixer.project.weight[:6].T + mixer.project.bias[:6]
    )
    scores = torch.empty(5, 5, dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            r = mixer.position.weight[max(0, min(5, i - j + 3))]
            scores[i, j] = (q[i] @ k[j] + q[i] @ own_keys(r) + k[j] @ own_queries(r)) / math.sqrt(18)
    torch.testing.assert_close(mixer(x)[0], mixer.out(scores.softmax(-1) @ v))
    torch.testing.assert_close(mixer.maps(x)[0, 0], scores.softmax(-1))


def test_what_it_cannot_be_is_told():
    with pytest.raises(WonderlandError) as error:
        DisentangledAttention(8, position=Rotary.spec())
    assert str(error.value) == (
        "DisentangledAttention cannot use nn.Rotary as its position: it takes nn.RelativeTable.spec()."
    )
    with pytest.raises(WonderlandError) as error:
        DisentangledAttention(8, causal=True)
    assert str(error.value) == (
        "DisentangledAttention sees both sides of a token: it cannot be built with causal=True."
    )
    with pytest.raises(WonderlandError) as error:
        DisentangledAttention(8, terms=["p2p"])
    assert str(error.value) == "The terms of DisentangledAttention are c2p and p2c, each at most once, not ['p2p']."
    with pytest.raises(WonderlandError) as error:
        RelativeTable(8, farthest=3, buckets=4)
    assert str(error.value).startswith("RelativeTable cannot be built with dim=8, farthest=3, buckets=4: ")
