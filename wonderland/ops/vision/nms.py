"""Non-maximum suppression: of boxes that overlap too much, the one with the best score stays."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.vision.boxes import iou

PAIRS = 4_000_000  # candidate pairs that are looked at together
BLOCK = 512


def nms(boxes: Tensor, scores: Tensor, threshold: float = 0.5) -> Tensor:
    """The boxes that stay, by falling score: each removes those of lower score whose IoU with it is above the threshold.

    Candidates come from a grid of cells as large as the largest box, so boxes that are far apart are never compared; where
    boxes are many and large, the best are resolved first, block by block. Equal scores: the first box is the better one.
    Boxes with a score that is not a number are left out. Shapes: (n, 4), (n,) -> (k,) row numbers. Book: D2L 14.4.

    >>> boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [5.0, 5.0, 6.0, 6.0]])
    >>> nms(boxes, torch.tensor([0.8, 0.9, 0.1])).tolist()
    [1, 2]
    """
    _check(boxes, scores)
    order = _ranked(scores)
    corners = boxes.detach().double().cpu().numpy()[order]
    alive, kept = np.ones(len(corners), bool), np.zeros(len(corners), bool)
    grid = _Grid(corners)
    block = max(1, len(corners)) if grid.pairs <= PAIRS else BLOCK
    for first in range(0, len(corners), block):
        rows = np.flatnonzero(alive[first : first + block]) + first
        pairs = [grid.overlapping(piece, threshold) for piece in grid.pieces(rows)]
        best, other = (np.concatenate(column) for column in zip(*pairs, strict=True)) if pairs else (rows[:0], rows[:0])
        inside = other < first + block
        kept[rows] = _greedy(rows, best[inside], other[inside], len(corners))[rows]
        alive[other[kept[best]]] = False
    return torch.from_numpy(order[kept]).to(boxes.device)


def batched_nms(boxes: Tensor, scores: Tensor, groups: Tensor, threshold: float = 0.5) -> Tensor:
    """Suppression within each group (class or image) alone, all at once. Shapes: (n, 4), (n,), (n,) -> (k,).

    >>> boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.0]])
    >>> batched_nms(boxes, torch.tensor([0.8, 0.9]), torch.tensor([0, 1])).tolist()
    [1, 0]
    """
    if not len(boxes):
        return nms(boxes, scores, threshold)
    boxes = boxes.double()
    apart = (boxes.max() - boxes.min()).clamp_min(1.0) * 2
    return nms(boxes + (groups.to(boxes) * apart)[:, None], scores, threshold)


def soft_nms(boxes: Tensor, scores: Tensor, *, sigma: float = 0.5, least: float = 0.001) -> tuple[Tensor, Tensor]:
    r"""Scores lowered instead of boxes removed: the best box multiplies the others by exp(-IoU^2 / sigma), and so on.

    Boxes whose score falls below `least` go. Shapes: (n, 4), (n,) -> rows (k,) and their new scores (k,).
    Paper: Bodla et al., 2017.

    >>> rows, new = soft_nms(torch.tensor([[0.0, 0.0, 2.0, 2.0]] * 2), torch.tensor([0.9, 0.8]))
    >>> rows.tolist(), new.tolist()[0] > new.tolist()[1]
    ([0, 1], True)
    """
    _check(boxes, scores)
    left = scores.detach().double().clone()
    boxes = boxes.detach().double()
    rows, kept_scores = [], []
    for _ in range(len(boxes)):
        best = int(left.nan_to_num(-1.0).argmax())
        if not left[best] >= least:
            break
        rows.append(best)
        kept_scores.append(left[best].item())
        left = left * torch.exp(-iou(boxes[best : best + 1], boxes)[0].square() / sigma)
        left[best] = -1.0
    return torch.tensor(rows, dtype=torch.int64, device=boxes.device), scores.new_tensor(kept_scores)


class _Grid:
    """Boxes sorted into cells at least as large as any of them: overlapping ones lie in neighbouring cells."""

    def __init__(self, corners: np.ndarray):
        self.corners = corners
        self.area = np.clip(corners[:, 2:] - corners[:, :2], 0, None).prod(1)
        low = corners[:, :2].min(0) if len(corners) else np.zeros(2)
        side = (corners[:, 2:] - corners[:, :2]).max(0) if len(corners) else np.ones(2)
        span = (corners[:, :2].max(0) - low) if len(corners) else np.ones(2)
        side = np.maximum(np.maximum(side, span / 1e6), 1e-300)
        self.cell = np.floor((corners[:, :2] - low) / side).astype(np.int64)
        self.columns = int(self.cell[:, 0].max(initial=0)) + 3
        key = self.cell[:, 1] * self.columns + self.cell[:, 0] + 1
        self.sorted = np.argsort(key, kind="stable")
        ordered = key[self.sorted]
        starts = key[:, None] + np.array([-1, 0, 1]) * self.columns
        self.first = np.searchsorted(ordered, starts - 1)
        self.count = np.searchsorted(ordered, starts + 1, side="right") - self.first
        self.pairs = int(self.count.sum())

    def pieces(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Rows in pieces with a bounded number of candidates."""
        cuts = np.searchsorted(np.cumsum(self.count[rows].sum(1)), np.arange(PAIRS, self.pairs + PAIRS, PAIRS))
        return (piece for piece in np.split(rows, np.unique(np.clip(cuts, 1, max(1, len(rows))))) if len(piece))

    def overlapping(self, rows: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (row, worse box) with an IoU above the threshold."""
        first, count = self.first[rows].ravel(), self.count[rows].ravel()
        one = np.repeat(np.repeat(rows, 3), count)
        offset = np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
        two = self.sorted[np.repeat(first, count) + offset]
        worse = two > one
        one, two = one[worse], two[worse]
        a, b = self.corners[one], self.corners[two]
        size = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2])
        near = (size > 0).all(1)
        one, two, shared = one[near], two[near], size[near].prod(1)
        over = shared > threshold * (self.area[one] + self.area[two] - shared)
        return one[over], two[over]


def _greedy(rows: np.ndarray, best: np.ndarray, other: np.ndarray, count: int) -> np.ndarray:
    """Which rows stay: in rounds, all those that no undecided better box could still remove."""
    kept, open_ = np.zeros(count, bool), np.zeros(count, bool)
    open_[rows] = True
    while len(best):
        threatened = np.zeros(count, bool)
        threatened[other] = True
        kept |= open_ & ~threatened
        open_ &= threatened
        gone = other[kept[best]]
        open_[gone] = False
        left = open_[best] & open_[other]
        best, other = best[left], other[left]
    return kept | open_


def _ranked(scores: Tensor) -> np.ndarray:
    values = scores.detach().double().cpu().numpy()
    real = np.flatnonzero(~np.isnan(values))
    return real[np.argsort(-values[real], kind="stable")]


def _check(boxes: Tensor, scores: Tensor) -> None:
    if boxes.dim() != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise WonderlandError(
            f"Suppression takes boxes (n, 4) and a score for each, not {tuple(boxes.shape)} and {tuple(scores.shape)}."
        )
