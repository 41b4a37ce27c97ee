"""Word vectors from text files, as GloVe, word2vec and fastText write them; only the words that are needed are kept."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.unpack import open_unpacked

WIDEST = 4096  # numbers of a vector
LONGEST_LINE = 1 << 17
BLOCK = 1 << 20


def read_vectors(path: str | Path, words: Mapping[str, int], size: int) -> tuple[Tensor, np.ndarray]:
    """The vectors of words, at the rows that `words` names, and which rows have one: float32 (size, dim), bool (size,).

    A line holds a word and its numbers, between single blanks; a first line with the number of words and of dimensions, as
    word2vec writes it, is skipped. The first vector of a word counts, in its own spelling or else in small letters. The file is read
    line by line, so its size does not matter; without words to look for, only its first lines are.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise WonderlandError(f"There is no file {path} of word vectors.")
    dim, table, has, exact = 0, torch.zeros(0), np.zeros(size, bool), np.zeros(size, bool)
    with open_unpacked(path) as file:
        for number, line in enumerate(_lines(file), 1):
            if len(line) > LONGEST_LINE:
                raise WonderlandError(
                    f"{path}: line {number} is longer than {LONGEST_LINE >> 10} KiB: it holds no word vector."
                )
            cells = line.decode("utf-8", "replace").rstrip().split(" ")
            if number == 1 and len(cells) == 2 and all(cell.isdigit() for cell in cells):
                continue
            if not dim:
                dim = len(cells) - 1
                if not 1 <= dim <= WIDEST or not _is_vector(cells[1:]):
                    raise WonderlandError(
                        f"{path} holds no word vectors: a line is a word and its numbers, between blanks."
                    )
                table = torch.zeros(size, dim)
                if not words:
                    break
            word = " ".join(cells[:-dim])
            row = words.get(word)
            own = row is not None
            row = words.get(word.lower()) if row is None else row
            if row is None or exact[row] or (has[row] and not own):
                continue
            if len(cells) <= dim or not _is_vector(cells[-dim:]):
                raise WonderlandError(
                    f"{path}: line {number} has no {dim} numbers after its word, as the lines before it have."
                )
            table[row] = torch.tensor([float(cell) for cell in cells[-dim:]])
            has[row], exact[row] = True, own
    if not dim:
        raise WonderlandError(f"{path} holds no word vectors: a line is a word and its numbers, between blanks.")
    return table, has


def _lines(file: Any) -> Iterator[bytes]:
    """The lines of a file; one that is too long is cut, and the last."""
    rest = b""
    while data := file.read(BLOCK):
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
        if len(rest) > LONGEST_LINE:
            break
    if rest:
        yield rest


def _is_vector(cells: list[str]) -> bool:
    try:
        return all(np.isfinite(float(cell)) for cell in cells)
    except ValueError:
        return False
