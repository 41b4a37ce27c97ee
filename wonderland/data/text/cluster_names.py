"""Names of groups of texts: the words that say most about which group a text belongs to."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from wonderland.data.text.grams import split_tokens

LEAST = 2  # texts that a word has to occur in
RATIO = 2.0  # how much more often it is in texts of the group than in all


def cluster_names(texts: Sequence[str], labels: np.ndarray, *, words: int = 4) -> list[list[str]]:
    r"""The words of each group by their share of what tells it from the others.

    .. math:: s_c(w) = p(w \mid c) \log \frac{p(w \mid c)}{p(w)}

    p counts the texts that have the word, so a long text counts once.

    >>> cluster_names(["red fox", "a red dog", "blue sea", "a blue sky"], np.array([0, 0, 1, 1]), words=1)
    [['red'], ['blue']]
    """
    counts = [Counter[str]() for _ in range(int(labels.max(initial=-1)) + 1)]
    sizes = np.bincount(labels, minlength=len(counts))
    for text, label in zip(texts, labels.tolist(), strict=True):
        counts[label].update({token for token in split_tokens(text) if len(token) > 1 and any(map(str.isalpha, token))})
    total = sum(counts, Counter[str]())
    names = []
    for own, size in zip(counts, sizes, strict=True):
        scores = {
            word: count / size * np.log(count / size * len(texts) / total[word])
            for word, count in own.items()
            if total[word] >= LEAST and count / size >= RATIO * total[word] / len(texts)
        }
        best = sorted(scores, key=lambda word: (-scores[word], word))[:words]
        names.append([word for word in best if scores[word] > 0])
    return names
