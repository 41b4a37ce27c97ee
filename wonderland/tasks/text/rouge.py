"""ROUGE: overlap of a summary with references, in n-grams or in the longest common subsequence."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from wonderland.core import WonderlandError
from wonderland.tasks.text.references import reference_list

_SEPARATORS = re.compile(r"[^a-z0-9]+")


class Rouge(NamedTuple):
    """Precision, recall and F1, from 0 to 1."""

    precision: float
    recall: float
    f1: float


def rouge(predicted: str, references: str | Sequence[str], kinds: Sequence[str] = ("1", "2", "L")) -> dict[str, Rouge]:
    r"""ROUGE of one summary: "1" to "9" for n-grams of that order, "L" for the longest common subsequence.

    .. math:: R = \frac{|\text{common}|}{|\text{reference}|}, \qquad P = \frac{|\text{common}|}{|\text{summary}|}

    Words are runs of Latin letters and digits in lower case, as in rouge-score; of several references the one with the best
    F1 counts, for each kind. Paper: Lin, 2004.

    >>> rouge("the cat sat", "the cat sat down")["L"]
    Rouge(precision=1.0, recall=0.75, f1=0.8571428571428571)
    """
    if not isinstance(predicted, str):
        raise WonderlandError(f"rouge takes a string, not a {type(predicted).__name__}.")
    summary = _words(predicted)
    tokenized = [_words(text) for text in reference_list(references, 0, "rouge")]
    return {
        kind: max((_rouge(summary, reference, kind) for reference in tokenized), key=lambda score: score.f1)
        for kind in kinds
    }


def _rouge(summary: list[str], reference: list[str], kind: str) -> Rouge:
    if kind == "L":
        return _score(_longest_common_subsequence(summary, reference), len(summary), len(reference))
    if not (isinstance(kind, str) and kind.isdigit() and kind != "0"):
        raise WonderlandError(f"rouge has the kinds '1' to '9' and 'L', not {kind!r}.")
    n = int(kind)
    a, b = (Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (summary, reference))
    return _score((a & b).total(), a.total(), b.total())


def _words(text: str) -> list[str]:
    return _SEPARATORS.sub(" ", text.lower()).split()


def _score(common: int, summary: int, reference: int) -> Rouge:
    precision, recall = common / max(summary, 1), common / max(reference, 1)
    return Rouge(precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0)


def _longest_common_subsequence(first: list[str], second: list[str]) -> int:
    """Length of the longest common subsequence, with a row of the dynamic programming table as bits of an integer (Hyyrö, 2004)."""
    positions: dict[str, int] = {}
    for i, word in enumerate(first):
        positions[word] = positions.get(word, 0) | 1 << i
    full = (1 << len(first)) - 1
    row = full
    for word in second:
        hit = row & positions.get(word, 0)
        row = ((row + hit) | (row - hit)) & full
    return len(first) - row.bit_count()
