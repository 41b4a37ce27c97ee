"""Gradients: the backward pass agrees with finite differences."""

import torch
from torch import Tensor, nn

from wonderland.laws.compare import weighted_gradients
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-6
_STEP, _SMALL_STEPS = 1e-4, (1e-6, 1e-7, 1e-8)
_SMALL_STEP_TOLERANCE = 1e-4
_MAX_POINTS, _DIRECTIONS, _MAX_ENTRIES = (
    5,
    2,
    512,
)  # points on kinks, directions for each tensor, entries tried one by one


class _Kink(Exception):
    """The random point is near a kink, where there is no derivative to compare with."""


@law
def gradients(subject: Subject, *, full: bool | None = None) -> Verdict:
    """The backward pass agrees with central differences for every floating point input and parameter, in float64.

    Checked at random points without zero entries: entry by entry for up to 7 positions and 512 entries, beyond that (or
    with full=False) along random directions of each tensor. Where one-sided differences disagree there is a kink, and
    another point is drawn. Left out are the parameters (or "input") that a block names in `exempt`, and the row that an
    embedding's `padding_idx` keeps from learning.
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
    worst = 0.0
    for number, (name, leaf) in enumerate(point.leaves):
        for direction in _unit_directions(leaf) if full else _directions(subject, leaf):
            direction = point.without_padding_row(number, direction)
            if not bool(direction.any()):
                continue
            error, by_backward, by_differences = point.compare(number, direction)
            worst = max(worst, error)
            if not error <= TOLERANCE:
                entry = f"{name}{_entry(direction)}"
                if not full:
                    entry, by_backward, by_differences = _worst_entry(point, number) or (
                        name,
                        by_backward,
                        by_differences,
                    )
                witness = f"by {entry}, backward says {by_backward:.4g} and differences say {by_differences:.4g}"
                if not full and entry == name:
                    witness = f"along a random direction of {name}, backward says {by_backward:.4g} and differences {by_differences:.4g}"
                return subject.verdict(error, TOLERANCE, witness)
    return subject.verdict(worst, TOLERANCE, note="" if full else "along random directions")


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
        self.size = float((y.detach() * self.weights).abs().sum())
        self.value = self.total()

    def without_padding_row(self, number: int, direction: Tensor) -> Tensor:
        """A direction with zeros at the row that an embedding's `padding_idx` excludes from learning."""
        row = self.padding_rows.get(id(self.leaves[number][1]))
        return direction if row is None else direction.index_fill(0, torch.tensor([row], device=direction.device), 0)

    def total(self) -> float:
        """The weighted sum of the outputs at the current point."""
        with torch.no_grad():
            total = (self.subject.run(example=self.example) * self.weights).sum()
        return float(total.real if total.is_complex() else total)

    def at(self, number: int, direction: Tensor, step: float) -> float:
        """The weighted sum after a step along a direction of one leaf."""
        leaf = self.leaves[number][1]
        original = leaf.detach().clone()
        with torch.no_grad():
            leaf.add_(direction, alpha=step)
            total = self.total()
            leaf.copy_(original)
        return total

    def compare(self, number: int, direction: Tensor) -> tuple[float, float, float]:
        """(relative error, derivative by backward, derivative by differences) along a direction."""
        gradient = self.gradients[number]
        by_backward = float((gradient.conj() * direction).sum().real)
        near = self.at(number, direction, _STEP) - self.at(number, direction, -_STEP)
        by_differences = near / (2 * _STEP)
        size = max(float(gradient.norm()), abs(by_differences), 1e-5 * self.size, 1e-300)
        error = abs(by_backward - by_differences) / size
        if error <= TOLERANCE:
            return error, by_backward, by_differences
        far = self.at(number, direction, 2 * _STEP) - self.at(number, direction, -2 * _STEP)
        by_differences = (8 * near - far) / (12 * _STEP)
        error = abs(by_backward - by_differences) / size
        if error <= TOLERANCE:
            return error, by_backward, by_differences
        return self._compare_small_steps(number, direction, by_backward, size)

    def _compare_small_steps(
        self, number: int, direction: Tensor, by_backward: float, size: float
    ) -> tuple[float, float, float]:
        """Compare again with smaller steps, from both sides: the mismatch may come from a nearby kink or strong curvature.

        With thousands of kinks, one lies within almost any step and changes the difference slightly. A step is small enough
        when both sides agree; backward is correct if it then agrees with them up to the rounding of the differences.
        """
        before = after = by_differences = error = 0.0
        for step in _SMALL_STEPS:
            after = (self.at(number, direction, step) - self.value) / step
            before = (self.value - self.at(number, direction, -step)) / step
            by_differences, disagreement = (after + before) / 2, abs(after - before) / size
            error = abs(by_backward - by_differences) / size
            # The rounding error of a difference quotient.
            allowed = max(_SMALL_STEP_TOLERANCE, min(1e-15 * self.size / step / size, 10 * _SMALL_STEP_TOLERANCE))
            if error <= allowed:
                return 0.0, by_backward, by_differences
            if disagreement <= allowed:
                return error, by_backward, by_differences
        if min(before, after) <= by_backward <= max(before, after) or abs(after - before) > 1e-3 * size:
            raise _Kink(f"by {self.leaves[number][0]}, {before:.4g} from one side and {after:.4g} from the other")
        return error, by_backward, by_differences


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
        error, by_backward, by_differences = point.compare(number, direction)
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
