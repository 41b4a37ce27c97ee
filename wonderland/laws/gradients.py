"""Gradients: the backward pass agrees with finite differences."""

import torch
from torch import Tensor, nn

from wonderland.laws.compare import weighted_gradients
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-6
_STEPS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)  # a smaller one is tried where a larger one decides nothing
_ROUNDING = 1e-15  # of an output, relative to its size
_CERTAIN = 10  # how much larger than the doubts about a difference an error must be
_MAX_POINTS, _DIRECTIONS, _MAX_ENTRIES = 5, 2, 512  # points on kinks, directions for each tensor, entries one by one


class _Kink(Exception):
    """The random point is near a kink, where there is no derivative to compare with."""


@law
def gradients(subject: Subject, *, full: bool | None = None) -> Verdict:
    """The backward pass agrees with central differences for every floating point input and parameter, in float64.

    The error reported is the largest one measured, relative to the norm of the gradient by that tensor; 1e-6 is allowed.
    Checked at random points without zero entries: entry by entry for up to 7 positions and 512 entries, beyond that (or
    with full=False) along random directions of each tensor. Where one-sided differences disagree at every step there is a
    kink, and another point is drawn. Left out are the parameters (or "input") that a block names in `exempt`, which a
    verdict says, and the row that an embedding's `padding_idx` keeps from learning.
    """
    if not subject.precise:
        numbers = str(subject.computes_in).removeprefix("torch.")
        raise NotApplicable(f"it computes in {numbers} whatever it is given, which is too coarse for differences")
    if not (subject.base.is_floating_point() or subject.base.is_complex()):
        raise NotApplicable("its output is not of floating point numbers")
    exempt, kink = _exempt(subject), ""
    for _ in range(_MAX_POINTS):
        try:
            return _check_point(subject, exempt, full)
        except _Kink as reason:
            kink = str(reason)
    raise NotApplicable(f"there is a kink at each of {_MAX_POINTS} random points: {kink}")


def _check_point(subject: Subject, exempt: set[str], full: bool | None) -> Verdict:
    point = _Point(subject, exempt)
    if not point.leaves:
        raise NotApplicable("it has neither inputs nor parameters to differentiate by")
    entries = sum(leaf.numel() for _, leaf in point.leaves)
    length = subject.x.shape[1] if subject.x.dim() > 1 else 1
    if full is None:
        full = length <= 7 and entries <= _MAX_ENTRIES
    worst, kink = 0.0, None
    for number, (name, leaf) in enumerate(point.leaves):
        error, entry, by_backward, by_differences = 0.0, "", 0.0, 0.0
        for direction in _unit_directions(leaf) if full else _directions(subject, leaf):
            direction = point.without_padding_row(number, direction)
            if not bool(direction.any()):
                continue
            try:
                measured = point.compare(number, direction)
            except _Kink as reason:  # another direction may still show an error
                kink = reason
                continue
            if not measured[0] <= error:
                error, by_backward, by_differences = measured
                entry = f"{name}{_entry(direction)}"
        worst = max(worst, error)
        if error <= TOLERANCE:
            continue
        if not full:
            worst_entry = _worst_entry(point, number)
            if worst_entry is None:
                said = f"backward says {by_backward:.6g} and differences say {by_differences:.6g}"
                return subject.verdict(error, TOLERANCE, f"along a random direction of {name}, {said}")
            entry, by_backward, by_differences = worst_entry
        witness = f"by {entry}, backward says {by_backward:.6g} and differences say {by_differences:.6g}"
        return subject.verdict(error, TOLERANCE, witness)
    if kink is not None:
        raise kink
    notes = ([] if full else ["along random directions"]) + ([f"exempt: {', '.join(sorted(exempt))}"] if exempt else [])
    return subject.verdict(worst, TOLERANCE, note="; ".join(notes))


