"""BLEU as sacreBLEU computes it: comparable across papers, because cutting and smoothing are fixed."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from wonderland.core import WonderlandError, nearest
from wonderland.tasks.text.cut import cutter
from wonderland.tasks.text.pairs import paired

SMOOTHINGS = {"exp": None, "floor": 0.1, "add-k": 1.0, "none": None}


class Bleu(NamedTuple):
    """The score from 0 to 100, and what it is made of: precisions in percent for each length, brevity, lengths."""

    score: float
    precisions: tuple[float, ...]
    brevity: float
    length: int
    reference_length: int


def corpus_bleu(
    predicted: Any,
    references: Sequence[Any],
    *,
    cut: str = "13a",
    smoothing: str = "exp",
    value: float | None = None,
    longest: int = 4,
    lowercase: bool = False,
) -> Bleu:
    r"""BLEU of many texts together: matches are counted over all of them before they are divided.

    .. math:: 100 \exp(\min(0, 1 - r / l)) \prod_{n=1}^{N} p_n^{1/N}

    l is the length of all texts, r that of the closest references; an n-gram matches as often as one reference has it.
    - `references`: one text for each, or a list of several.
    - `cut`: how texts become words, see `cut`. `smoothing` of a length without a match: "exp" halves from one to the next,
      "floor" puts `value` (0.1) for the count, "add-k" adds `value` (1) to all but single words, "none" gives 0.

    Papers: Papineni et al., 2002; Post, 2018. For one text alone see `sentence_bleu`; D2L's own is `d2l_bleu`.

    >>> round(corpus_bleu(["The cat sat on the mat."], ["The cat sat on a mat."]).score, 2)
    48.89
    """
    return _score(_counts(predicted, references, cut, longest, lowercase, "corpus_bleu"), smoothing, value, False)


def sentence_bleu(
    predicted: str,
    references: str | Sequence[str],
    *,
    cut: str = "13a",
    smoothing: str = "exp",
    value: float | None = None,
    longest: int = 4,
    lowercase: bool = False,
) -> Bleu:
    """BLEU of one text, where lengths that it is too short for are left out. Arguments as for `corpus_bleu`.

    >>> sentence_bleu("a cat", ["a cat", "one cat"]).precisions
    (100.0, 100.0, 0.0, 0.0)
    """
    counts = _counts([predicted], [references], cut, longest, lowercase, "sentence_bleu")
    return _score(counts, smoothing, value, True)


class _Counts(NamedTuple):
    length: int
    reference_length: int
    right: list[int]
    all: list[int]


def _counts(
    predicted: Any,
    references: Sequence[Any],
    how: str,
    longest: int,
    lowercase: bool,
    name: str,
) -> _Counts:
    if longest < 1:
        raise WonderlandError(f"{name} counts n-grams of at least one word, not {longest}.")
    words = cutter(how)
    total, close, right, every = 0, 0, [0] * longest, [0] * longest
    for text, own in paired(predicted, references, name):
        mine, *others = (words(one.lower() if lowercase else one) for one in (text, *own))
        total += len(mine)
        close += min((abs(len(other) - len(mine)), len(other)) for other in others)[1]
        wanted: Counter[tuple[str, ...]] = Counter()
        for other in others:
            wanted |= _grams(other, longest)
        for gram, count in _grams(mine, longest).items():
            every[len(gram) - 1] += count
            right[len(gram) - 1] += min(count, wanted[gram])
    return _Counts(total, close, right, every)


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
    brevity = 1.0 if l >= r else math.exp(1 - r / l) if l else 0.0
    found, halves, orders = [0.0] * len(counts.right), 1.0, len(counts.right)
    if not any(counts.right):
        return Bleu(0.0, tuple(found), brevity, l, r)
    for n, (right, every) in enumerate(zip(counts.right, counts.all, strict=True)):
        if smoothing == "add-k" and n:
            right, every = right + (value or 0.0), every + (value or 0.0)
        if every == 0:
            break
        if effective:
            orders = n + 1
        if right:
            found[n] = 100.0 * right / every
        elif smoothing == "exp":
            halves *= 2
            found[n] = 100.0 / (halves * every)
        elif smoothing == "floor":
            found[n] = 100.0 * (value or 0.0) / every
    product = math.exp(sum(map(math.log, found[:orders])) / orders) if all(found[:orders]) else 0.0
    return Bleu(brevity * product, tuple(found), brevity, l, r)
