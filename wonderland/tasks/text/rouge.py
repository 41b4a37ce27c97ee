"""ROUGE: how much of what a person wrote a summary has, word by word or in one thread."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from wonderland.core import WonderlandError
from wonderland.tasks.text.pairs import several

_OTHER = re.compile(r"[^a-z0-9]+")


class Rouge(NamedTuple):
    """Shares from 0 to 1: of the summary that is right, of the reference that is there, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def rouge(predicted: str, references: str | Sequence[str], kinds: Sequence[str] = ("1", "2", "L")) -> dict[str, Rouge]:
    r"""ROUGE of one summary: "1" to "9" for n-grams of so many words, "L" for the longest common subsequence.

    .. math:: R = \frac{|\text{common}|}{|\text{reference}|}, \qquad P = \frac{|\text{common}|}{|\text{summary}|}

    Words are runs of Latin letters and digits in lower case, as in rouge-score; of several references the one with the best
    F1 counts, for each kind. Paper: Lin, 2004.

    >>> rouge("the cat sat", "the cat sat down")["L"]
    Rouge(precision=1.0, recall=0.75, f1=0.8571428571428571)
    """
    if not isinstance(predicted, str):
        raise WonderlandError(f"rouge takes a string to judge, not a {type(predicted).__name__}.")
    mine = _words(predicted)
    others = [_words(text) for text in several(references, 0, "rouge")]
    return {kind: max((_one(mine, other, kind) for other in others), key=lambda found: found.f1) for kind in kinds}


def _one(mine: list[str], other: list[str], kind: str) -> Rouge:
    if kind == "L":
        return _shares(_thread(mine, other), len(mine), len(other))
    if not (isinstance(kind, str) and kind.isdigit() and kind != "0"):
        raise WonderlandError(f"rouge has the kinds '1' to '9' and 'L', not {kind!r}.")
    n = int(kind)
    a, b = (Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (mine, other))
    return _shares((a & b).total(), a.total(), b.total())


def _words(text: str) -> list[str]:
    return _OTHER.sub(" ", text.lower()).split()


def _shares(common: int, mine: int, other: int) -> Rouge:
    precision, recall = common / max(mine, 1), common / max(other, 1)
    return Rouge(precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0)


def _thread(mine: list[str], other: list[str]) -> int:
    """Length of the longest common subsequence, a whole row of the table in one integer (Hyyrö, 2004)."""
    places: dict[str, int] = {}
    for i, word in enumerate(mine):
        places[word] = places.get(word, 0) | 1 << i
    full = (1 << len(mine)) - 1
    row = full
    for word in other:
        hit = row & places.get(word, 0)
        row = ((row + hit) | (row - hit)) & full
    return len(mine) - row.bit_count()
