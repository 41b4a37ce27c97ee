"""State that is carried from batch to batch with its graph: the second backward pass fails, or the graph grows."""

from collections.abc import Iterator

from torch.utils._pytree import tree_leaves

from wonderland.understand.doctoring.exam import Exam
from wonderland.understand.doctoring.finding import Finding

_REMEDY = "Keep it without its graph: store state.detach(), once a batch."


def memory(exam: Exam, batch: object) -> Iterator[Finding]:
    """The first value that the second pass takes, with its gradient, from the first pass."""
    for tensor in tree_leaves(batch):
        if getattr(tensor, "grad_fn", None) is not None:
            yield Finding(
                "missing detach", "", exam.home, 1.0,
                f"A tensor {tuple(tensor.shape)} of the batch carries the graph of an earlier step ({tensor.grad_fn.name()}).",
                _REMEDY,
            )  # fmt: skip
            return
    if exam.second is None:
        return
    before = {id(value): step for step in exam.steps for value in step.outputs}
    needed = {id(exam.second)}
    later = exam.recorder.steps[exam.first :]
    reads = []
    for step in reversed(later):
        if any(id(value) in needed and id(value) in exam.alive for value in step.outputs):
            for value in step.inputs:
                if id(value) in exam.alive:
                    needed.add(id(value))
                    if id(value) in before:
                        reads.append((step, value))
    if not reads:
        return
    step, value = reads[-1]
    maker = before[id(value)]
    path, name = exam.kept.get(id(value), (maker.module, ""))
    what = f"self.{name}" if name else f"A tensor {tuple(value.shape)}"
    yield Finding(
        "missing detach", path, exam.line(maker), len({id(one) for _, one in reads}),
        f"{what} of one batch is read in the next one ({_tail(exam.line(step))}) with its graph: "
        "the second backward pass fails, or takes longer each time.",
        _REMEDY,
    )  # fmt: skip


def _tail(line: str) -> str:
    return line.rsplit("/", 1)[-1]
