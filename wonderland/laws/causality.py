"""Causality: no output depends on an input that comes after it, nor on how many inputs come after it."""

import torch

from wonderland.laws.compare import gap
from wonderland.laws.example import Example
from wonderland.laws.influence import influence
from wonderland.laws.subject import Failed, Subject, law
from wonderland.laws.verdict import Verdict

PREFIX_TOLERANCE = 1e-9  # other lengths mean other roundings
_MAX_PREFIXES = 8
_ONE_POSITION = "one position has no future"


@law
def causality(subject: Subject) -> Verdict:
    r"""No output depends on the future: :math:`\partial y_i / \partial x_j = 0` for :math:`j > i`, nor on its length.

    Derivatives with respect to the future may be 1e-12 of the largest one, which allows for the rounding of an FFT. Where
    derivatives show nothing (integers, rounding, detached paths), later inputs are changed and earlier outputs compared.
    Then the input is cut: :math:`f(x_{:k}) = f(x)_{:k}` up to 1e-9, which shows a dependence on the length, such as
    positions counted from the end or a sum divided by the number of inputs.
    """
    verdict = influence(subject, lambda i, steps: steps > i, exact=False, if_unrestricted=_ONE_POSITION)
    if not verdict:
        return verdict
    error, witness, refused = _prefixes(subject)
    tolerance = PREFIX_TOLERANCE * subject.tolerance_factor
    if not error <= tolerance:
        return subject.verdict(error, tolerance, witness)
    assert verdict.error is not None
    assert verdict.tolerance is not None
    return subject.verdict(verdict.error, verdict.tolerance, note=refused)


@law
def strict_causality(subject: Subject) -> Verdict:
    """Outputs are equal bit for bit when later inputs change, also to NaN or inf."""
    return influence(subject, lambda i, steps: steps > i, exact=True, if_unrestricted=_ONE_POSITION)


def _prefixes(subject: Subject) -> tuple[float, str, str]:
    """(error, where, note) of the outputs of the first k inputs alone, against the first k outputs of all."""
    axis, out, t = subject.positions()
    worst, witness, refused = 0.0, "", []
    lengths = sorted({1 + round(n * (t - 2) / max(_MAX_PREFIXES - 1, 1)) for n in range(_MAX_PREFIXES)})
    for length in [k for k in lengths if 1 <= k < t]:
        with torch.no_grad():
            try:
                alone = _run_cut(subject, axis, out, length)
            except Failed as fault:
                refused.append((length, fault))
                continue
        if alone.dim() <= out or alone.shape[out] < length:
            return float("inf"), f"the first {length} inputs alone give an output of shape {tuple(alone.shape)}", ""
        # Some blocks pad their input to a fixed length: what they give beyond the first k is not compared.
        _, amount, place = gap(alone.narrow(out, 0, length), subject.base.narrow(out, 0, length))
        error = amount / max(float(subject.base.abs().max()), 1e-300)
        if not error <= worst:
            worst = error
            witness = (
                f"{subject.place(place)} moved by {amount:.2g} when the inputs after the first {length} were left out"
            )
    if refused and not witness:
        length, fault = refused[-1]
        return worst, "", f"dependence on the length was not checked: {fault} on the first {length} inputs alone"
    return worst, witness, ""


def _run_cut(subject: Subject, axis: int, out: int, length: int) -> torch.Tensor:
    """The output for the first inputs only; other inputs are cut where the axes say so, or where the block asks for it."""
    names, t = subject.example.names(), subject.x.shape[axis]
    example = _cut(subject.example, lambda place, k, size: _is(subject.example.names(place), k, names[axis]), length)
    inputs = [value for value in (*example.args, *example.kwargs.values()) if isinstance(value, torch.Tensor)]
    others_fit = not any(t in value.shape[1:] for value in inputs)
    try:
        output = subject.run(example=example)
        if others_fit or (output.dim() > out and output.shape[out] == length):
            return output
    except Failed:
        if others_fit:
            raise
    own = example.place
    return subject.run(example=_cut(example, lambda place, k, size: place != own and k > 0 and size == t, length))


def _is(names: tuple[str | None, ...], axis: int, name: str | None) -> bool:
    return axis < len(names) and names[axis] == name


def _cut(example: Example, chosen, length: int) -> Example:
    def cut(place: int | str, value: torch.Tensor) -> torch.Tensor:
        for axis, size in enumerate(value.shape):
            if chosen(place, axis, size):
                value = value.narrow(axis, 0, length)
        return value

    return example.over(cut)
