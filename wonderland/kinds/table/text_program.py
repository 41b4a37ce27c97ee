"""A column of texts as an input of an exported model: how often each known word is in a text, and what an encoder makes of the counts."""

import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.data.columns import Column
from wonderland.data.ports import Port
from wonderland.kinds.table.column_encoding import ColumnEncoding
from wonderland.kinds.table.text_features import BUCKETS, LONGEST_WORD, split_words, whole_words

SIZES = 2  # numbers before the counts of words


class TextColumn(nn.Module):
    """Counts (rows, 2 + words) to what `ColumnEncoding.values` says of a text, and whether it is missing: (rows, 2 + k + 1)."""

    weights: Tensor | None
    projection: Tensor | None

    def __init__(self, encoding: ColumnEncoding):
        super().__init__()
        text = encoding.text
        self.register_buffer("weights", None if text is None else torch.as_tensor(text.weights), persistent=False)
        self.register_buffer("projection", None if text is None else torch.as_tensor(text.projection), persistent=False)

    def forward(self, counts: Tensor) -> Tensor:
        missing = torch.isnan(counts[:, :1])
        x = torch.where(missing, torch.zeros_like(counts), counts).double()
        words = x[:, SIZES:]
        if self.weights is None or self.projection is None:
            directions = torch.log1p(words)
        else:
            there = words > 0
            entries = torch.where(
                there,
                (1 + torch.log(torch.where(there, words, torch.ones_like(words)))) * self.weights,
                torch.zeros_like(words),
            )
            length = entries.square().sum(1, keepdim=True).sqrt()
            directions = (entries / torch.where(length > 0, length, torch.ones_like(length))) @ self.projection
        return torch.cat([torch.log1p(x[:, :SIZES]), directions, missing.double()], 1)


def text_port(encoding: ColumnEncoding) -> Port:
    """The input of a column of texts."""
    count = BUCKETS if encoding.text is None else len(encoding.text.words)
    of = (
        f"each of {count} groups of words (crc32 of a word, modulo {count})"
        if encoding.text is None
        else "each word of words.json"
    )
    about = (
        f"numbers of characters and of words, and then how often {of} is in the text; words are \\w+ in small letters"
        + ("" if encoding.text is None else f", cut at {LONGEST_WORD} characters")
        + "; the first is NaN if the text is missing"
    )
    return Port(encoding.name, "float", ("rows", SIZES + count), about=about)


def text_counts(encoding: ColumnEncoding, column: Column) -> np.ndarray:
    """The array of the input for a column that was read."""
    assert column.levels is not None
    place: Any = None if encoding.text is None else {word: i for i, word in enumerate(encoding.text.words)}
    table = np.zeros((len(column.levels) + 1, SIZES + (BUCKETS if place is None else len(place))), np.float32)
    for row, text in zip(table, column.levels, strict=False):
        words = split_words(text)
        row[:SIZES] = len(text), len(words)
        for word in words if place is not None else whole_words(text):
            code = zlib.crc32(word.encode("utf-8", "surrogatepass")) % BUCKETS if place is None else place.get(word)
            if code is not None:
                row[SIZES + code] += 1
    table[-1, 0] = np.nan
    return table[column.values]


def odd_texts_of(encoding: ColumnEncoding, count: int, generator: np.random.Generator) -> np.ndarray:
    """Texts of known and unknown words, empty and missing ones."""
    known = [*(() if encoding.text is None else encoding.text.words[:200]), "unheardof", "ÜBER", "42", "☃", "a_b"]
    texts = [" ".join(generator.choice(np.array(known, object), generator.integers(1, 60))) for _ in range(count)]
    odd = [None, "!?", "x" * 500, texts[0].upper(), "und so weiter " * 200]
    return np.where(
        generator.random(count) < 0.3, generator.choice(np.array(odd, object), count), np.array(texts, object)
    )
