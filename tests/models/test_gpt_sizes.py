"""The published sizes of the GPT family have the published numbers of parameters, and are those of transformers."""

import pytest
import torch
import transformers

from wonderland.core import parse_spec
from wonderland.models import Decoder

EXACT = {
    "gpt": 116_534_784, "gpt2_small": 124_439_808, "gpt2_medium": 354_823_168, "gpt2_large": 774_030_080,
    "gpt2_xl": 1_557_611_200,
}  # fmt: skip
MILLIONS = {
    "gpt3_small": 125, "gpt3_medium": 350, "gpt3_large": 760, "gpt3_xl": 1_300, "gpt3_2_7b": 2_700, "gpt3_6_7b": 6_700,
    "gpt3_13b": 13_000, "gpt3_175b": 175_000,
}  # fmt: skip


def count(name):
    with torch.device("meta"):
        return sum(value.numel() for value in getattr(Decoder, name)().parameters())


@pytest.mark.parametrize("name", EXACT)
def test_gpt_and_gpt2_have_the_published_numbers(name):
    assert count(name) == EXACT[name]


@pytest.mark.parametrize("name", MILLIONS)
def test_gpt3_has_the_published_numbers_within_three_percent(name):
    assert abs(count(name) / 1e6 / MILLIONS[name] - 1) < 0.03


def test_gpt2_is_that_of_transformers():
    with torch.device("meta"):
        theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    assert sum(value.numel() for value in theirs.parameters()) == count("gpt2_small")


def test_a_size_is_named_in_text_with_what_differs():
    model = parse_spec("Decoder.gpt2_small(vocab=11, depth=1, dim=24)").build()
    assert (model.vocab, len(model.stack.blocks), model.stack.blocks[0].mixer.heads) == (11, 1, 12)
    assert model(torch.zeros(1, 3, dtype=torch.int64)).shape == (1, 3, 11)
