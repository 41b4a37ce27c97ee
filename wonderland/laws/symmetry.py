"""Symmetries: permutation equivariance and invariance, shift equivariance, scale invariance."""

import torch
from torch import Tensor

from wonderland.laws.compare import gap
from wonderland.laws.example import Axes, Example
from wonderland.laws.locality import receptive_field
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-9
_SCALE_TOLERANCE = 1e-3
MAX_MEASURED = 64  # positions up to which the receptive field is measured


@law
def permutation_equivariance(subject: Subject) -> Verdict:
    r"""Permuting the inputs permutes the outputs: :math:`f(Px) = P f(x)` for a permutation :math:`P` of the positions.

    Other inputs that have the same axis are permuted with it, an adjacency matrix along both:
    :math:`f(Px, PAP^\top) = P f(x, A)`.
    """
    axis, _, t = subject.positions()
    name = subject.example.names()[axis]

    def moved(order: Tensor) -> tuple[float, float, tuple[int, ...]]:
        permuted = subject.run(example=_permuted(subject, order), when="after a permutation")
        return gap(permuted, _along_axes(subject.base, subject.example.names("output"), name, order))

    def describe(spot: str, amount: float, inputs: str) -> str:
        return (
            f"{spot} differs by {amount:.2g} from the output that was to follow its input, when {inputs} changed places"
        )

    return _check_permutations(subject, t, moved, describe)


@law
def permutation_invariance(subject: Subject) -> Verdict:
    r"""The output does not depend on the order of the inputs: :math:`f(Px) = f(x)`."""
    axis = subject.sequence()

    def moved(order: Tensor) -> tuple[float, float, tuple[int, ...]]:
        return gap(subject.run(example=_permuted(subject, order), when="after a permutation"), subject.base)

    return _check_permutations(
        subject,
        subject.x.shape[axis],
        moved,
        lambda spot, amount, inputs: f"{spot} moved by {amount:.2g} when {inputs} changed places",
    )


def _permuted(subject: Subject, order: Tensor) -> Example:
    """The example with its positions in another order, in every input that has their axis."""
    name = subject.example.names()[subject.sequence()]
    return subject.example.over(lambda place, value: _along_axes(value, subject.example.names(place), name, order))


def _along_axes(value: Tensor, names: Axes, name: str | None, order: Tensor) -> Tensor:
    for axis in [number for number, own in enumerate(names) if own == name and number < value.dim()]:
        value = value.index_select(axis, order.to(value.device))
    return value


def _check_permutations(subject: Subject, t: int, moved, describe) -> Verdict:
    if t == 1:
        raise NotApplicable("one position has one order")
    with torch.no_grad():
        orders = [torch.randperm(t, generator=subject.generator) for _ in range(2)] + [torch.arange(t).flip(0)]
        worst = max(moved(order)[0] for order in orders)
        tolerance = TOLERANCE * subject.tolerance_factor
        if worst <= tolerance:
            return subject.verdict(worst, tolerance)
        witness = describe(*_where_and_amount(subject, moved(orders[-1])), "all inputs")
        best = 0.0
        for first in range(min(t - 1, 64)):
            swap = torch.arange(t)
            swap[[first, first + 1]] = swap[[first + 1, first]]
            difference = moved(swap)
            if difference[0] > max(best, tolerance):
                best, witness = (
                    difference[0],
                    describe(*_where_and_amount(subject, difference), f"inputs {first} and {first + 1}"),
                )
        return subject.verdict(worst, tolerance, witness)


def _where_and_amount(subject: Subject, difference: tuple[float, float, tuple[int, ...]]) -> tuple[str, float]:
    return subject.place(difference[2]), difference[1]


