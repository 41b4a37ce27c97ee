"""chrF: F score of character n-grams, suited to morphologically rich languages."""

import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

from wonderland.core import WonderlandError
from wonderland.tasks.text.references import check_references

_PUNCTUATION = frozenset(string.punctuation)
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
    r"""F score of character n-grams, from 0 to 100; with `words=2` it is chrF++.

    .. math:: F_\beta = (1 + \beta^2) \frac{P R}{\beta^2 P + R}

    P and R are means of precision and recall over character n-grams of order 1 to `letters` (without spaces) and word n-grams
    of order 1 to `words`; orders without n-grams on one side are ignored. Of several references the best one counts. Counts
    are summed over all texts first. Equal to sacreBLEU's. Papers: Popović, 2015 and 2017.

    >>> round(chrf(["the cat"], ["the cats"]), 2)
    77.57
    """
    if letters < 1 or words < 0 or not beta > 0:
        raise WonderlandError(
            f"chrf takes letters from 1, words from 0 and a beta above 0, not {letters}, {words} and {beta}."
        )
    totals = [[0, 0, 0] for _ in range(letters + words)]
    for text, own_references in check_references(predicted, references, "chrf"):
        prediction, *grams = (_grams(t.lower() if lowercase else t, letters, words) for t in (text, *own_references))
        # Of equally good references the first, as in sacreBLEU.
        best = max((_matches(prediction, reference) for reference in grams), key=lambda counts: _f(counts, beta))
        for total, counts in zip(totals, best, strict=True):
            for i in range(3):
                total[i] += counts[i]
    return _f(totals, beta)


def _grams(text: str, letters: int, words: int) -> Grams:
    characters, grams = "".join(text.split()), []
    for n in range(1, letters + 1):
        grams.append(Counter(characters[i : i + n] for i in range(len(characters) - n + 1)))
    tokens = _split_punctuation(text) if words else []
    for n in range(1, words + 1):
        grams.append(Counter(" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)))
    return grams


def _split_punctuation(text: str) -> list[str]:
    """Words with one punctuation mark split off: at the end, or else at the beginning."""
    tokens: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            tokens += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            tokens += [word[0], word[1:]]
        else:
            tokens.append(word)
    return tokens


def _matches(prediction: Grams, reference: Grams) -> list[list[int]]:
    """For each order: n-grams of the prediction, of the reference, and in both."""
    return [[a.total() if b else 0, b.total(), (a & b).total()] for a, b in zip(prediction, reference, strict=True)]


def _f(counts: list[list[int]], beta: float | int) -> float:
    orders = [(common / mine, common / other) for mine, other, common in counts if mine and other]
    if not orders:
        return 0.0
    precision, recall = (sum(values) / len(orders) for values in zip(*orders, strict=True))
    if not precision + recall:
        return 0.0
    return 100 * (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
