"""Error rates of transcripts: edits from what was written to what is true, over the length of what is true."""

from collections.abc import Sequence
from typing import Any


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """The smallest number of insertions, deletions and replacements that turn one sequence into the other (Levenshtein).

    >>> edit_distance("kitten", "sitting")
    3
    """
    before = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(second, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]


def character_error_rate(written: Sequence[str], true: Sequence[str]) -> float:
    """Edits of characters over the characters of the true texts, all texts together.

    >>> character_error_rate(["helo wrld"], ["hello world"])
    0.18181818181818182
    """
    return sum(map(edit_distance, written, true)) / max(1, sum(map(len, true)))


def word_error_rate(written: Sequence[str], true: Sequence[str]) -> float:
    """Edits of words over the words of the true texts, all texts together.

    >>> word_error_rate(["helo world"], ["hello world"])
    0.5
    """
    pairs = [(a.split(), b.split()) for a, b in zip(written, true, strict=True)]
    return sum(edit_distance(a, b) for a, b in pairs) / max(1, sum(len(b) for _, b in pairs))
