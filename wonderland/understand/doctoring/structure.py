"""Layers in a row without an activation between them: together they are one linear layer."""

from collections.abc import Iterator

from torch import nn

from wonderland.autodiff.cost import VIEWS, packet
from wonderland.autodiff.node import Step, Value
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, TracedOp

_LINEAR = VIEWS | {"native_dropout", "clone", "_to_copy", "contiguous", "_unsafe_view"}


def missing_activation(trace: StepTrace) -> Iterator[Finding]:
    """Two trained linear layers of one parent, the second on the output of the first.

    A narrow first layer is a factorisation (an adapter, a linear autoencoder), and several layers that read one output are
    queries and keys or heads: neither is reported.
    """
    calls: dict[frozenset[str], list[TracedOp]] = {}
    for op in trace.layers:
        calls.setdefault(op.weights, []).append(op)
    producers = {id(op.out): op for op in trace.layers}
    readers: dict[int, int] = {}
    for op in trace.layers:
        before = _before(op.source)
        if before is not None:
            readers[id(before)] = readers.get(id(before), 0) + 1
    for op in trace.layers:
        before = _before(op.source)
        first = None if before is None else producers.get(id(before))
        if first is None or before is None or readers[id(before)] > 1:
            continue
        if len(calls[op.weights]) > 1 or len(calls[first.weights]) > 1:
            continue
        if _joins(trace, first, op) and not _used_elsewhere(trace, before, op):
            yield trace.finding(
                "missing activation", op.step, 2.0,
                f"{op.step.module} ({trace.class_name(op.step.module)}) reads the output of {first.step.module} "
                f"({trace.class_name(first.step.module)}) without an activation between them: together they are one linear layer.",
                "Put a nonlinearity such as nn.ReLU() or nn.GELU() between them.",
            )  # fmt: skip
            return


def _joins(trace: StepTrace, first: TracedOp, second: TracedOp) -> bool:
    paths = first.step.module, second.step.module
    if not all(paths) or paths[0].rpartition(".")[0] != paths[1].rpartition(".")[0]:
        return False
    a, b = (trace.model.get_submodule(path) for path in paths)
    if not (first.weights & trace.trainable and second.weights & trace.trainable):
        return False
    if isinstance(a, nn.Linear) and isinstance(b, nn.Linear):
        return a.out_features >= min(a.in_features, b.out_features)
    if isinstance(a, nn.Conv1d | nn.Conv2d) and type(a) is type(b):
        assert isinstance(b, nn.Conv1d | nn.Conv2d)
        grouped = a.groups > 1 or b.groups > 1
        square = len(set(a.kernel_size)) == 1 and len(set(b.kernel_size)) == 1
        return not grouped and square and max(a.kernel_size) > 1 and max(b.kernel_size) > 1
    return False


def _before(value: Value | None) -> Value | None:
    """A value before views and dropout."""
    while value is not None and value.origin is not None:
        step = value.origin
        if packet(step.target) not in _LINEAR and not _drops(step):
            break
        value = step.inputs[0] if step.inputs else None
    return value


def _drops(step: Step) -> bool:
    """Whether a step multiplies a value with random zeros, as dropout does."""
    if packet(step.target) != "mul" or len(step.inputs) < 2:
        return False
    mask: Value | None = step.inputs[1]
    for _ in range(3):
        if mask is None or mask.origin is None:
            return False
        if packet(mask.origin.target).startswith("bernoulli"):
            return True
        mask = mask.origin.inputs[0] if mask.origin.inputs else None
    return False


def _used_elsewhere(trace: StepTrace, value: Value, reader: TracedOp) -> bool:
    """Whether another operator than the path to `reader` uses a value, as a skip connection does."""
    users = [step for step in trace.steps if any(used is value for used in step.inputs)]
    return any(packet(step.target) not in _LINEAR and not _passed(step) and step is not reader.step for step in users)


def _passed(step: Step) -> bool:
    """Whether a step belongs to dropout: the mask is made in the form of the value."""
    return _drops(step) or packet(step.target) == "empty_like"
