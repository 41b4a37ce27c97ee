"""BLEU as in sacreBLEU, with its tokenization and smoothing."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from wonderland.core import WonderlandError, nearest
from wonderland.tasks.text.mt_tokenize import tokenizer
from wonderland.tasks.text.references import check_references

SMOOTHINGS = {"exp": None, "floor": 0.1, "add-k": 1.0, "none": None}


class Bleu(NamedTuple):
    """The score from 0 to 100, with n-gram precisions in percent, brevity penalty and lengths in words."""

    score: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    length: int
    reference_length: int


def corpus_bleu(
    predicted: Any,
    references: Sequence[Any],
    *,
    tokenize: str = "13a",
    smoothing: str = "exp",
    value: float | None = None,
    longest: int = 4,
    lowercase: bool = False,
) -> Bleu:
    r"""Corpus BLEU: matches are summed over all texts before the precisions are computed.

    .. math:: 100 \exp(\min(0, 1 - r / l)) \prod_{n=1}^{N} p_n^{1/N}

    l is the total length of the texts, r that of the closest references; matches of an n-gram are clipped at its largest count
    in one reference.
    - `references`: one reference for each text, or a list of several.
    - `tokenize`: see `mt_tokenize`.
    - `smoothing` of n-gram orders without a match: "exp" halves from one to the next, "floor" replaces the count by `value`
      (0.1), "add-k" adds `value` (1) to the counts of all orders above 1, "none" gives 0.

    Papers: Papineni et al., 2002; Post, 2018. For one text alone see `sentence_bleu`; D2L's variant is `d2l_bleu`.

    >>> round(corpus_bleu(["The cat sat on the mat."], ["The cat sat on a mat."]).score, 2)
    48.89
    """
    return _score(_counts(predicted, references, tokenize, longest, lowercase, "corpus_bleu"), smoothing, value, False)


def sentence_bleu(
    predicted: str,
    references: str | Sequence[str],
    *,
    tokenize: str = "13a",
    smoothing: str = "exp",
    value: float | None = None,
    longest: int = 4,
    lowercase: bool = False,
) -> Bleu:
    """BLEU of one text; n-gram orders longer than the text are ignored. Arguments as for `corpus_bleu`.

    >>> sentence_bleu("a cat", ["a cat", "one cat"]).precisions
    (100.0, 100.0, 0.0, 0.0)
    """
    counts = _counts([predicted], [references], tokenize, longest, lowercase, "sentence_bleu")
    return _score(counts, smoothing, value, True)


class _Counts(NamedTuple):
    length: int
    reference_length: int
    matches: list[int]
    totals: list[int]


def _counts(
    predicted: Any,
    references: Sequence[Any],
    tokenize: str,
    longest: int,
    lowercase: bool,
    name: str,
) -> _Counts:
    if longest < 1:
        raise WonderlandError(f"{name} counts n-grams of at least one word, not {longest}.")
    words = tokenizer(tokenize)
    length, reference_length, matches, totals = 0, 0, [0] * longest, [0] * longest
    for text, own_references in check_references(predicted, references, name):
        prediction, *tokenized = (words(t.lower() if lowercase else t) for t in (text, *own_references))
        length += len(prediction)
        reference_length += min((abs(len(r) - len(prediction)), len(r)) for r in tokenized)[1]
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in tokenized:
            allowed |= _grams(reference, longest)
        for gram, count in _grams(prediction, longest).items():
            totals[len(gram) - 1] += count
            matches[len(gram) - 1] += min(count, allowed[gram])
    return _Counts(length, reference_length, matches, totals)


def _grams(words: list[str], longest: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1))


def _score(counts: _Counts, smoothing: str, value: float | None, effective: bool) -> Bleu:
    if smoothing not in SMOOTHINGS:
        raise WonderlandError(
            f"There is no smoothing {smoothing!r}.{nearest(str(smoothing), SMOOTHINGS)} "
            f"The choices are {', '.join(SMOOTHINGS)}."
        )
    value = SMOOTHINGS[smoothing] if value is None else value
    l, r = counts.length, counts.reference_length
    brevity_penalty = 1.0 if l >= r else math.exp(1 - r / l) if l else 0.0
    precisions, divisor, orders = [0.0] * len(counts.matches), 1.0, len(counts.matches)
    if not any(counts.matches):
        return Bleu(0.0, tuple(precisions), brevity_penalty, l, r)
    for n, (matches, total) in enumerate(zip(counts.matches, counts.totals, strict=True)):
        if smoothing == "add-k" and n:
            matches, total = matches + (value or 0.0), total + (value or 0.0)
        if total == 0:
            break
        if effective:
            orders = n + 1
        if matches:
            precisions[n] = 100.0 * matches / total
        elif smoothing == "exp":
            divisor *= 2
            precisions[n] = 100.0 / (divisor * total)
        elif smoothing == "floor":
            precisions[n] = 100.0 * (value or 0.0) / total
    geometric_mean = math.exp(sum(map(math.log, precisions[:orders])) / orders) if all(precisions[:orders]) else 0.0
    return Bleu(brevity_penalty * geometric_mean, tuple(precisions), brevity_penalty, l, r)
