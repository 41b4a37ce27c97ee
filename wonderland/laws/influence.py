"""Which inputs move which outputs: what causality and locality have in common."""

from collections.abc import Callable

import torch
from torch import Tensor

from wonderland.laws.subject import Subject, Unfit
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-12
FORWARDS, BACKWARDS = 32, 256  # longer sequences are probed at that many outputs, evenly spread, both ends among them


def influence(subject: Subject, forbidden: Callable[[int, Tensor], Tensor], *, exact: bool, nothing: str) -> Verdict:
    """Change what an output must not see, output by output, then look at its derivatives there.

    `forbidden(i, positions)` marks the inputs that output i must not depend on. `exact` asks for zero, to the bit, also
    when the forbidden inputs are NaN or inf.
    """
    axis, out, t = subject.positions()
    steps = torch.arange(t)
    hidden = {i: forbidden(i, steps) for i in range(t)}
    hidden = {i: marks for i, marks in hidden.items() if marks.any()}
    if not hidden:
        raise Unfit(nothing)
    tolerance = 0.0 if exact else TOLERANCE * subject.coarse
    found = _moves(subject, hidden, axis, out)
    size = max(float(subject.base.abs().max()), 1e-300)
    if found and max(found.values()) > tolerance * size:
        return _told(subject, found, hidden, axis, out, tolerance, size)
    error = max(found.values(), default=0.0) / size
    if exact and subject.x.is_floating_point():
        for poison in (float("nan"), float("inf")):
            if words := _poisoned(subject, hidden, axis, out, poison):
                return subject.verdict(float("inf"), 0.0, words)
    if not subject.x.is_floating_point():
        return subject.verdict(error, tolerance)
    slope, words = _slopes(subject, hidden, axis, out)
    return subject.verdict(max(error, slope), tolerance, words)


def _spread(places: list[int], limit: int) -> list[int]:
    if len(places) <= limit:
        return places
    return [places[round(k * (len(places) - 1) / (limit - 1))] for k in range(limit)]


def _marks(marks: Tensor, x: Tensor, axis: int) -> Tensor:
    """Marks of positions, shaped to be spread over an input."""
    return marks.to(x.device).view([-1 if k == axis else 1 for k in range(x.dim())])


def _moves(subject: Subject, hidden: dict[int, Tensor], axis: int, out: int) -> dict[int, float]:
    """How far each output moves when everything hidden from it changes."""
    found = {}
    with torch.no_grad():
        for i in _spread(list(hidden), FORWARDS):
            x = subject.changed(subject.x, _marks(hidden[i], subject.x, axis))
            moved = subject.run(x, when="when other inputs changed")
            found[i] = float((moved.select(out, i) - subject.base.select(out, i)).abs().max())
    return {i: float("inf") if move != move else move for i, move in found.items()}


def _told(
    subject: Subject,
    found: dict[int, float],
    hidden: dict[int, Tensor],
    axis: int,
    out: int,
    tolerance: float,
    size: float,
) -> Verdict:
    """Name the output that moved most and the first one, each with the input it saw."""
    moved = [i for i, move in found.items() if move > tolerance * size]
    worst, first = max(moved, key=lambda i: found[i]), moved[0]
    words = _culprit(subject, worst, hidden[worst], axis, out)
    if first != worst:
        words += f"; the first of {len(moved)} such: {_culprit(subject, first, hidden[first], axis, out)}"
    elif len(moved) > 1:
        words += f"; {len(moved) - 1} later outputs moved too"
    return subject.verdict(found[worst] / size, tolerance, words)


def _culprit(subject: Subject, i: int, marks: Tensor, axis: int, out: int) -> str:
    best, words = -1.0, ""
    rows = subject.example.axis("batch", "output")
    with torch.no_grad():
        for j in marks.nonzero().flatten().tolist():
            one = torch.zeros_like(marks)
            one[j] = True
            x = subject.changed(subject.x, _marks(one, subject.x, axis))
            move = (subject.run(x).select(out, i) - subject.base.select(out, i)).abs().nan_to_num(nan=float("inf"))
            amount = float(move.max())
            if amount > best:
                best = amount
                row = ""
                if rows is not None and rows != out:
                    rank = rows - (rows > out)
                    row = f" (row {int(move.movedim(rank, 0).reshape(move.shape[rank], -1).amax(1).argmax())})"
                words = f"output {i} moved by {amount:.2g} when input {j} changed{row}"
    if best > 0:
        return words
    seen = marks.nonzero().flatten().tolist()
    return f"output {i} moved when inputs {seen[0]} to {seen[-1]} changed together"


def _poisoned(subject: Subject, hidden: dict[int, Tensor], axis: int, out: int, poison: float) -> str:
    with torch.no_grad():
        for i in _spread(list(hidden), FORWARDS):
            marks = _marks(hidden[i], subject.x, axis)
            x = torch.where(marks, torch.full_like(subject.x, poison), subject.x)
            moved = subject.run(x, when=f"when inputs hidden from output {i} were {poison}").select(out, i)
            if not torch.equal(moved, subject.base.select(out, i)):
                seen = hidden[i].nonzero().flatten().tolist()
                what = f"input {seen[0]} was" if len(seen) == 1 else f"inputs {seen[0]} to {seen[-1]} were"
                return f"output {i} changed when {what} {poison}"
    return ""


def _slopes(subject: Subject, hidden: dict[int, Tensor], axis: int, out: int) -> tuple[float, str]:
    """The largest derivative of an output by an input hidden from it, as a share of the largest derivative there is."""
    x = subject.x.clone().requires_grad_()
    y = subject.run(x)
    if not y.requires_grad:
        return 0.0, ""
    weights = subject.noise(y.detach())
    largest, worst, where = 0.0, 0.0, (0, 0, 0)
    batch = subject.example.axis("batch")
    for i in _spread(list(hidden), BACKWARDS):
        total = (y.select(out, i) * weights.select(out, i)).sum()
        (slope,) = torch.autograd.grad(total.real if total.is_complex() else total, x, retain_graph=True)
        slope = slope.abs().nan_to_num(nan=float("inf"))
        largest = max(largest, float(slope.max()))
        leak = torch.where(_marks(hidden[i], x, axis), slope, torch.zeros_like(slope))
        if float(leak.max()) > worst:
            worst = float(leak.max())
            index = torch.unravel_index(leak.argmax(), leak.shape)
            where = (i, int(index[axis]), 0 if batch is None else int(index[batch]))
    i, j, row = where
    share = worst / largest if worst else 0.0
    return share, f"output {i} has a derivative of {worst:.2g} by input {j} (row {row})"
