"""Token ids as inputs of an exported language model, and the texts that exports are tried on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from wonderland.data.ports import Feed, Port, Preprocessing, Trial

LENGTHS = (2, 9, 40)  # tokens
COUNT = 12
BATCHES = (1, 5, COUNT)


class TokenProgram(Preprocessing):
    """Tokens (rows, time), padded at the right with anything, and the number of real ones in each row."""

    model_inputs = 1

    def __init__(self, frame: list[int]):
        begin = f", with {frame} at the beginning" if frame else ""
        tokens = Port("tokens", "int64", ("rows", "time"), about=f"ids of tokenizer.json{begin}; padding at the right")
        super().__init__((tokens, Port("lengths", "int64", ("rows",), about="the number of real tokens of each row")))

    def forward(self, *values: Tensor) -> Any:
        return values


def language_trials(encoder: Any, limit: int | None = None) -> Iterator[Trial]:
    """Texts of known tokens of three lengths, odd ones among the longest, in three batch sizes."""
    tokenizer, generator = encoder.tokenizer, np.random.default_rng(0)
    for length in LENGTHS:
        texts = []
        for _ in range(COUNT):
            ids = generator.integers(0, tokenizer.vocab, generator.integers(max(1, length // 2), length + 1))
            texts.append(tokenizer.decode(ids.tolist()) or "a")
        if length == LENGTHS[-1]:
            texts[:3] = ["Zürich naïve ☃ 北京", "!?", "AAAA aaaa 1e308"]
        rows = [[*encoder.frame, *tokenizer.encode(text)][: limit or None] for text in texts]
        kept = [i for i, ids in enumerate(rows) if len(ids) > 0 and (limit is None or len(ids) < limit)]
        texts, rows = [texts[i] for i in kept], [rows[i] for i in kept]
        if texts:
            divisions = [[token_feed(rows[i : i + size]) for i in range(0, len(rows), size)] for size in BATCHES]
            yield Trial(texts, divisions)


def token_feed(rows: list[list[int]]) -> Feed:
    """Rows of tokens as one array, filled up at the right."""
    tokens = np.zeros((len(rows), max(2, *map(len, rows), 2)), np.int64)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = ids
    return {"tokens": tokens, "lengths": np.array([len(ids) for ids in rows], np.int64)}
