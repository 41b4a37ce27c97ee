"""Answers of an exported model with several labels: calibrated probabilities, those that are predicted, and sets."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.trust.weights import spread


class LabelAnswers(nn.Module):
    """Outputs of members (m, n, k), or of one model (n, k), as what `MultiLabel.predictions` computes, at one level."""

    names = ("prediction", "probabilities", "set")
    classes = None  # the prediction is no number of a class, but a mark for each label
    scale: Tensor
    limits: Tensor

    def __init__(self, task: Any, trust: Any, level: float):
        super().__init__()
        self.task, self.groups, self.shares, self.least = task, trust.groups, trust.shares, trust.threshold(level)
        self.register_buffer("scale", torch.as_tensor(trust.scale), persistent=False)
        self.register_buffer("limits", torch.as_tensor(trust.thresholds), persistent=False)

    def forward(self, outputs: Tensor) -> tuple[Tensor, ...]:
        outputs = outputs if outputs.dim() == 3 else outputs[None]
        probabilities = self.probabilities(outputs)
        predicted = probabilities >= self.limits
        first = self.probabilities(outputs[: outputs.shape[0] // self.groups])
        return predicted, probabilities.float(), (first >= self.least) | predicted

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Calibrated probabilities of the outputs of members: (n, k)."""
        log_odds = self.task.combine(outputs, spread(self.shares, outputs.shape[0])).double()
        return torch.sigmoid(log_odds * self.scale[:, 0] + self.scale[:, 1])
