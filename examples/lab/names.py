"""Names, letter by letter: the data of makemore, its splits and its contexts."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from examples.lab.files import find
from wonderland.core import WonderlandError

ALPHABET = ".abcdefghijklmnopqrstuvwxyz"  # the dot, number 0, begins and ends every name
NUMBERS = {letter: number for number, letter in enumerate(ALPHABET)}


class Splits(NamedTuple):
    """Four fifths to learn from, a tenth to choose by, a tenth to report."""

    train: list[str]
    dev: list[str]
    test: list[str]


def load(path: str | Path | None = None) -> list[str]:
    """The names of names.txt in the order of the file; `path` is the file, or a folder that holds it."""
    words = find("names.txt", path).read_text(encoding="utf-8").split()
    for row, word in enumerate(words, 1):
        if wrong := set(word) - set(ALPHABET[1:]):
            raise WonderlandError(f"Name {row}, {word!r}, has {min(wrong)!r} in it: only the letters a to z are known.")
    if not words:
        raise WonderlandError(f"{find('names.txt', path)} holds no name.")
    return words


def splits(words: Sequence[str], seed: int = 42) -> Splits:
    """Shuffled and cut as makemore does it: 80, 10 and 10 percent.

    >>> [len(part) for part in splits(["anna", "bob"] * 50)]
    [80, 10, 10]
    """
    mixed = list(words)
    random.Random(seed).shuffle(mixed)
    first, second = int(0.8 * len(mixed)), int(0.9 * len(mixed))
    return Splits(mixed[:first], mixed[first:second], mixed[second:])


def contexts(words: Sequence[str], size: int) -> tuple[Tensor, Tensor]:
    """For each letter and each end of a name the `size` letters before it: (n, size), and the letter itself: (n).

    >>> x, y = contexts(["ab"], 3)
    >>> ["".join(ALPHABET[i] for i in row) + ALPHABET[k] for row, k in zip(x.tolist(), y.tolist())]
    ['...a', '..ab', '.ab.']
    """
    before, after = [], []
    for word in words:
        context = [0] * size
        for number in [*(NUMBERS[letter] for letter in word), 0]:
            before.append(context)
            after.append(number)
            context = [*context[1:], number][-size:] if size else []
    return torch.tensor(before, dtype=torch.long).reshape(len(after), size), torch.tensor(after)
