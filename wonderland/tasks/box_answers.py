"""Answers of an exported detector: non-maximum suppression as a torch program, boxes in the pixels of the picture, calibrated scores."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.models.vision.detector import BEFORE_SUPPRESSION
from wonderland.ops.over_time import is_exporting, over_time

MOST, OVERLAP = 100, 0.5  # boxes of a picture; the IoU above which the worse of two of a class goes


class BoxAnswers(nn.Module):
    """Candidates, probabilities (b, n, classes) and boxes (b, n, 4) on the canvas, as what `Detection.predictions` computes, at one level.

    `boxes` (rows, 100, 4) are (left, top, right, bottom) in pixels of the picture, best first, `labels` the places of their classes, -1
    after the last box, `probabilities` the chances that they are right, `count` their number.
    """

    names = ("boxes", "labels", "probabilities", "count")
    classes = None
    reads_inputs = True

    def __init__(self, task: Any, trust: Any, level: float, least: float):
        super().__init__()
        self.slope, self.offset, self.threshold, self.least = trust.slope, trust.offset, trust.threshold(level), least

    def forward(self, outputs: tuple[Tensor, Tensor], x: Tensor, pictures: Tensor) -> tuple[Tensor, ...]:
        probabilities, boxes = outputs
        height, width = x.shape[2], x.shape[3]
        scores, place = probabilities.flatten(1).topk(min(BEFORE_SUPPRESSION, probabilities[0].numel()), 1)
        classes = probabilities.shape[2]
        label, owner = place % classes, torch.div(place, classes, rounding_mode="floor")
        box = boxes.gather(1, owner[:, :, None].expand(-1, -1, 4))
        box = torch.minimum(box.clamp(min=0), box.new_tensor([width, height, width, height]))
        alive = (scores >= self.least) & ((box[..., 2:] - box[..., :2]).amin(2) > 0)
        rows, kept = picked(box, label, alive, MOST)
        score = scores.gather(1, rows)
        kept = kept & (score >= self.threshold)
        tall, wide = (torch.ones(pictures.shape[axis], dtype=torch.float64, device=x.device).sum() for axis in (1, 2))
        scale = torch.minimum(height / tall, width / wide)
        corners = (box.gather(1, rows[:, :, None].expand(-1, -1, 4)).double() / scale).clamp(min=0)
        corners = torch.minimum(corners, torch.stack([wide, tall, wide, tall]))
        log_odds = torch.logit(score.double().clamp(1e-6, 1 - 1e-6))
        chance = torch.sigmoid(self.slope * log_odds + self.offset)
        zero = torch.zeros_like(chance)
        return (
            torch.where(kept[:, :, None], corners, torch.zeros_like(corners)).float(),
            torch.where(kept, label.gather(1, rows), torch.full_like(rows, -1)),
            torch.where(kept, chance, zero).float(),
            kept.sum(1),
        )


def picked(boxes: Tensor, labels: Tensor, alive: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The first `most` rows that stay when each removes those after it, of its class, that overlap it too much; and which of them are real.

    Boxes (b, n, 4) are sorted by falling score; labels and `alive` are (b, n). -> (b, most), (b, most). Equal to
    `ops.vision.batched_nms` on the living rows.

    >>> boxes = torch.tensor([[[0.0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]]])
    >>> picked(boxes, torch.zeros(1, 3, dtype=torch.int64), torch.ones(1, 3, dtype=torch.bool), 2)[0]
    tensor([[0, 2]])
    """
    corners = boxes.double()
    low = torch.maximum(corners[:, :, None, :2], corners[:, None, :, :2])
    high = torch.minimum(corners[:, :, None, 2:], corners[:, None, :, 2:])
    shared = (high - low).clamp(min=0).prod(3)
    area = (corners[..., 2:] - corners[..., :2]).prod(2)
    over = shared > OVERLAP * (area[:, :, None] + area[:, None] - shared)
    gone = over & (labels[:, :, None] == labels[:, None])
    count = boxes.shape[1]
    order = torch.arange(count, 0, -1, device=boxes.device)

    def step(state: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        (alive,) = state
        best = torch.where(alive, order, torch.zeros_like(order)).argmax(1, keepdim=True)
        removed = gone.gather(1, best[:, :, None].expand(-1, -1, count))[:, 0]
        left = alive & ~removed & (torch.arange(count, device=boxes.device) != best)
        return (left,), (best, alive.gather(1, best))

    if is_exporting():
        (rows, kept), _ = over_time(step, (alive,), (boxes.new_zeros(boxes.shape[0], most, 1),))
        return rows.squeeze(2), kept.squeeze(2)
    picked_rows = []
    for _ in range(most):
        (alive,), one = step((alive,), ())
        picked_rows.append(one)
    return torch.cat([best for best, _ in picked_rows], 1), torch.cat([real for _, real in picked_rows], 1)


def boxes_apart(detections: Sequence[Mapping[str, Tensor]], exported: Mapping[str, Any]) -> float:
    """The largest difference of scores and corners (as parts of the largest one) between boxes of pictures and exported ones.

    Boxes of almost equal scores may change places, so each is compared with the nearest of its class.
    """
    largest = 0.0
    for row, one in enumerate(detections):
        count = int(exported["count"][row])
        if count != len(one["boxes"]):
            return float("inf")
        boxes, scores, labels = (one[name].double().numpy() for name in ("boxes", "scores", "classes"))
        own = [exported[name][row, :count] for name in ("boxes", "probabilities", "labels")]
        side = max(1.0, float(boxes.max(initial=0.0)))
        apart = np.maximum(np.abs(boxes[:, None] - own[0]).max(2) / side, np.abs(scores[:, None] - own[1]))
        apart = np.where(labels[:, None] == own[2], apart, np.inf)
        largest = max(largest, float(apart.min(1).max(initial=0.0))) if count else largest
    return largest
