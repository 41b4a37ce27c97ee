"""Loss functions called with the wrong kind of input: probabilities instead of logits, or shapes that broadcast."""

from collections.abc import Iterator

import torch
from torch import Tensor

from wonderland.autodiff.cost import VIEWS, packet
from wonderland.autodiff.node import Step, Value
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, TracedOp, to_double

_ELEMENTWISE = frozenset(
    {"sub", "rsub", "mul", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "xlogy", "eq", "div"}
)  # fmt: skip

_RANGES = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "relu": (0.0, float("inf")), "_softmax": (0.0, 1.0)}
MAX_OUTSIDE = 0.1  # share of targets that the output cannot reach


def loss_inputs(trace: StepTrace) -> Iterator[Finding]:
    """The first operator of the loss whose input is not what it expects."""
    for op in trace.ops:
        if id(op.out) not in trace.differentiable:
            continue
        finding = (
            _double_softmax(trace, op)
            or _bounded_logits(trace, op)
            or _one_class(trace, op)
            or _double_sigmoid(trace, op)
            or _nll_of_logits(trace, op)
            or _broadcast(trace, op)
        )
        if finding is not None:
            yield finding
            return


def _double_softmax(trace: StepTrace, op: TracedOp) -> Finding | None:
    """log_softmax of an input that is a probability distribution already."""
    if op.name != "_log_softmax" or op.source is None or not isinstance(op.source.now, Tensor):
        return None
    probabilities, axis = to_double(op.source.now), int(op.step.args[1])
    if probabilities.shape[axis] < 2 or bool((probabilities < 0).any()):
        return None
    if float((probabilities.sum(axis) - 1).abs().max()) > 0.01:
        return None
    count = probabilities.shape[axis]
    minimum = torch.log(torch.tensor(1 + (count - 1) / torch.e)).item()
    return trace.finding(
        "softmax before cross-entropy", op.step, minimum,
        f"The input of log_softmax lies between 0 and 1 and sums to 1 over {count} classes: it is a softmax already, and the "
        f"loss cannot fall below {minimum:.2f}.",
        "Give the loss the logits: remove the softmax from the model, and apply it when predicting.",
    )  # fmt: skip


def _bounded_logits(trace: StepTrace, op: TracedOp) -> Finding | None:
    """Cross-entropy of the output of an activation function, which cannot take all values."""
    producer = None if op.name != "_log_softmax" or op.source is None else _producer(op.source)
    name = "" if producer is None else packet(producer.target)
    if name not in ("sigmoid", "relu", "tanh") or op.source is None or op.source.shape[int(op.step.args[1])] < 2:
        return None
    return trace.finding(
        f"{name} before cross-entropy", op.step, 0.0,
        f"cross_entropy takes logits of any size, and its input is the output of {name}, which "
        + {"sigmoid": "lies between 0 and 1.", "relu": "is never negative.", "tanh": "lies between -1 and 1."}[name],
        f"Give the loss the logits: remove the {name} after the last layer.",
    )  # fmt: skip


def _one_class(trace: StepTrace, op: TracedOp) -> Finding | None:
    """A softmax over one class, which is always 1."""
    if op.name not in ("_log_softmax", "_softmax") or op.source is None or not op.source.shape:
        return None
    if op.source.shape[int(op.step.args[1])] != 1:
        return None
    return trace.finding(
        "softmax over one class", op.step, 1.0,
        f"{op.name.strip('_')} runs over an axis of size 1 of {tuple(op.source.shape)}: the probability is always 1, and the gradient 0.",
        "Use binary_cross_entropy_with_logits for one output, or give the model one output per class.",
    )  # fmt: skip


