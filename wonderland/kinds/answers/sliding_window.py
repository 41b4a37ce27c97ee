"""The sliding window: an answer without learning, the span with the most words of the question around it."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

LONGEST = 4  # words of an answer


def answer_by_window(asked: Sequence[str], words: Sequence[str], longest: int = LONGEST) -> tuple[int, int]:
    r"""The first and last word of the span whose surroundings share most with the question.

    .. math:: s(w) = \log\Bigl(1 + \frac{1}{\text{count}(w)}\Bigr)

    The window has as many words as the question at either side; words of the question and signs cannot be in the answer. Longer
    spans win among equals. Paper: Richardson et al., 2013.

    >>> answer_by_window("who was born in Ulm".split(), "rain fell . Einstein was born in Ulm .".split())
    (3, 3)
    """
    counts = Counter(word.lower() for word in words)
    wanted = {word.lower() for word in asked}
    weights = np.array([np.log1p(1 / counts[word.lower()]) if word.lower() in wanted else 0.0 for word in words])
    total = np.concatenate([[0.0], np.cumsum(weights)])
    free = [word.lower() not in wanted and any(map(str.isalnum, word)) for word in words]
    best, span = (-1.0, 0), (0, 0)
    for first in range(len(words)):
        for last in range(first, min(first + longest, len(words))):
            if not free[last]:
                break
            begin, end = max(0, first - len(asked)), min(len(words), last + 1 + len(asked))
            score = (float(total[end] - total[begin]), last - first)
            if score > best:
                best, span = score, (first, last)
    return span
