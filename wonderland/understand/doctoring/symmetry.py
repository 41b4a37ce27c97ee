"""Symmetric starts: units with the same weights and the same gradients stay the same for ever."""

from collections.abc import Iterator

from torch import Tensor

from wonderland.understand.doctoring.exam import Exam, norm
from wonderland.understand.doctoring.finding import Finding

SAME = 1e-5


def symmetry(exam: Exam) -> Iterator[Finding]:
    """The first layer whose units are all alike, in weights and in gradients."""
    found: list[tuple[str, float]] = []
    steps = {}
    for m in exam.layers:
        for name in m.weights & exam.trainable:
            steps.setdefault(name, m)
    for name, m in steps.items():
        weight, slope = exam.numbers[name], exam.gradients[name]
        if weight.dim() < 2 or slope is None:
            continue
        # The units are the axis that the output has: the first one for layers of torch, the last for x @ w.
        axis = 0 if weight.shape[0] == m.out.shape[m.axis] or m.name == "convolution" else weight.dim() - 1
        if weight.shape[axis] > 1 and _alike(weight, axis) and _alike(slope, axis):
            found.append((name, float(weight.flatten()[0])))
    if not found:
        return
    name, value = found[0]
    others = (
        f" The same holds for {', '.join(other for other, _ in found[1:4])}{' and more' if len(found) > 4 else ''}."
        if len(found) > 1
        else ""
    )
    yield Finding(
        "symmetric initialisation", exam.place(name), exam.line(steps[name].step), value,
        f"All units of {name} have the same weights ({value:.3g} first) and the same gradients, so they stay one unit.{others}",
        "Draw the weights at random: nn.init.kaiming_normal_ or nn.init.xavier_uniform_.",
    )  # fmt: skip


def _alike(tensor: Tensor, axis: int) -> bool:
    rows = tensor.detach().movedim(axis, 0).flatten(1).double()
    return norm(rows - rows[:1]) <= SAME * norm(rows)
