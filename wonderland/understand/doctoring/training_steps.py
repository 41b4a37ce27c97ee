"""Checks that run training steps: whether the loss is averaged over the batch, and whether the learning rate is too large."""

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, norm
from wonderland.understand.doctoring.training_copy import TrainingCopy

SMALLER = 100  # the factor between the learning rates that are compared
# Relative to the first loss:
RISE = 0.1  # of the median of the later half
PEAK = 0.3  # of the highest loss
WORSE = 0.02  # of the later half, against that with the smaller learning rate
MAX_UPDATE = 0.3  # of the first step, relative to the norm of a weight matrix


def autograd_gradients(training: TrainingCopy) -> tuple[float, list[Tensor]]:
    """The loss and the gradients of all trainable parameters, computed by torch.autograd."""
    trainable = [parameter for parameter in training.model.parameters() if parameter.requires_grad]
    loss = training.run()
    if not loss.requires_grad:
        return float(loss.detach()), []
    computed = torch.autograd.grad(loss, trainable, allow_unused=True)
    return float(loss.detach()), [gradient for gradient in computed if gradient is not None]


def loss_reduction(trace: StepTrace, new_copy: Callable[[], TrainingCopy], notes: list[str]) -> Iterator[Finding]:
    """A batch that contains every example twice doubles a summed loss, and does not change a mean."""
    once, twice = new_copy(), new_copy()
    size = _batch_size(twice.batch, trace.targets)
    if size is None:
        notes.append("the reduction of the loss, since the batch has no batch axis.")
        return
    twice.batch = tree_map(
        lambda x: torch.cat([x, x]) if isinstance(x, Tensor) and x.dim() and x.shape[0] == size else x, twice.batch
    )
    try:
        loss, gradients = autograd_gradients(once)
        double_loss, double_gradients = autograd_gradients(twice)
    except Exception:  # a model may raise anything on a batch of another size
        notes.append("the reduction of the loss, since the model does not run on a batch of twice the size.")
        return
    size_once = sum(norm(x) ** 2 for x in gradients) ** 0.5
    size_twice = sum(norm(x) ** 2 for x in double_gradients) ** 0.5
    if not (loss and size_once and isfinite(double_loss / loss) and isfinite(size_twice / size_once)):
        return
    if 1.7 < double_loss / loss < 2.3 and size_twice / size_once > 1.3:
        step = _reducer(trace)
        yield trace.finding(
            "loss summed over the batch", step, size_twice / size_once,
            f"Twice the batch gives {double_loss / loss:.2f} times the loss and {size_twice / size_once:.2f} times the gradient.",
            "Take the mean over examples (reduction='mean'), so that the learning rate does not depend on the batch size.",
        )  # fmt: skip


def _batch_size(batch: Any, targets: Any) -> int | None:
    tensors = [targets, *tree_leaves(batch)]
    return next((x.shape[0] for x in tensors if isinstance(x, Tensor) and x.dim()), None)


def _reducer(trace: StepTrace) -> Any:
    """The step that reduces the loss to one number."""
    step = trace.loss.origin
    while step is not None:
        smooth = [value for value in step.inputs if value.smooth and id(value) in trace.differentiable]
        if not smooth or max(value.numel for value in smooth) > 1:
            return step
        step = max(smooth, key=lambda value: value.numel).origin
    return trace.loss.origin


def learning_rate(
    trace: StepTrace, new_copy: Callable[[], TrainingCopy], steps: int, notes: list[str]
) -> Iterator[Finding]:
    """The loss of the same batch over a few steps, at the learning rate given and at one a hundred times smaller."""
    training = new_copy()
    if training.optimizer is None:
        notes.append("the learning rate: give optimizer= or lr=.")
        return
    if isinstance(training.optimizer, torch.optim.LBFGS):
        notes.append("the learning rate, since LBFGS has a line search.")
        return
    try:
        losses, update = _losses(training, steps, 1.0)
        rises = _rises(losses)
        for smaller in (SMALLER, SMALLER**2, SMALLER**3):
            small, _ = _losses(new_copy(), steps, 1 / smaller)
            # A learning rate that is not too large lowers the loss more than one a hundred times smaller.
            worse = _late(losses) > _late(small) + WORSE * max(abs(losses[0]), 0.05)
            if not rises and update <= MAX_UPDATE and not worse:
                return
            if not _rises(small) and small[-1] <= small[0]:
                break
        else:
            return
    except (RuntimeError, ValueError, IndexError):
        notes.append("the learning rate, since a second training step fails.")
        return
    lr = max(float(group["lr"]) for group in training.optimizer.param_groups)
    yield Finding(
        "learning rate too large", "", trace.default_line, lr,
        f"At {lr:.3g} {_course(losses) if rises or update <= MAX_UPDATE else f'the first step changes weights by {update:.0%} of their norm'}; "
        f"at {lr / smaller:.3g} the loss of the batch falls from {small[0]:.4g} to {small[-1]:.4g} in {steps} steps.",
        f"Try {lr / smaller:.2g}, or a warmup.",
    )  # fmt: skip


def _course(losses: list[float]) -> str:
    peak = max(losses, key=lambda loss: loss if isfinite(loss) else float("inf"))
    if not isfinite(peak):
        return "the loss becomes non-finite"
    way = f"rises from {losses[0]:.3g} to" if peak > losses[0] else f"is {losses[0]:.3g} at first and later"
    return f"the loss of the batch {way} {peak if peak > losses[0] else losses[-1]:.3g}"


def _losses(training: TrainingCopy, steps: int, scale: float) -> tuple[list[float], float]:
    """The loss before and after each step, and the change of the median weight matrix in the first step relative to its norm."""
    optimizer = training.optimizer
    assert optimizer is not None
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * scale
    losses: list[float] = []
    updates: list[float] = []
    for number in range(steps + 1):
        loss = training.run()
        losses.append(float(loss.detach()))
        if number == steps or not isfinite(losses[-1]):
            break
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        before = (
            [weight.detach().clone() for weight in training.model.parameters() if weight.dim() > 1]
            if not number
            else []
        )
        optimizer.step()
        after = (weight for weight in training.model.parameters() if weight.dim() > 1)
        updates += sorted(norm(new - old) / norm(old) for old, new in zip(before, after, strict=False) if norm(old))
    return losses, updates[len(updates) // 2] if updates else 0.0


def _late(losses: list[float]) -> float:
    """The median of the later half."""
    half = sorted(losses[1 + (len(losses) - 1) // 2 :])
    return half[len(half) // 2] if half and all(map(isfinite, losses)) else float("inf")


def _rises(losses: list[float]) -> bool:
    """Whether training raised the loss: the later half stays above the first loss, or a peak is far above it."""
    if not all(map(isfinite, losses)):
        return True
    start, rest = losses[0], losses[1:]
    scale = max(abs(start), 0.05)
    return _late(losses) > start + RISE * scale or max(rest) > start + PEAK * scale
