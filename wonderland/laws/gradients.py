"""Gradients: what the backward pass says is what differences say."""

import torch
from torch import Tensor, nn

from wonderland.laws.compare import slopes
from wonderland.laws.subject import Subject, Unfit, law
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-6
_STEP, _SMALL, _CLOSE = 1e-4, (1e-6, 1e-7, 1e-8), 1e-4
_DRAWS, _PROBES, _FULL = 5, 2, 512


class _Kink(Exception):
    """The point drawn lies on a kink, where there is no derivative to compare with."""


@law
def gradients(subject: Subject, *, full: bool | None = None) -> Verdict:
    """Backward agrees with central differences, by every floating point input and every parameter, in float64.

    At random points whose entries are not zero. Each entry is tried for up to 7 positions and 512 entries; beyond that (or
    with full=False) random directions, each through one tensor. Where one-sided differences disagree there is a kink, and
    another point is drawn. What a block declares in `exempt` is left out: names of its parameters, or "input"; and so is the
    row that an embedding's `padding_idx` keeps from learning.
    """
    if not subject.precise:
        numbers = str(subject.computes_in).removeprefix("torch.")
        raise Unfit(f"it computes in {numbers} whatever it is given, which is too coarse for differences")
    if not (subject.base.is_floating_point() or subject.base.is_complex()):
        raise Unfit("its output is not of floating point numbers")
    exempt, kink = _exempt(subject), ""
    for _ in range(_DRAWS):
        try:
            return _tried(subject, exempt, full)
        except _Kink as found:
            kink = str(found)
    raise Unfit(f"there is a kink at each of {_DRAWS} random points: {kink}")


def _tried(subject: Subject, exempt: set[str], full: bool | None) -> Verdict:
    point = _Point(subject, exempt)
    if not point.leaves:
        raise Unfit("it has neither inputs nor parameters to differentiate by")
    entries = sum(leaf.numel() for _, leaf in point.leaves)
    length = subject.x.shape[1] if subject.x.dim() > 1 else 1
    if full is None:
        full = length <= 7 and entries <= _FULL
    worst = 0.0
    for number, (name, leaf) in enumerate(point.leaves):
        for direction in _axes(leaf) if full else _directions(subject, leaf):
            direction = point.free(number, direction)
            if not bool(direction.any()):
                continue
            error, said, measured = point.compare(number, direction)
            worst = max(worst, error)
            if not error <= TOLERANCE:
                where = f"{name}{_entry(direction)}"
                if not full:
                    where, said, measured = _culprit(point, number) or (name, said, measured)
                words = f"by {where}, backward says {said:.4g} and differences say {measured:.4g}"
                if not full and where == name:
                    words = (
                        f"along a random direction of {name}, backward says {said:.4g} and differences {measured:.4g}"
                    )
                return subject.verdict(error, TOLERANCE, words)
    return subject.verdict(worst, TOLERANCE, note="" if full else "along random directions")


