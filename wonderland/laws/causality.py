"""Causality: no output depends on an input that comes after it."""

from wonderland.laws.influence import influence
from wonderland.laws.subject import Subject, law
from wonderland.laws.verdict import Verdict

_ALONE = "one position has no future"


@law
def causality(subject: Subject) -> Verdict:
    r"""No output depends on the future: :math:`\partial y_i / \partial x_j = 0` for :math:`j > i`.

    Derivatives to the future may be 1e-12 of the largest one, which leaves room for the rounding of an FFT. What
    derivatives cannot see (integers, rounding, detached paths) is found by changing the future and looking at the past.
    """
    return influence(subject, lambda i, steps: steps > i, exact=False, nothing=_ALONE)


@law
def strict_causality(subject: Subject) -> Verdict:
    """Not one bit of an output depends on the future, and NaN or inf in the future does not reach the past."""
    return influence(subject, lambda i, steps: steps > i, exact=True, nothing=_ALONE)