@law
def shift_equivariance(subject: Subject) -> Verdict:
    r"""Zeros put before the input delay the output by as many positions.

    .. math::
        f([0_s, x])_{i+s} = f(x)_i

    for every :math:`i` whose receptive field lies inside :math:`x`: the field that the block states, or else the largest one
    that its outputs have. Convolutions satisfy this with any padding, and so do time-invariant linear state spaces, whose
    state starts at zero. Where every field reaches an end of :math:`x`, as in recurrent networks, all outputs count. Checked along time, and along height and width where the example names them.
    """
    if not (subject.x.is_floating_point() or subject.x.is_complex()):
        raise NotApplicable("tokens have no zero to put before them")
    axes = [name for name in ("time", "height", "width") if subject.example.axis(name) is not None]
    axes = [name for name in axes if subject.example.axis(name, "output") is not None]
    if not axes:
        raise NotApplicable("the input and the output have no common axis of time, height or width")
    worst, witness, tolerance, notes = 0.0, "", TOLERANCE * subject.tolerance_factor, []
    with torch.no_grad():
        for name in axes:
            field = receptive_field(subject, name)
            error, axis_witness = _worst_delay(subject, name, field)
            if not error <= tolerance and field is None and (field := _measured_field(subject, name)) is not None:
                inside, inside_witness = _worst_delay(subject, name, field)
                if inside <= tolerance:
                    error, axis_witness = inside, inside_witness
                    notes.append(
                        f"the {field[0]} first and {field[1]} last outputs along {name} see the padding and were left out"
                    )
            if not error <= worst:
                worst, witness = error, axis_witness
    return subject.verdict(worst, tolerance, witness, note="; ".join(notes))


def _worst_delay(subject: Subject, name: str, field: tuple[int | None, int | None] | None) -> tuple[float, str]:
    """The largest error over several delays, and where."""
    worst, witness = 0.0, ""
    for delay in (1, 2, 3):
        error, where = _delayed(subject, name, delay, field)
        if not error <= worst:
            worst, witness = error, where
    return worst, witness


def _measured_field(subject: Subject, name: str) -> tuple[int, int] | None:
    """How far to the left and right outputs depend on inputs along an axis; None if no output has all of it inside."""
    axis, out = subject.example.axis(name), subject.example.axis(name, "output")
    assert axis is not None
    assert out is not None
    x, base = subject.x, subject.base
    t, others = x.shape[axis], [k for k in range(base.dim()) if k != out]
    if t > MAX_MEASURED or base.shape[out] != t or not others:
        return None
    left = right = 0
    for j in range(t):
        marks = (torch.arange(t) == j).view([-1 if k == axis else 1 for k in range(x.dim())])
        moved = (subject.run(subject.changed(x, marks.to(x.device)), when="when one input changed") - base).abs().amax(
            others
        ) > 0
        places = moved.nonzero().flatten().tolist()
        if places:
            left, right = max(left, places[-1] - j), max(right, j - places[0])
    return (left, right) if left + right < t - 1 else None


def _delayed(subject: Subject, name: str, delay: int, field: tuple[int | None, int | None] | None) -> tuple[float, str]:
    axis, out = subject.example.axis(name), subject.example.axis(name, "output")
    assert axis is not None
    assert out is not None
    x, base = subject.x, subject.base
    if base.dim() <= out:
        raise NotApplicable(f"the output has no axis of {name}")
    left, right = (0, 0) if field is None else (field[0] or 0, field[1] or 0)
    compared = base.shape[out] - left - right
    if compared < 1:
        raise NotApplicable(f"no output has its receptive field inside the {x.shape[axis]} positions")
    zeros = x.new_zeros([delay if k == axis else size for k, size in enumerate(x.shape)])
    late = subject.run(torch.cat([zeros, x], axis), when=f"after a delay of {delay} along {name}")
    if late.shape[out] != base.shape[out] + delay:
        return float("inf"), (
            f"a delay of {delay} along {name} gives {late.shape[out]} outputs where "
            f"{base.shape[out]} and {delay} more belong"
        )
    error, amount, place = gap(late.narrow(out, left + delay, compared), base.narrow(out, left, compared))
    if not error:
        return 0.0, ""
    spot = subject.place(tuple(number + left if k == out else number for k, number in enumerate(place)))
    return error, f"{spot} differs by {amount:.2g} when the input is delayed by {delay} along {name}"


@law
def scale_invariance(subject: Subject) -> Verdict:
    r"""The output does not depend on the scale of the input: :math:`f(cx) = f(x)` for :math:`c > 0`.

    Up to 1e-3 of the largest output, which allows for the epsilon of normalisations.
    """
    if not (subject.x.is_floating_point() or subject.x.is_complex()):
        raise NotApplicable("tokens have no size")
    worst, witness = 0.0, ""
    with torch.no_grad():
        for factor in (2.0, 10.0, 1000.0):
            error, amount, place = gap(
                subject.run(subject.x * factor, when=f"at {factor:g} times the input"), subject.base
            )
            if not error <= worst:
                worst, witness = error, f"{subject.place(place)} moved by {amount:.2g} at {factor:g} times the input"
    return subject.verdict(worst, _SCALE_TOLERANCE, witness)
