"""Measures of ranked lists: hit rate, NDCG, average precision, reciprocal rank, coverage, novelty."""

import numpy as np


def ranking_measures(
    lists: np.ndarray, relevant: list[set[int]], *, popularity: np.ndarray | None = None, items: int | None = None
) -> dict[str, float]:
    r"""Means over queries of what is known of their first k places.

    .. math:: \text{NDCG} = \frac{\sum_{r} \text{rel}_r / \log_2(r + 1)}{\sum_{r \le \min(k, n)} 1 / \log_2(r + 1)}, \qquad
        \text{AP} = \frac{1}{\min(k, n)} \sum_r \text{rel}_r \frac{\text{hits until } r}{r}, \qquad
        \text{novelty} = -\log_2 p(i)

    `popularity` (items,) are counts; coverage is the share of all items that is in any list.

    Shapes: lists (q, k) of items, best first; relevant, a set for each query.

    >>> ranking_measures(np.array([[1, 2], [3, 4]]), [{2}, {9}])["hit_rate"]
    0.5
    """
    k = lists.shape[1]
    hits = np.array([[item in wanted for item in row] for row, wanted in zip(lists.tolist(), relevant, strict=True)])
    hits = hits.reshape(len(relevant), k)
    count = np.array([max(1, min(k, len(wanted))) for wanted in relevant])
    gain = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(gain)[count - 1]
    precision = np.cumsum(hits, 1) / np.arange(1, k + 1)
    first = np.where(hits.any(1), hits.argmax(1) + 1, np.inf)
    measures = {
        "hit_rate": float(hits.any(1).mean()),
        "ndcg": float((hits @ gain / ideal).mean()),
        "map": float(((precision * hits).sum(1) / count).mean()),
        "mrr": float((1 / first).mean()),
    }
    if items:
        measures["coverage"] = len(np.unique(lists[lists > 0])) / items
    if popularity is not None:
        share = (popularity + 1) / (popularity.sum() + len(popularity))
        measures["novelty"] = float(-np.log2(share[lists]).mean())
    return measures
