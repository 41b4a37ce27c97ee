"""Dead units: a ReLU that outputs 0 for every example of the batch gets no gradient."""

from collections.abc import Iterator

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, TracedOp, by_unit

MAX_SHARE = 0.6  # of the units of a layer


def dead_units(trace: StepTrace) -> Iterator[Finding]:
    """Layers in which most units are 0 for all examples.

    With weights drawn symmetrically around 0, a unit is positive with probability 1/2, so even on a batch of one example half
    of the units should be active. A layer is reported above 60% dead units, if that is also three standard deviations of
    this binomial count above one half.
    """
    for op in trace.activations:
        if op.name not in ("relu", "clamp_min", "clamp", "hardtanh", "threshold", "relu6") or op.out.now is None:
            continue
        if op.source is None or op.source.now is None or not bool(op.source.now.any()):
            continue
        rows = by_unit(op.out.now, op.axis)
        count = rows.shape[1]
        share = float((rows == 0).all(0).double().mean())
        if count >= 4 and share > MAX_SHARE and share > 0.5 + 1.5 / count**0.5 - (0.25 if share == 1 else 0.0):
            yield _finding(trace, op, share, count)


def _finding(trace: StepTrace, op: TracedOp, share: float, count: int) -> Finding:
    assert op.source is not None
    assert op.source.now is not None
    mean = float(op.source.now.double().mean())
    return trace.finding(
        "dead units", op.step, share,
        f"{share:.0%} of {count} units output 0 for every example of the batch; the mean of their inputs is {mean:.3g}.",
        "Initialise with bias 0 and Kaiming weights, lower the learning rate if the units died in training, or use LeakyReLU or GELU.",
    )  # fmt: skip
