"""Steps of training as they are: does the loss fall at this learning rate, and does it scale with the batch?"""

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from wonderland.understand.doctoring.exam import Exam, norm
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.patient import Patient

SMALLER = 100
STAYS, SHOOTS = 0.1, 0.3  # of the first loss: how far above it the later half lies, or the highest
WORSE = 0.02  # of the first loss: how far the later half lies above that of a rate a hundred times smaller
REPLACED = 0.3  # share of its size by which the first step moves a weight matrix


def slopes(patient: Patient) -> tuple[float, list[Tensor]]:
    """The loss and the gradients of all parameters in training, by torch itself."""
    trained = [one for one in patient.model.parameters() if one.requires_grad]
    loss = patient.run()
    if not loss.requires_grad:
        return float(loss.detach()), []
    found = torch.autograd.grad(loss, trained, allow_unused=True)
    return float(loss.detach()), [slope for slope in found if slope is not None]


def reduction(exam: Exam, fresh: Callable[[], Patient], notes: list[str]) -> Iterator[Finding]:
    """A batch given twice in one doubles a loss that is summed over examples, and leaves a mean as it is."""
    once, twice = fresh(), fresh()
    size = _rows(twice.batch, exam.targets)
    if size is None:
        notes.append("how the loss is reduced; the batch has no axis of examples.")
        return
    twice.batch = tree_map(
        lambda x: torch.cat([x, x]) if isinstance(x, Tensor) and x.dim() and x.shape[0] == size else x, twice.batch
    )
    try:
        loss, slope = slopes(once)
        double, steeper = slopes(twice)
    except Exception:  # whatever a user's program says to a batch of another size
        notes.append("how the loss is reduced; the model does not run on a batch of twice the size.")
        return
    one = sum(norm(x) ** 2 for x in slope) ** 0.5
    two = sum(norm(x) ** 2 for x in steeper) ** 0.5
    if not (loss and one and isfinite(double / loss) and isfinite(two / one)):
        return
    if 1.7 < double / loss < 2.3 and two / one > 1.3:
        step = _reducer(exam)
        yield exam.finding(
            "loss summed over the batch", step, two / one,
            f"Twice the batch gives {double / loss:.2f} times the loss and {two / one:.2f} times the gradient.",
            "Take the mean over examples (reduction='mean'), so that the learning rate does not depend on the batch size.",
        )  # fmt: skip


def _rows(batch: Any, targets: Any) -> int | None:
    shown = [targets, *tree_leaves(batch)]
    return next((x.shape[0] for x in shown if isinstance(x, Tensor) and x.dim()), None)


def _reducer(exam: Exam) -> Any:
    """The step that made one number of many, seen from the loss."""
    step = exam.loss.origin
    while step is not None:
        smooth = [value for value in step.inputs if value.smooth and id(value) in exam.alive]
        if not smooth or max(value.numel for value in smooth) > 1:
            return step
        step = max(smooth, key=lambda value: value.numel).origin
    return exam.loss.origin


def rate(exam: Exam, fresh: Callable[[], Patient], steps: int, notes: list[str]) -> Iterator[Finding]:
    """The loss of the same batch over a few steps, at the learning rate given and at one a hundred times smaller."""
    patient = fresh()
    if patient.optimizer is None:
        notes.append("the learning rate; give optimizer= or lr=.")
        return
    if isinstance(patient.optimizer, torch.optim.LBFGS):
        notes.append("the learning rate; LBFGS searches for its own.")
        return
    try:
        given, moved = _losses(patient, steps, 1.0)
        rises = _rises(given)
        for smaller in (SMALLER, SMALLER**2, SMALLER**3):
            small, _ = _losses(fresh(), steps, 1 / smaller)
            # A rate that is right learns more of the batch than one a hundred times smaller.
            worse = _late(given) > _late(small) + WORSE * max(abs(given[0]), 0.05)
            if not rises and moved <= REPLACED and not worse:
                return
            if not _rises(small) and small[-1] <= small[0]:
                break
        else:
            return
    except (RuntimeError, ValueError, IndexError):
        notes.append("the learning rate; a second step of training fails.")
        return
    lr = max(float(group["lr"]) for group in patient.optimizer.param_groups)
    yield Finding(
        "learning rate too large", "", exam.home, lr,
        f"At {lr:.3g} {_reached(given) if rises or moved <= REPLACED else f'the first step moves weights by {moved:.0%} of their size'}; "
        f"at {lr / smaller:.3g} the loss of the batch falls from {small[0]:.4g} to {small[-1]:.4g} in {steps} steps.",
        f"Lower it: try {lr / smaller:.2g}, with a warmup if it must be larger.",
    )  # fmt: skip


def _reached(losses: list[float]) -> str:
    peak = max(losses, key=lambda loss: loss if isfinite(loss) else float("inf"))
    if not isfinite(peak):
        return "it stops being finite"
    way = f"rises from {losses[0]:.3g} to" if peak > losses[0] else f"is {losses[0]:.3g} at first and later"
    return f"the loss of the batch {way} {peak if peak > losses[0] else losses[-1]:.3g}"


def _losses(patient: Patient, steps: int, scale: float) -> tuple[list[float], float]:
    """The losses of some steps, and how far the first one moves the middle weight matrix, as a share of its size."""
    optimizer = patient.optimizer
    assert optimizer is not None
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * scale
    found: list[float] = []
    moved: list[float] = []
    for number in range(steps + 1):
        loss = patient.run()
        found.append(float(loss.detach()))
        if number == steps or not isfinite(found[-1]):
            break
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        before = [one.detach().clone() for one in patient.model.parameters() if one.dim() > 1] if not number else []
        optimizer.step()
        after = (one for one in patient.model.parameters() if one.dim() > 1)
        moved += sorted(norm(new - old) / norm(old) for old, new in zip(before, after, strict=False) if norm(old))
    return found, moved[len(moved) // 2] if moved else 0.0


def _late(losses: list[float]) -> float:
    """The middle of the later half."""
    half = sorted(losses[1 + (len(losses) - 1) // 2 :])
    return half[len(half) // 2] if half and all(map(isfinite, losses)) else float("inf")


def _rises(losses: list[float]) -> bool:
    """Whether training made the loss worse: the later half stays above the start, or it shot far beyond it."""
    if not all(map(isfinite, losses)):
        return True
    start, rest = losses[0], losses[1:]
    scale = max(abs(start), 0.05)
    return _late(losses) > start + STAYS * scale or max(rest) > start + SHOOTS * scale
