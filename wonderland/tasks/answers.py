"""Answers of an exported model: from its outputs to calibrated probabilities and sets, or numbers and intervals, in torch."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.trust.weights import spread

ROUNDING = 3e-6  # of a score: what another library may add to it


class ClassAnswers(nn.Module):
    """Outputs of members (m, n, c), or of one model (n, c), as what `Classification.predictions` computes, at one level.

    The set of a row holds the classes whose nonconformity score is at most a threshold, which follows from the level.
    """

    names = ("prediction", "probability", "probabilities", "set")

    def __init__(self, task: Any, trust: Any, level: float):
        super().__init__()
        self.task, self.temperature, self.groups, self.shares = task, trust.temperature, trust.groups, trust.shares
        limit = set_threshold(trust.scores, level)
        # Scores of the calibration rows themselves are in, also where the last bits differ from those of training.
        self.classes, self.threshold = (
            task.classes,
            limit + ROUNDING * max(1.0, abs(limit)) if math.isfinite(limit) else limit,
        )

    def forward(self, outputs: Tensor) -> tuple[Tensor, ...]:
        outputs = outputs if outputs.dim() == 3 else outputs[None]
        members = outputs.shape[0]
        logits = self.task.combine(outputs, spread(self.shares, members)) / self.temperature
        probabilities = logits.softmax(-1)
        first = members // self.groups
        group = self.task.combine(outputs[:first], spread(self.shares, first)) / self.temperature
        prediction, plausible = probabilities.argmax(-1), misfit(group) <= self.threshold
        # A set that is not empty holds the predicted class, though the first group alone decides the rest of it.
        predicted = torch.arange(logits.shape[-1], device=logits.device) == prediction[:, None]
        sets = plausible | (predicted & plausible.any(-1, keepdim=True))
        return prediction, probabilities.amax(-1).float(), probabilities.float(), sets


class NumberAnswers(nn.Module):
    """Outputs of members (m, n, 1), or of one model (n, 1), as what `Regression.predictions` computes, at one level."""

    names = ("prediction", "low", "high")
    classes = None
    scores: Tensor

    def __init__(self, task: Any, trust: Any, level: float):
        super().__init__()
        self.task, self.groups, self.shares = task, trust.groups, trust.shares
        self.method, fitted = "", trust.scores
        if trust.options is not None and trust.options.method:
            self.method, fitted = trust.options.method, trust.options.cells[""]
        self.count, self.sizes = fitted.count, [len(group) for group in fitted.groups]
        self.rank = math.ceil(level * (self.count + 1) - 1e-9)
        self.register_buffer("scores", torch.as_tensor(np.concatenate(fitted.groups)), persistent=False)
        if self.method == "normalised":
            self.of_model = self._of_model

    def _of_model(self, model: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        """From a model that knows the deviation of its predictions."""
        value = self.task.original(model(*inputs)[:, 0])
        if self.rank > self.count:
            return value, torch.full_like(value, -torch.inf), torch.full_like(value, torch.inf)
        radius = self.scores[self.rank - 1] * model.spread(*inputs) * self.task.scale
        return value, value - radius, value + radius

    def forward(self, outputs: Tensor) -> tuple[Tensor, ...]:
        outputs = outputs if outputs.dim() == 3 else outputs[None]
        members = outputs.shape[0]
        value = self.task.original(self.task.combine(outputs, spread(self.shares, members))[:, 0])
        if self.rank > self.count:
            return value, torch.full_like(value, -torch.inf), torch.full_like(value, torch.inf)
        each = members // self.groups
        bands = [
            self._band(self.task.combine(outputs[i : i + each], spread(self.shares, each)))
            for i in range(0, members, each)
        ]
        low, high = self._ends(bands)
        return value, torch.minimum(low, value), torch.maximum(high, value)

    def _band(self, prediction: Tensor) -> tuple[Tensor, Tensor]:
        """What intervals are built around: the prediction, or two predicted quantiles."""
        if self.method != "cqr":
            centre = self.task.original(prediction[:, 0])
            return centre, centre
        first, second = (self.task.original(prediction[:, place]) for place in (1, 2))
        return torch.minimum(first, second), torch.maximum(first, second)

    def _ends(self, bands: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        if self.groups == 1:
            radius = self.scores[self.rank - 1]
            return bands[0][0] - radius, bands[0][1] + radius
        pieces = self.scores.split(self.sizes)
        above = torch.cat([high[:, None] + s for (_, high), s in zip(bands, pieces, strict=True)], 1)
        below = torch.cat([s - low[:, None] for (low, _), s in zip(bands, pieces, strict=True)], 1)
        rest = self.count - self.rank + 1  # the rank-th smallest is the rest-th largest
        return -below.topk(rest, 1).values[:, -1], above.topk(rest, 1).values[:, -1]


def set_threshold(scores: Any, level: float) -> float:
    """The largest score of a candidate that belongs to the set: where its p-value still exceeds 1 - level."""
    pooled = np.sort(np.concatenate(scores.groups))
    worse = np.arange(len(pooled) + 1)
    enough = worse[(1 + worse) / (len(pooled) + 1) > 1 - level + 1e-12]
    least = int(enough[0]) if len(enough) else len(pooled) + 1
    if least == 0:
        return math.inf
    return float(pooled[len(pooled) - least]) if least <= len(pooled) else -math.inf


def misfit(logits: Tensor) -> Tensor:
    """`wonderland.trust.misfit` in torch: the log-odds against each class, (n, c) -> (n, c)."""
    top, best = logits.max(-1, keepdim=True)
    is_best = torch.arange(logits.shape[-1]) == best
    exponentials = (logits - top).exp()
    others = exponentials.sum(-1, keepdim=True) - exponentials
    without_best = logits.masked_fill(is_best, -torch.inf).logsumexp(-1, keepdim=True)
    # The sum of the others is at least the largest term where a class is not the best, so its logarithm is finite there.
    return torch.where(is_best, without_best, top + others.clamp_min(1e-300).log()) - logits
