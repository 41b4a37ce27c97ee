"""Texts as inputs of an exported model: token ids, numbers of features with their weights, or both; and what exports are tried on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from wonderland.data.ports import Feed, Port, Preprocessing, Trial
from wonderland.data.text.gram_program import FEATURE_PORTS, feature_feed
from wonderland.data.text.odd_texts import COUNT, odd_texts

LENGTHS = (3, 12, 60)  # words
BATCHES = (1, 7, COUNT)


class TextProgram(Preprocessing):
    """Token ids (rows, tokens) and features (rows, features), as `reads` of the model says: "tokens", "features" or "both"."""

    def __init__(self, reads: str, length: int, pad: int):
        tokens = Port(
            "tokens", "int64", ("rows", "tokens"), about=f"ids of tokenizer.json, at most {length}, {pad} as padding"
        )
        super().__init__({"tokens": (tokens,), "features": FEATURE_PORTS, "both": (tokens, *FEATURE_PORTS)}[reads])

    def forward(self, *values: Tensor) -> Any:
        return values


def text_trials(encoder: Any) -> Iterator[Trial]:
    """Texts of three lengths, in three batch sizes; each batch is as long as its longest row."""
    words = known_words(encoder.tokenizer)
    for seed, length in enumerate(LENGTHS):
        texts = odd_texts(words, length, seed)
        columns = len(encoder.names)
        source: Any = (
            texts if columns == 1 else [tuple(texts[(i + k) % COUNT] for k in range(columns)) for i in range(COUNT)]
        )
        yield Trial(source, [
            [text_feed(encoder, source[i : i + size]) for i in range(0, COUNT, size)] for size in BATCHES
        ])  # fmt: skip


def known_words(tokenizer: Any) -> list[str]:
    """Some tokens of the vocabulary, as texts."""
    places = np.linspace(0, tokenizer.vocab - 1, min(200, tokenizer.vocab)).astype(int)
    texts = (tokenizer.decode([int(i)]).strip() for i in places)
    return [text for text in texts if text] or ["a"]


def text_feed(encoder: Any, source: Any) -> Feed:
    """The arrays of a batch of texts."""
    dataset = encoder.open(source)
    feed: dict[str, np.ndarray] = {}
    if encoder.reads != "features":
        tokens = encoder.tokens_of(dataset.cells)
        used = (tokens != encoder.pad).any(0).nonzero()
        feed["tokens"] = tokens[:, : int(used.max()) + 1 if len(used) else 1].numpy()
    if encoder.grams is not None:
        feed |= feature_feed(encoder.grams.encode(dataset.cells))
    return feed
