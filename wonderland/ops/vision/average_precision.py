"""Average precision of boxes as COCO counts it, and the mean IoU of masks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.ops.vision.boxes import iou

THRESHOLDS = tuple(np.linspace(0.5, 0.95, 10).tolist())
RECALLS = np.linspace(0, 1, 101)


def average_precision(
    predicted: Sequence[dict[str, Tensor]], truth: Sequence[dict[str, Tensor]], *, thresholds: Sequence[float] = THRESHOLDS,
    most: int = 100,
) -> dict[str, Any]:  # fmt: skip
    r"""The mean over classes of the area under the precision-recall curve, at each IoU threshold.

    For each image, `predicted` has boxes (n, 4), scores (n,) and classes (n,), `truth` boxes (m, 4) and classes (m,). Boxes of a
    class are matched by falling score, each with the best true box that is left and overlaps enough; precision is read at 101
    recalls, as the largest at that recall or beyond. At most `most` boxes of a class count in an image.

    Gives `ap` (mean over thresholds and classes), `ap50`, `ap75`, `by_class` and `by_threshold`. Classes without a true box do
    not count. Paper: Lin et al., 2014 (COCO).

    >>> box = torch.tensor([[0.0, 0.0, 4.0, 4.0]])
    >>> truth = [{"boxes": box, "classes": torch.tensor([0])}]
    >>> average_precision([{**truth[0], "scores": torch.tensor([0.9])}], truth)["ap"]
    1.0
    """
    labels = sorted({int(label) for row in truth for label in row["classes"]})
    table = np.full((len(thresholds), len(labels)), np.nan)
    for column, label in enumerate(labels):
        table[:, column] = _curves(predicted, truth, label, thresholds, most).mean(1)
    means = table.mean(1) if labels else np.full(len(thresholds), np.nan)
    at = {round(threshold, 6): float(mean) for threshold, mean in zip(thresholds, means, strict=True)}
    return {
        "ap": float(table.mean()) if labels else float("nan"),
        "ap50": at.get(0.5),
        "ap75": at.get(0.75),
        "by_class": {label: float(value) for label, value in zip(labels, table.mean(0), strict=True)},
        "by_threshold": at,
    }


def _curves(predicted: Any, truth: Any, label: int, thresholds: Sequence[float], most: int) -> np.ndarray:
    """Precision at 101 recalls for each threshold: (thresholds, 101)."""
    scores, hits, total = [], [], 0
    for guess, real in zip(predicted, truth, strict=True):
        boxes = real["boxes"][real["classes"] == label].double()
        mine = guess["classes"] == label
        order = torch.argsort(guess["scores"][mine].double(), descending=True, stable=True)[:most]
        total += len(boxes)
        scores.append(guess["scores"][mine].double()[order].numpy())
        hits.append(_matched(iou(guess["boxes"][mine].double()[order], boxes).numpy(), thresholds))
    score, hit = np.concatenate(scores), np.concatenate(hits, 1)
    order = np.argsort(-score, kind="mergesort")
    hit = hit[:, order]
    right, wrong = np.cumsum(hit, 1), np.cumsum(~hit, 1)
    recall = right / total
    precision = right / np.maximum(right + wrong, np.spacing(1))
    # The largest precision at each recall or beyond.
    precision = np.maximum.accumulate(precision[:, ::-1], 1)[:, ::-1]
    rows = []
    for row in range(len(thresholds)):
        place = np.searchsorted(recall[row], RECALLS, side="left")
        inside = place < len(score)
        last = np.minimum(place, len(score) - 1)
        rows.append(np.where(inside, precision[row][last], 0.0) if len(score) else np.zeros(len(RECALLS)))
    return np.stack(rows)


def precision_at_recalls(
    predicted: Sequence[dict[str, Tensor]], truth: Sequence[dict[str, Tensor]], label: int, *, threshold: float = 0.5
) -> np.ndarray:
    """The precision of one class at the recalls 0, 0.01, ..., 1: (101,). See `average_precision`, whose value is their mean."""
    return _curves(predicted, truth, label, [threshold], 100)[0]


def _matched(overlap: np.ndarray, thresholds: Sequence[float]) -> np.ndarray:
    """Which of the boxes of an image, best first, hit a true one of their own: (thresholds, n)."""
    levels = np.minimum(np.asarray(thresholds), 1 - 1e-10)
    hit = np.zeros((len(levels), len(overlap)), bool)
    if not overlap.shape[1]:
        return hit
    free = np.ones((len(levels), overlap.shape[1]), bool)
    rows = np.arange(len(levels))
    for index, line in enumerate(overlap):
        # Of equal overlaps the last counts, as in pycocotools.
        open_ = np.where(free, line, -1.0)
        best = overlap.shape[1] - 1 - open_[:, ::-1].argmax(1)
        hit[:, index] = open_[rows, best] >= levels
        free[rows[hit[:, index]], best[hit[:, index]]] = False
    return hit


def mean_iou(predicted: Tensor, truth: Tensor, classes: int, *, ignore: int = 255) -> dict[str, Any]:
    r"""The IoU of each class over all pixels, and the mean over classes that occur.

    .. math:: \mathrm{IoU}_c = \frac{n_{cc}}{\sum_k n_{ck} + \sum_k n_{kc} - n_{cc}}

    n counts pixels of a class that were given a class; pixels of class `ignore` do not count. Shapes: whole numbers (b, h, w)
    twice.

    >>> mean_iou(torch.tensor([[[0, 1]]]), torch.tensor([[[0, 0]]]), 2)["mean"]
    0.25
    """
    valid = truth != ignore
    table = torch.bincount(truth[valid].long() * classes + predicted[valid].long(), minlength=classes**2)
    table = table.view(classes, classes).double()
    both, union = table.diagonal(), table.sum(0) + table.sum(1) - table.diagonal()
    ratio = torch.where(union > 0, both / union.clamp_min(1), torch.nan)
    return {
        "mean": float(ratio.nanmean()),
        "by_class": ratio.tolist(),
        "accuracy": float(both.sum() / table.sum().clamp_min(1)),
    }