class _Point:
    """A weighted sum of the outputs at a random point, its gradient, and its differences."""

    def __init__(self, subject: Subject, exempt: set[str]):
        self.subject = subject
        self.leaves: list[tuple[str, Tensor]] = []
        place = subject.example.place

        def draw(where: int | str, value: Tensor) -> Tensor:
            if not (value.is_floating_point() or value.is_complex()):
                return value
            drawn = _away(subject.noise(value)).requires_grad_()
            name = "input" if where == place else f"argument {where}"
            if name not in exempt:
                self.leaves.append((name, drawn))
            return drawn

        self.example = subject.example.over(draw)
        with torch.no_grad():
            for _, value in subject.block.named_parameters():
                value.copy_(torch.where(value == 0, 0.1 * _away(subject.noise(value)), value))
        self.leaves += [(name, value) for name, value in subject.parameters() if name not in exempt]
        self.held = {
            id(module.weight): module.padding_idx
            for module in subject.block.modules()
            if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.padding_idx is not None
        }
        y = subject.run(example=self.example)
        self.weights = subject.noise(y.detach())
        self.slopes = slopes(y, self.weights, [leaf for _, leaf in self.leaves])
        self.size = float((y.detach() * self.weights).abs().sum())
        self.value = self.total()

    def free(self, number: int, direction: Tensor) -> Tensor:
        """A direction without the row that an embedding keeps from learning, as its `padding_idx` says."""
        rows = self.held.get(id(self.leaves[number][1]))
        return direction if rows is None else direction.index_fill(0, torch.tensor([rows], device=direction.device), 0)

    def total(self) -> float:
        with torch.no_grad():
            found = (self.subject.run(example=self.example) * self.weights).sum()
        return float(found.real if found.is_complex() else found)

    def at(self, number: int, direction: Tensor, step: float) -> float:
        """The sum a step along a direction of one leaf."""
        leaf = self.leaves[number][1]
        kept = leaf.detach().clone()
        with torch.no_grad():
            leaf.add_(direction, alpha=step)
            found = self.total()
            leaf.copy_(kept)
        return found

    def compare(self, number: int, direction: Tensor) -> tuple[float, float, float]:
        """(relative error, what backward says, what differences say) along a direction."""
        slope = self.slopes[number]
        said = float((slope.conj() * direction).sum().real)
        near = self.at(number, direction, _STEP) - self.at(number, direction, -_STEP)
        measured = near / (2 * _STEP)
        size = max(float(slope.norm()), abs(measured), 1e-5 * self.size, 1e-300)
        error = abs(said - measured) / size
        if error <= TOLERANCE:
            return error, said, measured
        far = self.at(number, direction, 2 * _STEP) - self.at(number, direction, -2 * _STEP)
        measured = (8 * near - far) / (12 * _STEP)
        error = abs(said - measured) / size
        if error <= TOLERANCE:
            return error, said, measured
        return self._closer(number, direction, said, size)

    def _closer(self, number: int, direction: Tensor, said: float, size: float) -> tuple[float, float, float]:
        """A mismatch may be a kink nearby or strong curvature: look again with ever smaller steps, from both sides.

        With thousands of kinks one lies within almost any step, and moves what a difference says by little. A step is small
        enough when both sides agree; if backward is then right to what rounding leaves of the differences, it is right.
        """
        before = after = measured = error = 0.0
        for step in _SMALL:
            after = (self.at(number, direction, step) - self.value) / step
            before = (self.value - self.at(number, direction, -step)) / step
            measured, apart = (after + before) / 2, abs(after - before) / size
            error = abs(said - measured) / size
            # What rounding may make of a difference.
            allowed = max(_CLOSE, min(1e-15 * self.size / step / size, 10 * _CLOSE))
            if error <= allowed:
                return 0.0, said, measured
            if apart <= allowed:
                return error, said, measured
        if min(before, after) <= said <= max(before, after) or abs(after - before) > 1e-3 * size:
            raise _Kink(f"by {self.leaves[number][0]}, {before:.4g} from one side and {after:.4g} from the other")
        return error, said, measured


def _away(drawn: Tensor) -> Tensor:
    """Random numbers moved away from zero."""
    if drawn.is_complex():
        return drawn + 0.1
    return drawn + 0.1 * torch.where(drawn < 0, -1.0, 1.0)


def _directions(subject: Subject, leaf: Tensor) -> list[Tensor]:
    return [subject.noise(leaf.detach()) for _ in range(_PROBES)]


def _axes(leaf: Tensor) -> list[Tensor]:
    found = []
    for entry in range(leaf.numel()):
        for unit in (1.0, 1j) if leaf.is_complex() else (1.0,):
            direction = torch.zeros_like(leaf.detach())
            direction.view(-1)[entry] = torch.tensor(unit)
            found.append(direction)
    return found


def _entry(direction: Tensor) -> str:
    if not direction.dim():
        return ""
    return str([int(number) for number in (direction != 0).nonzero()[0]])


def _culprit(point: _Point, number: int) -> tuple[str, float, float] | None:
    """The entry of a tensor whose derivative is furthest from the differences, and what both say of it."""
    name, leaf = point.leaves[number]
    if leaf.numel() > _FULL:
        return None
    worst, found = TOLERANCE, None
    for axis in _axes(leaf):
        direction = point.free(number, axis)
        if not bool(direction.any()):
            continue
        error, said, measured = point.compare(number, direction)
        if error > worst:
            worst, found = error, (f"{name}{_entry(direction)}", said, measured)
    return found


def _exempt(subject: Subject) -> set[str]:
    found: set[str] = set()
    for path, module in subject.block.named_modules():
        names = getattr(module, "exempt", ())
        found |= {
            name if name == "input" or not path else f"{path}.{name}" for name in names if name != "input" or not path
        }
    return found
