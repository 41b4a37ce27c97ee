"""State carried from batch to batch without detach: the second backward pass fails, or the graph grows."""

from collections.abc import Iterator

from torch.utils._pytree import tree_leaves

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace

_REMEDY = "Detach the state between batches: store state.detach()."


def retained_graph(trace: StepTrace, batch: object) -> Iterator[Finding]:
    """The first value of the first pass that the second pass reads without detach."""
    for tensor in tree_leaves(batch):
        if getattr(tensor, "grad_fn", None) is not None:
            yield Finding(
                "missing detach", "", trace.default_line, 1.0,
                f"A tensor {tuple(tensor.shape)} of the batch has a grad_fn from an earlier step ({tensor.grad_fn.name()}).",
                _REMEDY,
            )  # fmt: skip
            return
    if trace.second_loss is None:
        return
    produced_by = {id(value): step for step in trace.steps for value in step.outputs}
    needed = {id(trace.second_loss)}
    second_pass = trace.recorder.steps[trace.first_pass :]
    reads = []
    for step in reversed(second_pass):
        if any(id(value) in needed and id(value) in trace.differentiable for value in step.outputs):
            for value in step.inputs:
                if id(value) in trace.differentiable:
                    needed.add(id(value))
                    if id(value) in produced_by:
                        reads.append((step, value))
    if not reads:
        return
    step, value = reads[-1]
    producer = produced_by[id(value)]
    path, name = trace.attributes.get(id(value), (producer.module, ""))
    state = f"self.{name}" if name else f"A tensor {tuple(value.shape)}"
    yield Finding(
        "missing detach", path, trace.line(producer), len({id(value) for _, value in reads}),
        f"{state} of one batch is read in the next ({_file_name(trace.line(step))}) without detach: "
        "the second backward pass fails, or takes longer each time.",
        _REMEDY,
    )  # fmt: skip


def _file_name(line: str) -> str:
    return line.rsplit("/", 1)[-1]
