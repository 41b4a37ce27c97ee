"""Locality: an output depends only on inputs within its receptive field."""

from collections.abc import Mapping
from dataclasses import replace

from wonderland.core import WonderlandError, nearest
from wonderland.laws.example import AXES
from wonderland.laws.influence import influence
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict


def receptive_field(subject: Subject, along: str | None = None) -> tuple[int | None, int | None] | None:
    """(positions to the left, to the right) that an output may depend on, from the example or the block; None if not given.

    `along` is the axis for which it is asked: a field may be given by axis.
    """
    field = subject.example.field or getattr(subject.block, "receptive_field", None)
    if isinstance(field, Mapping):
        for name in field:
            if name not in AXES:
                raise WonderlandError(
                    f"A receptive field is given for {name!r}, which is not the name of an axis.{nearest(str(name), AXES)}"
                )
        field = field.get(along or "time")
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
    of the largest derivative. On images, the same for rows along height and for columns along width.
    """
    image = [name for name in ("height", "width") if subject.example.axis(name) is not None]
    axes = [name for name in image or [None] if receptive_field(subject, name) is not None]
    if not axes:
        raise NotApplicable("the block has no receptive_field, and the example gives none")
    verdicts, reason = [], None
    for name in axes:
        try:
            verdicts.append(_along(subject, name))
        except NotApplicable as fault:
            reason = fault
        if verdicts and not verdicts[-1]:
            return verdicts[-1]
    if not verdicts:
        assert reason is not None
        raise reason
    return max(verdicts, key=lambda verdict: verdict.error or 0.0)


def _along(subject: Subject, name: str | None) -> Verdict:
    """Locality along one axis."""
    field = receptive_field(subject, name)
    assert field is not None
    left, right = (float("inf") if side is None else side for side in field)
    verdict = influence(
        subject,
        lambda i, steps: (steps < i - left) | (steps > i + right),
        exact=False,
        if_unrestricted=f"all positions lie within the receptive field {tuple(field)}",
        along=name,
    )
    return verdict if verdict or name is None else replace(verdict, witness=f"along {name}, {verdict.witness}")
