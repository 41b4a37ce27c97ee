"""Symmetric initialisation: units with equal weights and equal gradients stay equal throughout training."""

from collections.abc import Iterator

from torch import Tensor

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, norm

TOLERANCE = 1e-5  # relative to the norm of the weights


def symmetry(trace: StepTrace) -> Iterator[Finding]:
    """The first layer whose units all have equal weights and equal gradients."""
    symmetric: list[tuple[str, float]] = []
    first_use = {}
    for op in trace.layers:
        for name in op.weights & trace.trainable:
            first_use.setdefault(name, op)
    for name, op in first_use.items():
        weight, gradient = trace.parameter_values[name], trace.gradients[name]
        if weight.dim() < 2 or gradient is None:
            continue
        # The axis of the output units: the first for torch layers, the last for x @ w.
        axis = 0 if weight.shape[0] == op.out.shape[op.axis] or op.name == "convolution" else weight.dim() - 1
        if weight.shape[axis] > 1 and _equal_rows(weight, axis) and _equal_rows(gradient, axis):
            symmetric.append((name, float(weight.flatten()[0])))
    if not symmetric:
        return
    name, value = symmetric[0]
    others = (
        f" The same holds for {', '.join(other for other, _ in symmetric[1:4])}{' and more' if len(symmetric) > 4 else ''}."
        if len(symmetric) > 1
        else ""
    )
    yield Finding(
        "symmetric initialisation", trace.module_of(name), trace.line(first_use[name].step), value,
        f"All units of {name} have equal weights (the first is {value:.3g}) and equal gradients, so they stay equal in training.{others}",
        "Draw the weights at random: nn.init.kaiming_normal_ or nn.init.xavier_uniform_.",
    )  # fmt: skip


def _equal_rows(tensor: Tensor, axis: int) -> bool:
    """Whether all slices along an axis are equal."""
    rows = tensor.detach().movedim(axis, 0).flatten(1).double()
    return norm(rows - rows[:1]) <= TOLERANCE * norm(rows)
