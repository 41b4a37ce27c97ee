"""Dead units: a ReLU that gives 0 for every example of the batch learns nothing more."""

from collections.abc import Iterator

from wonderland.understand.doctoring.exam import Exam, Moment, units
from wonderland.understand.doctoring.finding import Finding

MOST = 0.6


def dead(exam: Exam) -> Iterator[Finding]:
    """Layers most of whose units are 0 for all examples.

    Weights drawn around 0 are as likely to switch a unit on as off, so even on a batch of one example half the units are
    expected to live; more dead than that by three deviations, and by a margin, is an illness.
    """
    for m in exam.bends:
        if m.name not in ("relu", "clamp_min", "clamp", "hardtanh", "threshold", "relu6") or m.out.now is None:
            continue
        if m.source is None or m.source.now is None or not bool(m.source.now.any()):
            continue
        rows = units(m.out.now, m.axis)
        count = rows.shape[1]
        share = float((rows == 0).all(0).double().mean())
        if count >= 4 and share > MOST and share > 0.5 + 1.5 / count**0.5 - (0.25 if share == 1 else 0.0):
            yield _said(exam, m, share, count)


def _said(exam: Exam, m: Moment, share: float, count: int) -> Finding:
    assert m.source is not None
    assert m.source.now is not None
    middle = float(m.source.now.double().mean())
    return exam.finding(
        "dead units", m.step, share,
        f"{share:.0%} of {count} units give 0 for every example of the batch; their inputs are {middle:.3g} in the mean.",
        "Begin with bias 0 and Kaiming weights, lower the learning rate if they died in training, or use LeakyReLU or GELU.",
    )  # fmt: skip
