"""Features of words as inputs of an exported model."""

from typing import Any

import numpy as np
from torch import Tensor

from wonderland.data.ports import Port, Preprocessing

ODD_WORDS = ("the", "of", "and", "in", "to", "a", "Ada", "London", "2024", "3.14", "U.S.", "naïve", "☃", "北京", "McDonald", "e-mail", "NATO", "x" * 90, ",", ".",
             "was", "born", "works", "where", "What", "who", "John", "New", "York", "Inc", "today", "not")  # fmt: skip

ABOUT_WORDS = (
    "for each word the numbers of its features (`data.text.word_features.features_of`): 2 and the place of the feature's hash, blake2b of "
    "8 bytes, in `keys` of features.safetensors; 1 for one that is not there, 0 after the end"
)


class WordProgram(Preprocessing):
    """Numbers of the features of words (rows, words, `width`), 0 after the end of a row."""

    def __init__(self, width: int, about: str):
        super().__init__((Port("words", "int64", ("rows", "words", width), about=about),))

    def forward(self, *values: Tensor) -> Tensor:
        return values[0]


def odd_words(generator: np.random.Generator, count: int) -> list[str]:
    """Words of many shapes."""
    return [str(word) for word in generator.choice(np.array(ODD_WORDS, object), count)]


def cut(rows: Any) -> dict[str, np.ndarray]:
    """Rows filled up with 0, up to the longest of them."""
    array = rows.numpy()
    used = np.flatnonzero((array != 0).any((0, 2)))
    return {"words": array[:, : int(used[-1]) + 1 if len(used) else 1]}