def target_range(trace: StepTrace) -> Iterator[Finding]:
    """Float targets that the last activation function, or the loss, does not admit."""
    targets, output = trace.targets, trace.output_value
    if targets is None and trace.training.arguments is not None and trace.output is not None:
        args = trace.training.arguments.args
        targets = args[0] if args and isinstance(args[0], Tensor) and args[0].shape == trace.output.shape else None
    if not isinstance(targets, Tensor) or not targets.is_floating_point() or output is None or not targets.numel():
        return
    if targets.numel() != output.numel:
        return
    low, high = float(targets.min()), float(targets.max())
    if any(op.name.startswith("log_sigmoid") for op in trace.ops) and (low < 0 or high > 1):
        yield Finding(
            "targets outside 0 to 1", "", trace.default_line, low if low < 0 else high,
            f"Binary cross-entropy takes targets from 0 to 1, and these run from {low:.3g} to {high:.3g}.",
            "Map the targets to 0 and 1 (from -1 and 1: (y + 1) / 2; from 0 to 255: y / 255).",
        )  # fmt: skip
        return
    step = _producer(output)
    name = "" if step is None else packet(step.target)
    if step is None or name not in _RANGES:
        return
    bottom, top = _RANGES[name]
    outside = float(((targets < bottom - 0.01) | (targets > top + 0.01)).double().mean())
    if outside > MAX_OUTSIDE:
        yield trace.finding(
            "targets out of the output's range", step, outside,
            f"The output is that of {name.strip('_')}, from {bottom:g} to {top:g}, and {outside:.0%} of the targets ({low:.3g} to {high:.3g}) lie outside.",
            f"Remove the {name.strip('_')} after the last layer, or scale the targets into its range.",
        )  # fmt: skip


def _double_sigmoid(trace: StepTrace, op: TracedOp) -> Finding | None:
    """The sigmoid inside a loss, applied to the output of a sigmoid or softmax."""
    if op.name not in ("log_sigmoid", "log_sigmoid_forward") or op.source is None:
        return None
    producer = _producer(op.source)
    if producer is None or packet(producer.target) not in ("sigmoid", "_softmax"):
        return None
    return trace.finding(
        "sigmoid before a loss that takes logits", op.step, 0.69,
        f"The loss applies a sigmoid to its input, and the input is the output of {packet(producer.target).strip('_')}.",
        "Remove the sigmoid from the model, or use binary_cross_entropy, which expects probabilities.",
    )  # fmt: skip


def _nll_of_logits(trace: StepTrace, op: TracedOp) -> Finding | None:
    """nll_loss of an input that is not log-probabilities."""
    if op.name not in ("nll_loss_forward", "nll_loss2d_forward") or op.source is None or op.source.now is None:
        return None
    if not op.source.smooth:  # the targets: what the outputs were computed from cannot be seen
        return None
    inputs = to_double(op.source.now)
    axis = 1 if inputs.dim() > 1 else 0
    if inputs.shape[axis] < 2 or not bool(torch.isfinite(inputs).all()):
        return None
    mass = inputs.exp().sum(axis)
    if 0.5 < float(mass.median()) < 1.5:
        return None
    return trace.finding(
        "nll_loss of logits", op.step, float(mass.median()),
        f"nll_loss expects log-probabilities, and the exponentials of its input sum to {float(mass.median()):.3g}, not 1.",
        "Use cross_entropy, or apply log_softmax before nll_loss.",
    )  # fmt: skip


def _broadcast(trace: StepTrace, op: TracedOp) -> Finding | None:
    """Outputs (n, 1) broadcast against targets (n,), which compares every output with every target."""
    if op.name not in _ELEMENTWISE or len(op.step.inputs) < 2:
        return None
    left, right = (_before_expand(value) for value in op.step.inputs[:2])
    count = max(left.numel, right.numel)
    if (
        count < 2
        or sorted((left.shape, right.shape), key=len) != [(count,), (count, 1)]
        or op.out.numel not in (1, count**2)
    ):
        return None
    targets = [
        value for value in (left, right) if trace.depends_on_batch(value) and id(value) not in trace.differentiable
    ]
    outputs = [value for value in (left, right) if id(value) in trace.differentiable]
    if not targets or not outputs:
        return None
    return trace.finding(
        "broadcast loss", op.step, count**2,
        f"Outputs {outputs[0].shape} and targets {targets[0].shape} broadcast to {count} x {count} differences: every output is "
        "compared with every target, and the best the model can learn is their mean.",
        "Give both the same shape: output.squeeze(-1), or targets.unsqueeze(-1).",
    )  # fmt: skip


def _before_expand(value: Value) -> Value:
    """A value before it was expanded."""
    while (step := value.origin) is not None and packet(step.target) == "expand":
        value = step.inputs[0]
    return value


def _producer(value: Value) -> Step | None:
    """The step that computed a value, looking through views."""
    step = value.origin
    while step is not None and packet(step.target) in VIEWS and step.inputs:
        step = step.inputs[0].origin
    return step
