"""chrF: overlap of letters rather than words, kind to languages that put much into one word."""

import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

from wonderland.core import WonderlandError
from wonderland.tasks.text.pairs import paired

_SIGNS = frozenset(string.punctuation)
Grams = list[Counter[str]]


def chrf(
    predicted: Any,
    references: Sequence[Any],
    *,
    letters: int = 6,
    words: int = 0,
    beta: float | int = 2,
    lowercase: bool = False,
) -> float:
    r"""F score of n-grams of letters, from 0 to 100; with `words=2` it is chrF++.

    .. math:: F_\beta = (1 + \beta^2) \frac{P R}{\beta^2 P + R}

    P and R are means of precision and recall over lengths 1 to `letters` (spaces do not count), and of 1 to `words` words;
    lengths that one side has none of are left out. Of several references the best one counts. Counts are added up over all
    texts first. Equal to sacreBLEU's. Papers: Popović, 2015 and 2017.

    >>> round(chrf(["the cat"], ["the cats"]), 2)
    77.57
    """
    if letters < 1 or words < 0 or not beta > 0:
        raise WonderlandError(
            f"chrf takes letters from 1, words from 0 and a beta above 0, not {letters}, {words} and {beta}."
        )
    totals = [[0, 0, 0] for _ in range(letters + words)]
    for text, own in paired(predicted, references, "chrf"):
        mine, *others = (_grams(one.lower() if lowercase else one, letters, words) for one in (text, *own))
        # The first of equally good ones, as in sacreBLEU.
        best = max((_matches(mine, other) for other in others), key=lambda found: _f(found, beta))
        for total, found in zip(totals, best, strict=True):
            for i in range(3):
                total[i] += found[i]
    return _f(totals, beta)


def _grams(text: str, letters: int, words: int) -> Grams:
    line, found = "".join(text.split()), []
    for n in range(1, letters + 1):
        found.append(Counter(line[i : i + n] for i in range(len(line) - n + 1)))
    apart = _apart(text) if words else []
    for n in range(1, words + 1):
        found.append(Counter(" ".join(apart[i : i + n]) for i in range(len(apart) - n + 1)))
    return found


def _apart(text: str) -> list[str]:
    """Words with one sign at their end, or else at their beginning, cut off."""
    found: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in _SIGNS:
            found += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in _SIGNS:
            found += [word[0], word[1:]]
        else:
            found.append(word)
    return found


def _matches(mine: Grams, other: Grams) -> list[list[int]]:
    return [[a.total() if b else 0, b.total(), (a & b).total()] for a, b in zip(mine, other, strict=True)]


def _f(counts: list[list[int]], beta: float | int) -> float:
    shown = [(right / mine, right / other) for mine, other, right in counts if mine and other]
    if not shown:
        return 0.0
    precision, recall = (sum(values) / len(shown) for values in zip(*shown, strict=True))
    if not precision + recall:
        return 0.0
    return 100 * (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
