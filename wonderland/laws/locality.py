"""Locality: an output depends only on inputs within its receptive field."""

from wonderland.core import WonderlandError
from wonderland.laws.influence import influence
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict


def receptive_field(subject: Subject) -> tuple[int | None, int | None] | None:
    """(positions to the left, to the right) that an output may depend on, from the example or the block; None if not given."""
    field = subject.example.field or getattr(subject.block, "receptive_field", None)
    if field is None:
        return None
    if not isinstance(field, tuple | list) or len(field) != 2:
        raise WonderlandError(
            f"A receptive field is (positions to the left, positions to the right), None for no limit, not {field!r}."
        )
    left, right = (None if side is None or side == float("inf") else int(side) for side in field)
    return left, right


@law
def locality(subject: Subject) -> Verdict:
    r"""Outputs do not change when inputs outside their receptive field change.

    With a field :math:`(l, r)`: :math:`\partial y_i / \partial x_j = 0` unless :math:`i - l \le j \le i + r`, up to 1e-12
    of the largest derivative.
    """
    field = receptive_field(subject)
    if field is None:
        raise NotApplicable("the block has no receptive_field, and the example gives none")
    left, right = (float("inf") if side is None else side for side in field)
    return influence(
        subject,
        lambda i, steps: (steps < i - left) | (steps > i + right),
        exact=False,
        if_unrestricted=f"all positions lie within the receptive field {tuple(field)}",
    )
