"""Errors of a forward pass or a loss that name a mistake in the batch or in the choice of the loss."""

import re
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.modes import batch_norm_of_one


def raised(error: Exception, model: nn.Module, targets: Any, line: str) -> Iterator[Finding]:
    """The finding that explains an error, where its message is known."""
    message = str(error)
    if "Expected more than 1 value per channel when training" in message:
        path, norm = next(((p, m) for p, m in model.named_modules() if isinstance(m, _BatchNorm)), ("", model))
        yield batch_norm_of_one(path, type(norm).__name__, line)
    elif "all elements of input should be between 0 and 1" in message:
        yield Finding(
            "logits in binary cross-entropy", "", line, 0.0,
            "binary_cross_entropy takes probabilities from 0 to 1, and the model gives numbers outside.",
            "Use binary_cross_entropy_with_logits (nn.BCEWithLogitsLoss), which takes logits.",
        )  # fmt: skip
    elif (
        isinstance(targets, Tensor)
        and targets.is_floating_point()
        and re.search(
            r"expected scalar type Long|expected target dtype to be Long|expected floating point type for target with class prob",
            message,
        )
    ):
        yield Finding(
            "labels as floats", "", line, 0.0,
            f"cross_entropy takes class indices as integers, and the targets are {str(targets.dtype).removeprefix('torch.')} of shape {tuple(targets.shape)}.",
            "Convert the labels: targets.long().",
        )  # fmt: skip
