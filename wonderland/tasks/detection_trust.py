"""Trust of detection and segmentation: calibrated scores, and a threshold that bounds the share that is missed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.vision import iou
from wonderland.tasks.task import Trust
from wonderland.trust import check_level, controlled_threshold
from wonderland.trust.calibration import binned, summarise
from wonderland.trust.scaling import fit_logistic

THRESHOLDS = np.round(np.concatenate([np.linspace(0.01, 0.1, 10), np.linspace(0.12, 0.98, 44)]), 4)
OVERLAP = 0.5


class BoxTrust(Trust):
    r"""Scores as chances that a box is right, and what share of true boxes is missed at each threshold.

    .. math:: p = \sigma(a \log\tfrac{s}{1-s} + b)

    `risks` (k,) are the mean shares that are missed of the boxes of `rows` calibration images when boxes with a score below
    `THRESHOLDS` are left out. `best` is the threshold with the best F1 on the validation part.
    """

    def __init__(self, slope: float, offset: float, best: float, risks: list[float], rows: int, level: float):
        self.slope, self.offset, self.best, self.risks, self.rows, self.level = slope, offset, best, risks, rows, level

    def probability(self, scores: ndarray) -> ndarray:
        """Calibrated scores."""
        clipped = np.clip(np.asarray(scores, np.float64), 1e-6, 1 - 1e-6)
        return 1 / (1 + np.exp(-(self.slope * np.log(clipped / (1 - clipped)) + self.offset)))

    def promised(self, level: float) -> float | None:
        """The threshold at which at most 1 - level of the boxes of an image are missed on average; None where none is low enough."""
        return promised(self.risks, self.rows, level)

    def threshold(self, level: float) -> float:
        """Boxes are answered from this score on: low enough for the level, and not above the best F1."""
        promised = self.promised(level)
        return float(THRESHOLDS[0]) if promised is None else min(self.best, promised)

    def to_json(self) -> dict[str, Any]:
        return {"slope": self.slope, "offset": self.offset, "best": self.best, "risks": self.risks, "images": self.rows,
                "level": self.level}  # fmt: skip

    @staticmethod
    def from_json(saved: Any) -> "BoxTrust":
        """Read back from `to_json`; damaged content is refused."""
        try:
            risks, rows = [float(value) for value in saved["risks"]], saved["images"]
            numbers = [float(saved[name]) for name in ("slope", "offset", "best")]
            fine = len(risks) == len(THRESHOLDS) and all(0 <= value <= 1 for value in risks)
            fine = fine and isinstance(rows, int) and not isinstance(rows, bool) and 0 <= rows < 1 << 40
            if (
                not fine
                or not all(abs(value) < 1e6 for value in numbers)
                or not numbers[0] >= 0
                or not 0 <= numbers[2] <= 1
            ):
                raise ValueError
            slope, offset, best = numbers
            return BoxTrust(slope, offset, best, risks, rows, check_level(float(saved["level"])))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError("trust.json does not hold scores of boxes: it is damaged or not ours.") from error


def promised(risks: list[float], rows: int, level: float) -> float | None:
    """The largest of `THRESHOLDS` at which at most 1 - level is missed on average; None where there is none."""
    return controlled_threshold(np.maximum.accumulate(risks), rows, 1 - level, THRESHOLDS) if rows else None


def fit_scores(scores: ndarray, right: ndarray) -> tuple[float, float]:
    """Slope and offset of the logistic that turns scores into chances; (1, 0) where all are right or all wrong."""
    if len(scores) < 10 or right.all() or not right.any():
        return 1.0, 0.0
    clipped = np.clip(scores, 1e-6, 1 - 1e-6)
    features = np.stack([np.log(clipped / (1 - clipped)), np.ones(len(scores))], 1)
    slope, offset = fit_logistic(features, right.astype(np.float64), ridge=1e-3)
    return (float(slope), float(offset)) if slope > 0 else (1.0, 0.0)


def right_boxes(detections: Mapping[str, Tensor], boxes: Tensor, labels: Tensor) -> ndarray:
    """Which found boxes of an image, best first, are the first to overlap a true box of their class by half: (k,)."""
    overlap = iou(detections["boxes"], boxes) * (detections["classes"][:, None] == labels[None])
    return first_matches(overlap.cpu().numpy())


def first_matches(overlap: ndarray) -> ndarray:
    """Rows that get a column of their own, in order, each the best that is left and at least half: (n,)."""
    right, free = np.zeros(len(overlap), bool), np.ones(overlap.shape[1], bool)
    for row in np.flatnonzero((overlap >= OVERLAP).any(1)) if overlap.shape[1] else ():
        best = int(np.where(free, overlap[row], -1.0).argmax())
        if free[best] and overlap[row, best] >= OVERLAP:
            right[row], free[best] = True, False
    return right


def missed_boxes(detections: Mapping[str, Tensor], boxes: Tensor, labels: Tensor) -> ndarray:
    """The share of the true boxes of an image that no found box of their class overlaps by half, at each threshold: (k,)."""
    overlap = iou(detections["boxes"], boxes) * (detections["classes"][:, None] == labels[None])
    hit = (overlap >= OVERLAP).cpu().numpy()
    best = np.where(hit, detections["scores"].cpu().numpy()[:, None], -1.0).max(0, initial=-1.0)
    return (best[None] < THRESHOLDS[:, None]).mean(1)


def best_threshold(scores: ndarray, right: ndarray, total: int) -> float:
    """The threshold with the best F1, among `THRESHOLDS`; 0.5 where nothing is right."""
    kept = scores[None] >= THRESHOLDS[:, None]
    hits = (kept & right[None]).sum(1)
    f1 = 2 * hits / np.maximum(kept.sum(1) + total, 1)
    return float(THRESHOLDS[f1.argmax()]) if hits.any() else 0.5


def score_reliability(before: ndarray, after: ndarray, right: ndarray) -> dict[str, Any]:
    """Reliability of scores before and after calibration, as the report draws it, and the calibration errors."""
    if not len(right):
        return {"reliability": {"before": [], "after": []}, "ece": {"before": None, "after": None}}
    outcome = right.astype(np.float64)
    bins = {"before": binned(before, outcome, 15), "after": binned(after, outcome, 15)}
    return {
        "reliability": {name: [vars(one) for one in rows] for name, rows in bins.items()},
        "ece": {name: summarise(rows) for name, rows in bins.items()},
    }


class PixelTrust(Trust):
    """A temperature of the scores of pixels, and what share of pixels is missed at each threshold of the probability.

    The set of a pixel holds the classes whose probability reaches a threshold. `risks` (k,) are the mean shares of pixels of
    `rows` calibration images (background aside) whose true class is not in the set.
    """

    def __init__(self, temperature: float, risks: list[float], rows: int, level: float):
        self.temperature, self.risks, self.rows, self.level = temperature, risks, rows, level

    def probabilities(self, logits: Tensor) -> Tensor:
        """Calibrated probabilities (b, classes, h, w)."""
        return torch.softmax(logits / self.temperature, 1)

    def promised(self, level: float) -> float | None:
        """The threshold at which at most 1 - level of the pixels of an image are missed on average; None where none is low enough."""
        return promised(self.risks, self.rows, level)

    def threshold(self, level: float) -> float:
        """The probability from which on a class is in the set of a pixel."""
        promised = self.promised(level)
        return float(THRESHOLDS[0]) if promised is None else promised

    def to_json(self) -> dict[str, Any]:
        return {"temperature": self.temperature, "risks": self.risks, "images": self.rows, "level": self.level}

    @staticmethod
    def from_json(saved: Any) -> "PixelTrust":
        """Read back from `to_json`; damaged content is refused."""
        try:
            risks, rows, temperature = (
                [float(value) for value in saved["risks"]],
                saved["images"],
                float(saved["temperature"]),
            )
            fine = (
                len(risks) == len(THRESHOLDS) and all(0 <= value <= 1 for value in risks) and 1e-3 < temperature < 1e6
            )
            if not fine or not isinstance(rows, int) or isinstance(rows, bool) or not 0 <= rows < 1 << 40:
                raise ValueError
            return PixelTrust(temperature, risks, rows, check_level(float(saved["level"])))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError("trust.json does not hold scores of pixels: it is damaged or not ours.") from error


def missed_pixels(probabilities: Tensor, masks: Tensor, background: bool) -> Tensor:
    """The share of counted pixels of each image whose true class does not reach each threshold: (b, k); NaN where none count.

    With `background`, pixels of class 0 do not count. Shapes: probabilities (b, classes, h, w), masks (b, h, w).
    """
    counted = (masks != 255) & ((masks > 0) | (not background))
    index = masks.long().clamp_max(probabilities.shape[1] - 1)
    own = probabilities.gather(1, index[:, None])[:, 0]
    place = torch.bucketize(own, torch.as_tensor(THRESHOLDS, dtype=own.dtype, device=own.device), right=True)
    rows = len(masks)
    # A pixel with `place` thresholds at or below its probability is missed at all later ones.
    image = torch.arange(rows, device=own.device)[:, None, None].expand_as(place)
    table = torch.zeros(rows, len(THRESHOLDS) + 1, dtype=torch.float64, device=own.device)
    table.index_put_((image[counted], place[counted]), table.new_ones(()), accumulate=True)
    total = table.sum(1, keepdim=True)
    return table.cumsum(1)[:, : len(THRESHOLDS)] / torch.where(total > 0, total, torch.nan)
