"""Latent attention: any number of tokens become a few."""

import math

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.latent_attention import LatentAttention


def test_it_is_cross_attention_from_its_latents():
    block = LatentAttention(8, latents=3, heads=2)
    x = torch.randn(2, 9, 8)
    assert torch.allclose(block(x), block.cross(block.latents.expand(2, 3, 8), x), atol=1e-6)


def test_any_length_becomes_the_same_number_of_tokens():
    block = LatentAttention(8, latents=3)
    assert {block(torch.randn(2, t, 8)).shape for t in (1, 5, 40)} == {(2, 3, 8)}


def test_padding_changes_nothing():
    block = LatentAttention(8, latents=3).double()
    x, mask = torch.randn(2, 6, 8, dtype=torch.float64), torch.arange(6) < torch.tensor([[6], [2]])
    y = block(x.masked_fill(~mask.unsqueeze(-1), math.nan), mask)
    assert torch.allclose(y[:1], block(x[:1]))
    assert torch.allclose(y[1:], block(x[1:, :2]))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: LatentAttention(8, latents=0),
            "LatentAttention cannot be built with latents=0: it is a whole number from 1.",
        ),
        (
            lambda: LatentAttention(8)(torch.zeros(1, 2, 8), torch.tensor([[False, False]])),
            "LatentAttention got a mask whose row 0 has no real token: leave empty sequences out of the batch.",
        ),
        (
            lambda: LatentAttention(8)(torch.zeros(1, 2, 7)),
            "LatentAttention takes a tensor (batch, time, 8) with at least one row and one position, "
            "not one of shape (1, 2, 7).",
        ),
    ],
)
def test_errors_say_what_to_do(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
