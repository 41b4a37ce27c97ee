"""Mutated tokenizers: read or refused in a sentence."""

import json

import pytest

from tests.fuzz import corpus
from wonderland.core import WonderlandError
from wonderland.data.text.tokenizer import Tokenizer

TEXTS = ["the fox ran over the hill and back home", "a small town by the sea", "42 boats"] * 5


@pytest.mark.parametrize(("kind", "path", "value"), corpus.TOKENIZERS)
def test_tokenizers_that_once_failed(kind, path, value):
    saved = json.loads(Tokenizer.train(iter(TEXTS), kind=kind, vocab=300).to_json())
    holder = saved
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    with pytest.raises(WonderlandError):
        Tokenizer.from_json(saved).encode("the fox and a whale")
