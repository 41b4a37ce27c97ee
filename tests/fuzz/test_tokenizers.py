"""Mutated tokenizers: read or refused in a sentence, within a second and 200 MB, and what is read cuts texts."""

import json

import pytest

from tests.fuzz import corpus
from tests.fuzz.tokenizers import TEXTS, failures
from wonderland.core import WonderlandError
from wonderland.data.text.tokenizer import Tokenizer


@pytest.mark.parametrize(("kind", "path", "value"), corpus.TOKENIZERS)
def test_tokenizers_that_once_failed(kind, path, value):
    saved = json.loads(Tokenizer.train(iter(TEXTS), kind=kind, vocab=300).to_json())
    holder = saved
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    with pytest.raises(WonderlandError):
        Tokenizer.from_json(saved).encode("the fox and a whale")


def test_a_few_mutations():
    assert failures(range(100)) == []


@pytest.mark.slow
def test_many_mutations():
    assert failures(range(10_000, 20_000)) == []
