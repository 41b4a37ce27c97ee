"""Pools and heads."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.heads import POOLS, Pool, SequenceHead, TokenHead
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention

MASK = torch.tensor([[True] * 5, [True, True, False, False, False]])


@pytest.mark.parametrize("how", POOLS)
def test_padding_is_not_pooled(how):
    pool, x = Pool(4, how=how), torch.randn(2, 5, 4)
    x[1, 2:] = torch.nan
    pooled = pool(x, MASK)
    assert torch.allclose(pooled[0], pool(x[:1])[0], atol=1e-6)
    assert torch.allclose(pooled[1], pool(x[1:, :2])[0], atol=1e-6)


def test_each_way_of_pooling():
    x = torch.randn(2, 5, 4)
    assert torch.allclose(Pool(4)(x), x.mean(1))
    assert torch.equal(Pool(4, how="max")(x), x.amax(1))
    assert torch.equal(Pool(4, how="first")(x), x[:, 0])
    assert torch.equal(Pool(4, how="last")(x), x[:, -1])
    pool = Pool(4, how="attention")
    weight = (x @ pool.query / 2).softmax(1)
    assert torch.allclose(pool(x), torch.einsum("bt,btd->bd", weight, x), atol=1e-6)


def test_a_row_without_tokens_is_refused():
    mask = torch.tensor([[True], [False]])
    for module in (Pool(4), SequenceHead(4, 2)):
        with pytest.raises(WonderlandError) as error:
            module(torch.zeros(2, 1, 4), mask)
        assert str(error.value) == (
            f"{type(module).__name__} got a mask whose row 1 has no real token: leave empty sequences out of the batch."
        )


def test_an_unknown_pool_gets_the_choices():
    with pytest.raises(WonderlandError) as error:
        SequenceHead(4, 2, pool="men")
    assert str(error.value) == (
        "There is no way to pool called 'men'. Did you mean 'mean'? The choices are mean, max, first, last, attention."
    )


def test_a_wrong_shape_is_told():
    with pytest.raises(WonderlandError) as error:
        TokenHead(4, 2)(torch.zeros(2, 4))
    assert str(error.value) == (
        "TokenHead takes a tensor (batch, time, 4) with at least one row and one position, not one of shape (2, 4)."
    )


def test_a_block_with_a_mean_head_does_not_see_the_order():
    """T10-17."""
    block = Block(8, Attention.spec(causal=False), channel=MLP.spec()).double()
    head = SequenceHead(8, 3, hidden=6).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    order = torch.tensor([4, 2, 0, 1, 3])
    assert torch.allclose(block(x[:, order]), block(x)[:, order])
    assert torch.allclose(head(block(x[:, order])), head(block(x)))


def test_a_token_head_answers_everywhere_but_at_padding():
    head, x = TokenHead(4, 3), torch.randn(2, 5, 4)
    y = head(x, MASK)
    assert torch.allclose(y[0], head.outward(x[0]))
    assert (y[1, 2:] == 0).all()
