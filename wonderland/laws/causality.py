"""Causality: no output depends on an input that comes after it."""

from wonderland.laws.influence import influence
from wonderland.laws.subject import Subject, law
from wonderland.laws.verdict import Verdict

_ONE_POSITION = "one position has no future"


@law
def causality(subject: Subject) -> Verdict:
    r"""No output depends on the future: :math:`\partial y_i / \partial x_j = 0` for :math:`j > i`.

    Derivatives with respect to the future may be 1e-12 of the largest one, which allows for the rounding of an FFT. Where
    derivatives show nothing (integers, rounding, detached paths), later inputs are changed and earlier outputs compared.
    """
    return influence(subject, lambda i, steps: steps > i, exact=False, if_unrestricted=_ONE_POSITION)


@law
def strict_causality(subject: Subject) -> Verdict:
    """Outputs are equal bit for bit when later inputs change, also to NaN or inf."""
    return influence(subject, lambda i, steps: steps > i, exact=True, if_unrestricted=_ONE_POSITION)
