"""The leaderboard of taggers: F1 and accuracy of a method, and its difference from the run with an interval over sentences."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wonderland.tasks.text.tag_spans import span_scores, spans_of

DRAWS = 1000


def tag_row(
    name: str,
    predicted: Sequence[Sequence[str]],
    ours: Sequence[Sequence[str]] | None,
    truth: Sequence[Sequence[str]],
    spans: bool,
) -> dict[str, Any]:
    """One row of the leaderboard; the difference is that of the run minus this method."""
    key = "f1" if spans else "accuracy"
    counts = _counts(predicted, truth, spans)
    row: dict[str, Any] = {"name": name, "metrics": {key: _rate(counts.sum(0), spans)}}
    if spans:
        row["metrics"]["accuracy"] = _rate(_counts(predicted, truth, False).sum(0), False)
        row["metrics"]["recall"] = float(span_scores(truth, predicted)["recall"])
    if ours is not None:
        own = _counts(ours, truth, spans)
        gap = _rate(own.sum(0), spans) - _rate(counts.sum(0), spans)
        draw = np.random.default_rng(0).integers(0, len(truth), (DRAWS, len(truth)))
        gaps = [_rate(own[rows].sum(0), spans) - _rate(counts[rows].sum(0), spans) for rows in draw]
        low, high = np.quantile(gaps, [0.025, 0.975])
        row["differences"] = {key: {"value": gap, "low": float(low), "high": float(high)}}
    return row


def _counts(predicted: Sequence[Sequence[str]], truth: Sequence[Sequence[str]], spans: bool) -> np.ndarray:
    """True, predicted and shared spans of each sentence (n, 3); of words where tags mark none."""
    if spans:
        pairs = ((set(spans_of(a)), set(spans_of(b))) for a, b in zip(truth, predicted, strict=True))
        return np.array([(len(a), len(b), len(a & b)) for a, b in pairs])
    right = (sum(x == y for x, y in zip(a, b, strict=True)) for a, b in zip(truth, predicted, strict=True))
    return np.array([(len(a), len(a), same) for a, same in zip(truth, right, strict=True)])


def _rate(counts: np.ndarray, spans: bool) -> float:
    total = float(counts[0] + counts[1])
    return 2 * float(counts[2]) / total if total else 0.0


def tag_sentence(rows: Sequence[dict[str, Any]], count: int) -> str:
    """What the leaderboard says, in a sentence; empty where the run is better than every method."""
    key = next(iter(rows[0]["metrics"]))
    ahead = [row["name"] for row in rows if row.get("differences") and row["differences"][key]["low"] <= 0]
    if not ahead:
        return ""
    return (
        f"On these {count:,} test sentences this model is not clearly better than {' and '.join(f'the {name}' for name in ahead)} "
        "(95 % interval of the paired difference): more tagged sentences would help."
    )
