"""The token MLP of MLP-Mixer."""

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.token_mlp import TokenMLP


def test_it_is_an_mlp_over_time():
    layer = TokenMLP(4, length=6, hidden=5).double()
    x = torch.randn(2, 6, 4, dtype=torch.float64)
    expected = layer.outward(F.gelu(layer.inward(x.transpose(1, 2)))).transpose(1, 2)
    assert torch.allclose(layer(x), expected)


def test_a_shorter_sequence_is_one_followed_by_zeros():
    layer = TokenMLP(4, length=6, bias=False)
    x = torch.randn(2, 4, 4)
    assert torch.allclose(layer(x), layer(F.pad(x, (0, 0, 0, 2)))[:, :4], atol=1e-6)


def test_the_order_of_tokens_matters():
    """T11-17."""
    layer, x = TokenMLP(4, length=6), torch.randn(1, 6, 4)
    order = torch.tensor([5, 3, 1, 0, 2, 4])
    assert (layer(x[:, order]) - layer(x)[:, order]).abs().max() > 1e-3


@pytest.mark.parametrize("first", ["mixer", "channel"])
def test_a_mixer_block_in_both_orders(first):
    """E.11.9 to 10 of the book has the channels first, the paper the tokens."""
    block = Block(4, TokenMLP.spec(length=6), channel=MLP.spec(), first=first)
    x = torch.randn(2, 6, 4)
    h = x
    for part, norm in zip(block.parts(), block.norms, strict=True):
        h = h + part(norm(h))
    assert torch.allclose(block(x), h, atol=1e-6)
    assert type(block.parts()[0]).__name__ == ("TokenMLP" if first == "mixer" else "MLP")


def test_a_longer_sequence_is_refused():
    words = "This TokenMLP mixes at most 6 tokens, not 7: cut the sequence or raise length."
    for module in (TokenMLP(4, length=6), Block(4, TokenMLP.spec(length=6))):
        with pytest.raises(WonderlandError) as error:
            module(torch.zeros(1, 7, 4))
        assert str(error.value) == words


def test_it_does_not_stream():
    with pytest.raises(WonderlandError) as error:
        TokenMLP(4, length=6).stream(torch.zeros(1, 2, 4))
    assert str(error.value) == "This TokenMLP is not causal, so it cannot stream: call it on the whole sequence."
