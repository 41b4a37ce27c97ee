"""Labels outside the range of classes, and indices outside an embedding table."""

import math
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from wonderland.understand.doctoring.calling import classes
from wonderland.understand.doctoring.finding import Finding

MAX_CHANCE = 2e-3  # probability that class 0 is missing by chance


def shifted_labels(output: Tensor | None, targets: Any, line: str) -> Iterator[Finding]:
    """Labels that may count from 1: every class but class 0 occurs."""
    count = None if output is None else classes(output, targets)
    if count is None or count < 3 or targets.dim() > 2 or (targets.dim() == 2 and targets.shape[1] > 1):
        return
    seen = set(targets.flatten().tolist())
    if seen == set(range(1, count)) and (1 - 1 / count) ** targets.numel() < MAX_CHANCE:
        yield Finding(
            "shifted labels", "", line, 0.0,
            f"Labels run from 1 to {count - 1} and class 0 of {count} never occurs in {targets.numel()} examples.",
            f"If labels count from 1, subtract 1 and give the model {count - 1} outputs; else check how they were made.",
        )  # fmt: skip


def ignored_targets(targets: Any, loss: float, line: str) -> Iterator[Finding]:
    """Targets that cross-entropy leaves out, all of them."""
    if math.isfinite(loss) or not isinstance(targets, Tensor) or targets.dtype != torch.long:
        return
    if targets.numel() and bool((targets == -100).all()):
        yield Finding(
            "all targets ignored", "", line, targets.numel(),
            f"All {targets.numel()} targets are -100, which cross-entropy leaves out, so the loss is 0 / 0.",
            "Check how positions are masked; skip batches in which none is left.",
        )  # fmt: skip


def index_error(
    error: Exception, model: nn.Module, output: Tensor | None, batch: Any, targets: Any, default_line: str
) -> Iterator[Finding]:
    """Why a forward pass raised an index out of range."""
    path, line, frame = _raised_in(error.__traceback__, model, default_line)
    owner = frame.get("self")
    for loss_frame, _ in traceback.walk_tb(error.__traceback__):
        if loss_frame.f_code.co_name in ("cross_entropy", "nll_loss"):
            output, targets = loss_frame.f_locals.get("input"), loss_frame.f_locals.get("target")
    if isinstance(owner, nn.Embedding):
        index = next((x for x in frame.values() if isinstance(x, Tensor) and not x.is_floating_point()), None)
        if index is not None and (int(index.max()) >= owner.num_embeddings or int(index.min()) < 0):
            yield _outside_table(path, line, index, owner.num_embeddings)
            return
    integer_tensors = [
        x for x in tree_leaves(batch) if isinstance(x, Tensor) and not x.is_floating_point() and x.dtype != torch.bool
    ]
    labels = targets if isinstance(targets, Tensor) else integer_tensors[-1] if integer_tensors else None
    if labels is None or labels.is_floating_point():
        return
    count = None if output is None else classes(output, labels) or (output.shape[-1] if output.dim() > 1 else None)
    if count is None:
        return
    labels = labels[labels != -100]
    if not labels.numel():
        return
    low, high = int(labels.min()), int(labels.max())
    if low >= 0 and high < count:
        return
    off_by_one = low >= 1 and high == count
    yield Finding(
        "labels off by one" if off_by_one else "labels out of range", path, line, high if high >= count else low,
        f"Labels run from {low} to {high}, and the model has scores for {count} classes, 0 to {count - 1}.",
        "Subtract 1 from the labels." if off_by_one else f"Give the model {high + 1} outputs, or number the labels from 0 without gaps.",
    )  # fmt: skip


def _outside_table(path: str, line: str, index: Tensor, rows: int) -> Finding:
    low, high = int(index.min()), int(index.max())
    return Finding(
        "index out of range", path, line, high if high >= rows else low,
        f"Indices run from {low} to {high}, and the embedding has {rows} rows, 0 to {rows - 1}.",
        f"Give it {high + 1} rows, or number the tokens from 0 without gaps.",
    )  # fmt: skip


def _raised_in(trace: TracebackType | None, model: nn.Module, default_line: str) -> tuple[str, str, dict[str, Any]]:
    """Module path, source line and local variables of the innermost module in which an error was raised."""
    names = {id(module): name for name, module in model.named_modules()}
    path, line, variables = "", default_line, {}
    for frame, number in traceback.walk_tb(trace):
        owner = frame.f_locals.get("self")
        if id(owner) in names:
            path, variables = names[id(owner)], dict(frame.f_locals)
        file = frame.f_code.co_filename
        if (
            not file.startswith((torch.__path__[0], "<"))
            and "/wonderland/understand/" not in file
            and "/wonderland/autodiff/" not in file
        ):
            line = f"{file}:{number}"
    return path, line, variables
