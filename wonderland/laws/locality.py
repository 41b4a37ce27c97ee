"""Locality: an output looks no further than its receptive field."""

from wonderland.core import WonderlandError
from wonderland.laws.influence import influence
from wonderland.laws.subject import Subject, Unfit, law
from wonderland.laws.verdict import Verdict


def field(subject: Subject) -> tuple[int | None, int | None] | None:
    """How many positions to the left and right an output may look at, as the example or the block says; None: all."""
    found = subject.example.field or getattr(subject.block, "receptive_field", None)
    if found is None:
        return None
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise WonderlandError(
            f"A receptive field is (positions to the left, positions to the right), None for no limit, not {found!r}."
        )
    left, right = (None if side is None or side == float("inf") else int(side) for side in found)
    return left, right


@law
def locality(subject: Subject) -> Verdict:
    r"""Outputs do not move when inputs outside their receptive field do.

    With a field :math:`(l, r)`: :math:`\partial y_i / \partial x_j = 0` unless :math:`i - l \le j \le i + r`, up to 1e-12
    of the largest derivative.
    """
    found = field(subject)
    if found is None:
        raise Unfit("the block has no receptive_field, and the example gives none")
    left, right = (float("inf") if side is None else side for side in found)
    return influence(
        subject,
        lambda i, steps: (steps < i - left) | (steps > i + right),
        exact=False,
        nothing=f"all positions lie within the receptive field {tuple(found)}",
    )
