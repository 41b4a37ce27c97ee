"""Options of trust for classes in an exported model: calibrators, thresholds, costs, abstention and sets by class, in torch."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.ops.softplus import softplus
from wonderland.tasks.answers import ROUNDING, ClassAnswers, misfit
from wonderland.tasks.class_trust import ClassOptions
from wonderland.trust.weights import spread

MOST_CELLS = 500  # classes times groups of members, for sets by class


def why_not(options: ClassOptions, classes: int) -> str:
    """What of the options cannot be written as a program, as a sentence, or ""."""
    if options.cross:
        return "Cross-conformal sets, which compare a row with every fold, are not written as a torch program."
    first = options.sets[0] if options.sets else None
    if first is not None and first.by == "group":
        return "Sets by group need the group of each row, which the model does not read."
    if first is not None and not first.by:
        return "Adaptive sets (aps, raps) draw a random number for each row, which an exported model does not."
    if first is not None and classes * len(options.sets) > MOST_CELLS:
        return f"Sets by class are written for at most {MOST_CELLS // len(options.sets):,} classes."
    return ""


class ClassOptionsAnswers(ClassAnswers):
    """Outputs of members as what `Classification.predictions` computes with options of trust.

    With costs `decision` is the place of the cheapest action, with abstention `answered` says whether the model answers.
    """

    def __init__(self, task: Any, trust: Any, level: float):
        super().__init__(task, trust, level)
        options: ClassOptions = trust.options
        self.level = level
        self.calibrator = None if options.calibrator is None else TorchCalibrator(options.calibrator)
        self.sets = [
            [torch.as_tensor(np.asarray(own.cells.get(str(k), ()), np.float64)) for k in range(len(task.classes))]
            for own in options.sets
        ]
        self.weights = None if options.weights is None else torch.as_tensor(options.weights)
        self.cost = None if options.cost is None else torch.as_tensor(options.cost)
        self.least = None if options.abstention is None else options.abstention.threshold
        more = ("decision",) if self.cost is not None else ()
        self.names = ClassAnswers.names + more + (("answered",) if self.least is not None else ())

    def forward(self, outputs: Tensor) -> tuple[Tensor, ...]:
        outputs = outputs if outputs.dim() == 3 else outputs[None]
        members = outputs.shape[0]
        probabilities = self._probabilities(self.task.combine(outputs, spread(self.shares, members)).double())
        weighted = probabilities if self.weights is None else probabilities * self.weights
        prediction = weighted.argmax(-1)
        each = members // self.groups
        groups = [
            self.task.combine(outputs[i : i + each], spread(self.shares, each)).double()
            for i in range(0, members, each)
        ]
        if self.sets:
            plausible = self._by_class([self._probabilities(raw) for raw in groups])
        else:
            plausible = misfit(groups[0] / self.temperature) <= self.threshold
        predicted = torch.arange(probabilities.shape[-1], device=outputs.device) == prediction[:, None]
        sets = plausible | (predicted & plausible.any(-1, keepdim=True))
        own = probabilities.gather(1, prediction[:, None])[:, 0]
        answers = [prediction, own.float(), probabilities.float(), sets]
        if self.cost is not None:
            answers.append((probabilities @ self.cost).argmin(-1))
        if self.least is not None:
            answers.append(probabilities.amax(-1) >= self.least)
        return tuple(answers)

    def _probabilities(self, raw: Tensor) -> Tensor:
        return (raw / self.temperature).softmax(-1) if self.calibrator is None else self.calibrator(raw)

    def _by_class(self, probabilities: list[Tensor]) -> Tensor:
        """Classes whose p-value among the calibration rows of that class exceeds 1 - level."""
        columns = []
        for k in range(len(self.classes)):
            worse = sum(
                (cells[k] >= 1 - own[:, k : k + 1] - ROUNDING).sum(1)
                for cells, own in zip(self.sets, probabilities, strict=True)
            )
            total = sum(len(cells[k]) for cells in self.sets)
            columns.append((1 + worse) / (1 + total) > 1 - self.level + 1e-12)
        return torch.stack(columns, 1)


class TorchCalibrator(nn.Module):
    """`trust.scaling.Calibrator` in torch: logits (n, c) to calibrated probabilities (n, c), in double."""

    def __init__(self, fitted: Any):
        super().__init__()
        self.method = fitted.method
        self.arrays = {name: torch.as_tensor(np.asarray(value, np.float64)) for name, value in fitted.arrays.items()}

    def forward(self, logits: Tensor) -> Tensor:
        if self.method in ("none", "temperature"):
            return (logits / self.arrays.get("temperature", torch.ones((), dtype=torch.float64))).softmax(-1)
        if self.method in ("vector", "matrix"):
            centred = logits - logits.mean(1, keepdim=True)
            return (centred @ self.arrays["weights"].T + self.arrays["bias"]).softmax(-1)
        odds = -misfit(logits)
        if self.method == "isotonic":
            classes = [int(name.removeprefix("knots")) for name in self.arrays if name.startswith("knots")]
            return together(
                torch.stack(
                    [interpolated(odds[:, k], self.arrays[f"knots{k}"], self.arrays[f"values{k}"]) for k in classes], 1
                )
            )
        weights = self.arrays["weights"]
        odds = odds[:, -len(weights) :]
        if self.method == "platt":
            return together(torch.sigmoid(odds * weights[:, 0] + weights[:, 1]))
        curve = -softplus(-odds) * weights[:, 0] + softplus(odds) * weights[:, 1] + weights[:, 2]
        return together(torch.sigmoid(curve))


def together(chances: Tensor) -> Tensor:
    """Chances of one class against the rest as probabilities of all: (n, c) or (n, 1) -> (n, c)."""
    if chances.shape[1] == 1:
        return torch.cat([1 - chances, chances], 1)
    total = chances.sum(1, keepdim=True)
    share = chances / torch.where(total > 0, total, torch.ones_like(total))
    return torch.where(total > 0, share, torch.full_like(share, 1 / chances.shape[1]))


def interpolated(x: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    """`numpy.interp`: (n,) between knots (k,) with values (k,).

    >>> interpolated(torch.tensor([-1.0, 0.5, 9.0]), torch.tensor([0.0, 1.0]), torch.tensor([2.0, 4.0]))
    tensor([2., 3., 4.])
    """
    if len(knots) == 1:
        return torch.zeros_like(x) + values[0]
    place = ((x[:, None] >= knots).sum(1) - 1).clamp(0, len(knots) - 2)
    low, high = knots[place], knots[place + 1]
    share = ((x - low) / (high - low)).clamp(0, 1)
    return values[place] + share * (values[place + 1] - values[place])
