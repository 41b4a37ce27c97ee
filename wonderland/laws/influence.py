"""The check behind causality and locality: outputs must not depend on the inputs that are hidden from them."""

from collections.abc import Callable

import torch
from torch import Tensor

from wonderland.laws.subject import NotApplicable, Subject
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-12
MAX_CHANGED, MAX_DIFFERENTIATED = 32, 256  # so many outputs are checked in long sequences, evenly spread


def influence(
    subject: Subject, forbidden: Callable[[int, Tensor], Tensor], *, exact: bool, if_unrestricted: str
) -> Verdict:
    """Change the inputs that an output must not depend on, output by output; then check its derivatives by them.

    `forbidden(i, positions)` marks the inputs that output i must not depend on. With `exact`, outputs must be bitwise equal,
    also when the forbidden inputs are NaN or inf. `if_unrestricted` is the reason given when no input is forbidden.
    """
    axis, out, t = subject.positions()
    steps = torch.arange(t)
    hidden = {i: forbidden(i, steps) for i in range(t)}
    hidden = {i: marks for i, marks in hidden.items() if marks.any()}
    if not hidden:
        raise NotApplicable(if_unrestricted)
    tolerance = 0.0 if exact else TOLERANCE * subject.tolerance_factor
    changes = _output_changes(subject, hidden, axis, out)
    size = max(float(subject.base.abs().max()), 1e-300)
    if changes and max(changes.values()) > tolerance * size:
        return _broken(subject, changes, hidden, axis, out, tolerance, size)
    error = max(changes.values(), default=0.0) / size
    if exact and subject.x.is_floating_point():
        for filler in (float("nan"), float("inf")):
            if witness := _change_by_nonfinite(subject, hidden, axis, out, filler):
                return subject.verdict(float("inf"), 0.0, witness)
    if not subject.x.is_floating_point():
        return subject.verdict(error, tolerance)
    derivative, witness = _hidden_derivative(subject, hidden, axis, out)
    return subject.verdict(max(error, derivative), tolerance, witness)


def _evenly_spaced(places: list[int], limit: int) -> list[int]:
    if len(places) <= limit:
        return places
    return [places[round(k * (len(places) - 1) / (limit - 1))] for k in range(limit)]


def _marks(marks: Tensor, x: Tensor, axis: int) -> Tensor:
    """Marks of positions, shaped to broadcast over an input."""
    return marks.to(x.device).view([-1 if k == axis else 1 for k in range(x.dim())])


def _output_changes(subject: Subject, hidden: dict[int, Tensor], axis: int, out: int) -> dict[int, float]:
    """The largest change of each output when all inputs hidden from it change."""
    changes = {}
    with torch.no_grad():
        for i in _evenly_spaced(list(hidden), MAX_CHANGED):
            x = subject.changed(subject.x, _marks(hidden[i], subject.x, axis))
            moved = subject.run(x, when="when other inputs changed")
            changes[i] = float((moved.select(out, i) - subject.base.select(out, i)).abs().max())
    return {i: float("inf") if change != change else change for i, change in changes.items()}


def _broken(
    subject: Subject,
    changes: dict[int, float],
    hidden: dict[int, Tensor],
    axis: int,
    out: int,
    tolerance: float,
    size: float,
) -> Verdict:
    """The verdict that names the output that changed most and the first that changed, each with the input responsible."""
    moved = [i for i, change in changes.items() if change > tolerance * size]
    worst, first = max(moved, key=lambda i: changes[i]), moved[0]
    witness = _worst_input(subject, worst, hidden[worst], axis, out)
    if first != worst:
        witness += f"; the first of {len(moved)} such: {_worst_input(subject, first, hidden[first], axis, out)}"
    elif len(moved) > 1:
        witness += f"; {len(moved) - 1} later outputs moved too"
    return subject.verdict(changes[worst] / size, tolerance, witness)


def _worst_input(subject: Subject, i: int, marks: Tensor, axis: int, out: int) -> str:
    """The hidden input that changes output i most, in words."""
    largest, witness = -1.0, ""
    rows = subject.example.axis("batch", "output")
    with torch.no_grad():
        for j in marks.nonzero().flatten().tolist():
            only_j = torch.zeros_like(marks)
            only_j[j] = True
            x = subject.changed(subject.x, _marks(only_j, subject.x, axis))
            change = (subject.run(x).select(out, i) - subject.base.select(out, i)).abs().nan_to_num(nan=float("inf"))
            amount = float(change.max())
            if amount > largest:
                largest = amount
                row = ""
                if rows is not None and rows != out:
                    rank = rows - (rows > out)
                    row = f" (row {int(change.movedim(rank, 0).reshape(change.shape[rank], -1).amax(1).argmax())})"
                witness = f"output {i} moved by {amount:.2g} when input {j} changed{row}"
    if largest > 0:
        return witness
    inputs = marks.nonzero().flatten().tolist()
    return f"output {i} moved when inputs {inputs[0]} to {inputs[-1]} changed together"


def _change_by_nonfinite(subject: Subject, hidden: dict[int, Tensor], axis: int, out: int, filler: float) -> str:
    """The first output that changes when the inputs hidden from it are NaN or inf, in words; "" if none does."""
    with torch.no_grad():
        for i in _evenly_spaced(list(hidden), MAX_CHANGED):
            marks = _marks(hidden[i], subject.x, axis)
            x = torch.where(marks, torch.full_like(subject.x, filler), subject.x)
            moved = subject.run(x, when=f"when inputs hidden from output {i} were {filler}").select(out, i)
            if not torch.equal(moved, subject.base.select(out, i)):
                inputs = hidden[i].nonzero().flatten().tolist()
                which = f"input {inputs[0]} was" if len(inputs) == 1 else f"inputs {inputs[0]} to {inputs[-1]} were"
                return f"output {i} changed when {which} {filler}"
    return ""


def _hidden_derivative(subject: Subject, hidden: dict[int, Tensor], axis: int, out: int) -> tuple[float, str]:
    """The largest derivative of an output by an input hidden from it, relative to the largest derivative; and where."""
    x = subject.x.clone().requires_grad_()
    y = subject.run(x)
    if not y.requires_grad:
        return 0.0, ""
    weights = subject.noise(y.detach())
    largest, worst, where = 0.0, 0.0, (0, 0, 0)
    batch = subject.example.axis("batch")
    for i in _evenly_spaced(list(hidden), MAX_DIFFERENTIATED):
        total = (y.select(out, i) * weights.select(out, i)).sum()
        (gradient,) = torch.autograd.grad(total.real if total.is_complex() else total, x, retain_graph=True)
        gradient = gradient.abs().nan_to_num(nan=float("inf"))
        largest = max(largest, float(gradient.max()))
        leak = torch.where(_marks(hidden[i], x, axis), gradient, torch.zeros_like(gradient))
        if float(leak.max()) > worst:
            worst = float(leak.max())
            index = torch.unravel_index(leak.argmax(), leak.shape)
            where = (i, int(index[axis]), 0 if batch is None else int(index[batch]))
    i, j, row = where
    share = worst / largest if worst else 0.0
    return share, f"output {i} has a derivative of {worst:.2g} by input {j} (row {row})"
