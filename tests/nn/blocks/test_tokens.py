"""Class tokens and registers."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.tokens import ClassToken, Registers
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention

MASK = torch.tensor([[True] * 4, [True, True, False, False]])


@pytest.mark.parametrize("position", ["first", "last"])
@pytest.mark.parametrize("mask", [None, MASK])
def test_what_is_added_can_be_taken_apart(position, mask):
    extra = Registers(3, count=2, position=position)
    x = torch.randn(2, 4, 3)
    longer, wider = extra(x, mask)
    own, added = extra.split(longer, mask)
    assert longer.shape == (2, 6, 3)
    assert torch.equal(added, extra.tokens.expand(2, 2, 3))
    assert torch.equal(own if mask is None else own[mask], x if mask is None else x[mask])
    assert wider is None if mask is None else wider.sum(1).tolist() == [6, 4]


def test_last_means_after_the_real_tokens_of_each_row():
    token = ClassToken(3)
    x = torch.randn(2, 4, 3)
    x[1, 2:] = torch.nan
    longer, mask = token(x, MASK)
    assert torch.equal(longer[0, 4], token.tokens[0])
    assert torch.equal(longer[1, 2], token.tokens[0])
    assert mask.tolist() == [[True] * 5, [True, True, True, False, False]]


def test_no_registers_change_nothing():
    """T10-20."""
    x = torch.randn(2, 4, 3)
    for position in ("first", "last"):
        none = Registers(3, count=0, position=position)
        longer, mask = none(x, MASK)
        assert torch.equal(longer, x)
        assert torch.equal(mask, MASK)
        own, added = none.split(longer)
        assert torch.equal(own, x)
        assert added.shape == (2, 0, 3)


@pytest.mark.parametrize("position", ["first", "last"])
def test_a_class_token_does_not_see_the_order(position):
    """T10-19."""
    token = ClassToken(8, position=position).double()
    block = Block(8, Attention.spec(causal=False), channel=MLP.spec()).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)

    def answer(x):
        return token.split(block(token(x)[0]))[1]

    assert torch.allclose(answer(x[:, torch.tensor([3, 0, 4, 1, 2])]), answer(x))


def test_the_tokens_learn():
    token = ClassToken(3)
    token(torch.randn(2, 4, 3), MASK)[0].nan_to_num().square().sum().backward()
    assert token.tokens.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Registers(3, count=-1), "Registers adds 0 or more tokens, not -1."),
        (lambda: ClassToken(3, position="end"), "ClassToken puts its tokens 'first' or 'last', not 'end'."),
        (
            lambda: ClassToken(3)(torch.zeros(2, 3)),
            "ClassToken takes a sequence (batch, time, 3), of one token at least beside its own, not (2, 3).",
        ),
        (
            lambda: ClassToken(3).split(torch.zeros(2, 1, 3)),
            "ClassToken takes a sequence (batch, time, 3), of one token at least beside its own, not (2, 1, 3).",
        ),
    ],
)
def test_what_does_not_fit_is_told(build, words):
    with pytest.raises(WonderlandError) as error:
        build()
    assert str(error.value) == words
