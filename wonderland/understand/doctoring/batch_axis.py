"""The batch axis taken for another one: a softmax or norm over examples, layers that expect time first, examples that are mixed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, TracedOp
from wonderland.understand.doctoring.training_copy import TrainingCopy

_TIME_FIRST = (nn.RNNBase, nn.MultiheadAttention)


def batch_axis(trace: StepTrace, training: TrainingCopy) -> Iterator[Finding]:
    """Operators that normalise over the examples, and layers that read examples as moments in time."""
    size = _examples(trace)
    if size is None or size < 2:
        return
    for op in trace.ops:
        if op.source is None or id(op.out) not in trace.differentiable:
            continue
        shape = tuple(op.source.shape)
        if len(shape) < 2 or shape[0] != size or op.source.numel == size:
            continue
        operation = _over_examples(op)
        # A contrastive loss takes the softmax of an (n, n) matrix in both directions.
        if operation and not ("softmax" in operation and shape[1] == size):
            yield trace.finding(
                f"{operation} over the batch", op.step, 0.0,
                f"{operation} runs over axis 0 of a tensor {shape}, which holds the {size} examples of the batch: "
                "the output for one example depends on the others.",
                f"Use dim=-1 (the classes or features) instead of dim=0{'' if len(shape) == 2 else ', or the axis of positions'}.",
            )  # fmt: skip
            return
    findings = list(_time_first(trace, training, size))
    yield from findings or _mixed(trace, training, size)


def _mixed(trace: StepTrace, training: TrainingCopy, size: int) -> Iterator[Finding]:
    """Examples whose output depends on the others, where each is a sequence or an image."""
    output, given = trace.output, next(iter(trace.batch.values()), None)
    if output is None or given is None or size in output.shape[1:]:  # scores of all pairs compare examples on purpose
        return
    if given.dim() < (3 if given.is_floating_point() else 2) or size in given.shape[1:]:  # rows may be nodes of a graph
        return
    if _mixes(training, size):
        yield Finding(
            "examples mixed", "", trace.default_line, size,
            f"In evaluation mode, the output for one of the {size} examples changes when the others are replaced.",
            "Look for view or reshape where transpose is meant, and for sums, rolls or attention over axis 0.",
        )  # fmt: skip


def _examples(trace: StepTrace) -> int | None:
    """The number of examples, where targets and output have one entry for each."""
    targets, output = trace.targets, trace.output
    if isinstance(targets, Tensor) and targets.dim() and output is not None and output.dim():
        return len(targets) if len(targets) == len(output) else None
    if targets is None and output is not None and output.dim():
        tensors = list(trace.batch.values())
        return len(output) if tensors and tensors[0].dim() and len(tensors[0]) == len(output) else None
    return None


def _over_examples(op: TracedOp) -> str:
    """What an operator does over axis 0, "" where it does not."""
    if op.source is None:
        return ""
    axis = op.step.args[1] if len(op.step.args) > 1 else None
    if op.name in ("_softmax", "_log_softmax") and isinstance(axis, int) and axis % len(op.source.shape) == 0:
        return op.name.strip("_")
    if op.name == "linalg_vector_norm":
        axes = op.step.args[2] if len(op.step.args) > 2 else op.step.kwargs.get("dim")
        if isinstance(axes, tuple | list) and [a % len(op.source.shape) for a in axes] == [0]:
            return "a vector norm"
    return ""


def _time_first(trace: StepTrace, training: TrainingCopy, size: int) -> Iterator[Finding]:
    """A layer with batch_first=False that gets the batch first: one example's output depends on the others."""
    layers = [
        (path, module)
        for path, module in trace.model.named_modules()
        if isinstance(module, _TIME_FIRST) and not module.batch_first
    ]
    targets = trace.targets
    if not layers or not isinstance(targets, Tensor) or targets.numel() != size:
        return
    path, layer = layers[0]
    if not _mixes(training, size):
        return
    yield Finding(
        "batch axis read as time", path, trace.defined(path), size,
        f"{type(layer).__name__} has batch_first=False and gets the {size} examples of the batch as its first axis: "
        "the output for one example depends on the others.",
        "Give it batch_first=True, or transpose its input to (time, batch, features).",
    )  # fmt: skip


def _mixes(training: TrainingCopy, size: int) -> bool:
    """Whether the output for the first or the last example changes if the other examples do."""
    training.model.eval()

    def output(batch: Any) -> Tensor | None:
        training.batch = batch
        with torch.no_grad():
            training.run()
        return training.output_tensor

    batch = training.batch
    if not isinstance(batch, tuple | list) or not isinstance(batch[0], Tensor) or len(batch[0]) != size:
        return False
    others = batch[0].roll(1, 0).flip(1)
    for kept in (0, size - 1):
        changed = others.clone()
        changed[kept] = batch[0][kept]
        try:
            first, again, second = output(batch), output(batch), output((changed, *batch[1:]))
        except (RuntimeError, ValueError, IndexError, TypeError):
            return False
        if first is None or again is None or second is None or first.shape != second.shape:
            return False
        if not torch.equal(first, again):  # it draws random numbers
            return False
        if not torch.allclose(first[kept], second[kept], rtol=1e-3, atol=1e-5 * float(first.abs().max())):
            return True
    return False
