"""Classification: one of several classes, learned from logits."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError, part
from wonderland.tasks import metrics


@part
class Classification(Part):
    """One of `classes`, by name. Two classes are two logits: binary is not a special case.

    Model outputs are logits (b, c), or (m, b, c) from an ensemble of m members.

    >>> task = Classification(["cat", "dog"])
    >>> task.names(np.array([1, 0]))
    ['dog', 'cat']
    """

    name = "classification"
    watch = "log_loss"

    def __init__(self, classes: Sequence[str], label_smoothing: float = 0.0):
        if len(classes) < 2:
            raise WonderlandError(f"Classification needs at least two classes, not {len(classes)}.")
        self.classes = [str(label) for label in classes]
        self.label_smoothing = label_smoothing
        self.outputs = len(self.classes)

    def arguments(self) -> dict[str, Any]:
        """What it takes to build this task again."""
        return {"classes": self.classes, "label_smoothing": self.label_smoothing}

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Cross-entropy from logits, the mean over examples and members."""
        x, y = batch
        logits = model(x)
        if logits.dim() == y.dim() + 2:
            y = y.expand(logits.shape[:-1])
        return F.cross_entropy(logits.flatten(0, -2), y.flatten(), label_smoothing=self.label_smoothing)

    def combine(self, outputs: Tensor, shares: ndarray | None = None) -> Tensor:
        """Members (m, b, c) to one prediction (b, c): the log of their mean probability, weighted by shares (m,)."""
        logits = outputs.double().log_softmax(-1)
        weights = np.full(len(outputs), 1 / len(outputs)) if shares is None else shares
        return torch.logsumexp(logits + torch.as_tensor(np.log(np.maximum(weights, 1e-300)))[:, None, None], 0)

    def errors(self, outputs: Tensor, y: ndarray) -> ndarray:
        """Each member's probabilities less the truth: (m, n, c)."""
        return (outputs.double().softmax(-1) - F.one_hot(torch.as_tensor(y), self.outputs)).numpy()

    def metrics(self, log_probabilities: ndarray, y: ndarray) -> dict[str, Any]:
        """Accuracy, balanced accuracy, log loss and AUROC from log-probabilities (n, c)."""
        predicted = log_probabilities.argmax(1)
        return {
            "accuracy": metrics.accuracy(y, predicted),
            "balanced_accuracy": metrics.balanced_accuracy(y, predicted),
            "log_loss": metrics.log_loss(y, log_probabilities),
            "auroc": metrics.macro_auroc(y, np.exp(log_probabilities)),
        }

    def names(self, codes: ndarray) -> list[str]:
        """Class names for codes."""
        return [self.classes[code] for code in codes]
