"""Symmetries: permutation equivariance and invariance, shift equivariance, scale invariance."""

import torch
from torch import Tensor

from wonderland.laws.compare import gap
from wonderland.laws.locality import receptive_field
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-9
_SCALE_TOLERANCE = 1e-3


@law
def permutation_equivariance(subject: Subject) -> Verdict:
    r"""Permuting the inputs permutes the outputs: :math:`f(Px) = P f(x)` for a permutation :math:`P` of the positions."""
    axis, out, t = subject.positions()

    def moved(order: Tensor) -> tuple[float, float, tuple[int, ...]]:
        permuted = subject.run(subject.x.index_select(axis, order.to(subject.x.device)), when="after a permutation")
        return gap(permuted, subject.base.index_select(out, order.to(subject.base.device)))

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
        permuted = subject.run(subject.x.index_select(axis, order.to(subject.x.device)), when="after a permutation")
        return gap(permuted, subject.base)

    return _check_permutations(
        subject,
        subject.x.shape[axis],
        moved,
        lambda spot, amount, inputs: f"{spot} moved by {amount:.2g} when {inputs} changed places",
    )


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

    for every :math:`i` whose receptive field, where the block states one, lies inside :math:`x`; without one, for every
    :math:`i`. Convolutions satisfy this with any padding, and so do time-invariant linear state spaces, whose state starts
    at zero. Checked along time, and along height and width where the example names them.
    """
    if not (subject.x.is_floating_point() or subject.x.is_complex()):
        raise NotApplicable("tokens have no zero to put before them")
    axes = [name for name in ("time", "height", "width") if subject.example.axis(name) is not None]
    axes = [name for name in axes if subject.example.axis(name, "output") is not None]
    if not axes:
        raise NotApplicable("the input and the output have no common axis of time, height or width")
    worst, witness = 0.0, ""
    with torch.no_grad():
        for name in axes:
            for delay in (1, 2, 3):
                error, delay_witness = _delayed(subject, name, delay)
                if not error <= worst:
                    worst, witness = error, delay_witness
    return subject.verdict(worst, TOLERANCE * subject.tolerance_factor, witness)


def _delayed(subject: Subject, name: str, delay: int) -> tuple[float, str]:
    axis, out = subject.example.axis(name), subject.example.axis(name, "output")
    assert axis is not None
    assert out is not None
    x, base = subject.x, subject.base
    if base.dim() <= out:
        raise NotApplicable(f"the output has no axis of {name}")
    field = receptive_field(subject)
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