class _Point:
    """A weighted sum of the outputs at a random point, its gradient by backward, and its finite differences."""

    def __init__(self, subject: Subject, exempt: set[str]):
        self.subject = subject
        self.leaves: list[tuple[str, Tensor]] = []
        place = subject.example.place

        def draw(where: int | str, value: Tensor) -> Tensor:
            if not (value.is_floating_point() or value.is_complex()):
                return value
            drawn = _nonzero(subject.noise(value)).requires_grad_()
            name = "input" if where == place else f"argument {where}"
            if name not in exempt:
                self.leaves.append((name, drawn))
            return drawn

        self.example = subject.example.over(draw)
        with torch.no_grad():
            for _, value in subject.block.named_parameters():
                value.copy_(torch.where(value == 0, 0.1 * _nonzero(subject.noise(value)), value))
        self.leaves += [(name, value) for name, value in subject.parameters() if name not in exempt]
        self.padding_rows = {
            id(module.weight): module.padding_idx
            for module in subject.block.modules()
            if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.padding_idx is not None
        }
        y = subject.run(example=self.example)
        self.weights = subject.noise(y.detach())
        self.gradients = weighted_gradients(y, self.weights, [leaf for _, leaf in self.leaves])
        self.value = self.outputs()
        self.size = float((self.value * self.weights).abs().sum())

    def without_padding_row(self, number: int, direction: Tensor) -> Tensor:
        """A direction with zeros at the row that an embedding's `padding_idx` excludes from learning."""
        row = self.padding_rows.get(id(self.leaves[number][1]))
        return direction if row is None else direction.index_fill(0, torch.tensor([row], device=direction.device), 0)

    def outputs(self) -> Tensor:
        """The outputs at the current point."""
        with torch.no_grad():
            return self.subject.run(example=self.example).clone()

    def rise(self, number: int, direction: Tensor, step: float) -> float:
        """How much the weighted sum of the outputs rises with a step along a direction of one leaf.

        Outputs are subtracted before they are summed, which costs fewer digits than subtracting two sums.
        """
        leaf = self.leaves[number][1]
        original = leaf.detach().clone()
        with torch.no_grad():
            leaf.add_(direction, alpha=step)
            total = ((self.outputs() - self.value) * self.weights).sum()
            leaf.copy_(original)
        return float(total.real if total.is_complex() else total)

    def compare(self, number: int, direction: Tensor) -> tuple[float, float, float]:
        r"""(relative error, derivative by backward, derivative by differences) along a direction.

        With central differences :math:`d(h) = (f(h) - f(-h)) / 2h` and, where they disagree with the backward pass, their
        extrapolation :math:`(4 d(h) - d(2h)) / 3`. A step confirms the backward pass when both agree up to the tolerance
        and rounding is smaller than that. It refutes it when they differ by far more than is uncertain: rounding, the
        extrapolation, the difference from the step before, and the difference between the two sides, which a kink or
        strong curvature within the step makes large. A step that does neither is followed by a smaller one; when none
        decides, there is a kink at this point.
        """
        gradient = self.gradients[number]
        by_backward = float((gradient.conj() * direction).sum().real)
        after = before = 0.0
        previous = float("inf")
        for step in _STEPS:
            up, down = self.rise(number, direction, step), self.rise(number, direction, -step)
            after, before = up / step, -down / step
            central = (after + before) / 2
            size = max(float(gradient.norm()), abs(central), 1e-5 * self.size, 1e-300)
            rounding = _ROUNDING * self.size / step / size
            error = abs(by_backward - central) / size
            if error <= TOLERANCE and rounding <= TOLERANCE:
                return error, by_backward, central
            far = self.rise(number, direction, 2 * step) - self.rise(number, direction, -2 * step)
            extrapolated = (4 * central - far / (4 * step)) / 3
            error = abs(by_backward - extrapolated) / size
            if error <= TOLERANCE and rounding <= TOLERANCE:
                return error, by_backward, extrapolated
            doubts = (after - before, extrapolated - central, extrapolated - previous)
            if not error <= TOLERANCE + 4 * rounding + _CERTAIN * max(map(abs, doubts)) / size:
                return error, by_backward, extrapolated
            previous = extrapolated
        raise _Kink(
            f"by {self.leaves[number][0]}, {before + 0.0:.4g} from one side and {after + 0.0:.4g} from the other"
        )


def _nonzero(drawn: Tensor) -> Tensor:
    """Random numbers shifted away from zero."""
    if drawn.is_complex():
        return drawn + 0.1
    return drawn + 0.1 * torch.where(drawn < 0, -1.0, 1.0)


def _directions(subject: Subject, leaf: Tensor) -> list[Tensor]:
    return [subject.noise(leaf.detach()) for _ in range(_DIRECTIONS)]


def _unit_directions(leaf: Tensor) -> list[Tensor]:
    directions = []
    for entry in range(leaf.numel()):
        for unit in (1.0, 1j) if leaf.is_complex() else (1.0,):
            direction = torch.zeros_like(leaf.detach())
            direction.view(-1)[entry] = torch.tensor(unit)
            directions.append(direction)
    return directions


def _entry(direction: Tensor) -> str:
    if not direction.dim():
        return ""
    return str([int(number) for number in (direction != 0).nonzero()[0]])


def _worst_entry(point: _Point, number: int) -> tuple[str, float, float] | None:
    """(entry, derivative by backward, derivative by differences) for the entry of a tensor with the largest error."""
    name, leaf = point.leaves[number]
    if leaf.numel() > _MAX_ENTRIES:
        return None
    worst, result = TOLERANCE, None
    for axis in _unit_directions(leaf):
        direction = point.without_padding_row(number, axis)
        if not bool(direction.any()):
            continue
        try:
            error, by_backward, by_differences = point.compare(number, direction)
        except _Kink:  # along one entry only: the others tell
            continue
        if error > worst:
            worst, result = error, (f"{name}{_entry(direction)}", by_backward, by_differences)
    return result


def _exempt(subject: Subject) -> set[str]:
    """The full names of parameters that modules of the block exempt."""
    exempt: set[str] = set()
    for path, module in subject.block.named_modules():
        names = getattr(module, "exempt", ())
        exempt |= {
            name if name == "input" or not path else f"{path}.{name}" for name in names if name != "input" or not path
        }
    return exempt
