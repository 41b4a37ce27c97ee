"""Non-finite values: the first operator that produces one, and why."""

from collections.abc import Iterator

import torch
from torch import Tensor

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step, Value
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, is_finite, rms

_HALF_PRECISION = (torch.float16, torch.bfloat16)
_CONSTANT_FILLS = frozenset(
    {"full", "full_like", "masked_fill", "where", "fill", "scalar_tensor", "constant_pad_nd", "index_put", "scatter"}
)  # fmt: skip
# An infinity from these operators is an overflow, even if the loss is finite in the end.
_OVERFLOWING = frozenset(
    {"exp", "expm1", "sum", "mean", "cumsum", "mul", "add", "addmm", "mm", "bmm", "baddbmm", "convolution", "pow", "cosh", "sinh", "square"}
)  # fmt: skip


def nonfinite(trace: StepTrace, finite_gradients: bool) -> Iterator[Finding]:
    """The origin of the first non-finite value, if weights, batch, loss or gradients have one.

    `finite_gradients` says whether the gradients that torch itself computes are finite.
    """
    for name, weight in trace.parameter_values.items():
        if not is_finite(weight):
            share = float((~torch.isfinite(weight)).double().mean())
            yield Finding(
                "non-finite weights", trace.module_of(name), trace.defined(name), share,
                f"{name} has non-finite values before the first step.",
                "Initialise the model again, or load an earlier checkpoint.",
            )  # fmt: skip
            return
    for tensor in trace.batch.values():
        if not is_finite(tensor) and not is_finite(trace.loss.now):
            count = int((~torch.isfinite(tensor)).sum())
            yield Finding(
                "non-finite data", "", trace.default_line, count,
                f"The batch has {_count(count, 'non-finite value')} in a tensor {tuple(tensor.shape)}.",
                "Repair or remove these rows.",
            )  # fmt: skip
            return
    step = _origin(trace) if not is_finite(trace.loss.now) else _overflow(trace)
    if step is not None:
        yield _forward(trace, step)
    elif not finite_gradients and trace.nonfinite_backward is not None:
        yield _backward(trace, trace.nonfinite_backward)


def _origin(trace: StepTrace) -> Step | None:
    """The first step that made a non-finite value, searched backward from the loss."""
    order = {id(step): index for index, step in enumerate(trace.steps)}
    pending, seen = [trace.loss.origin], set()
    while pending:
        step = pending.pop()
        if step is None or id(step) in seen or id(step) not in order:
            continue
        seen.add(id(step))
        pending += [value.origin for value in step.inputs if not is_finite(value.now)]
    steps = [trace.steps[index] for index in sorted(order[step] for step in seen)]
    from_finite = [
        step
        for step in steps
        if all(is_finite(v.now) for v in step.inputs) and packet(step.target) not in _CONSTANT_FILLS
    ]
    first_nan = [
        step for step in steps if any(_has_nan(v) for v in step.outputs) and not any(_has_nan(v) for v in step.inputs)
    ]
    return next(iter(from_finite or first_nan or steps), None)


def _overflow(trace: StepTrace) -> Step | None:
    """A step that overflows although the loss is finite, since a later division by infinity gives 0."""
    for step in trace.steps:
        if packet(step.target) not in _OVERFLOWING or not any(value.smooth for value in step.outputs):
            continue
        if any(_has_infinity(value) for value in step.outputs) and all(is_finite(value.now) for value in step.inputs):
            return step
    return None


def _forward(trace: StepTrace, step: Step) -> Finding:
    name, out = packet(step.target) or step.name, step.outputs[0]
    source = next((value for value in step.inputs if value.smooth), None)
    values = None if source is None else source.now
    half_precision = out.dtype in _HALF_PRECISION
    kind = str(out.dtype).removeprefix("torch.")
    low, high = (0.0, 0.0) if values is None or not values.numel() else (float(values.min()), float(values.max()))
    if name in ("log", "log2", "log10", "log1p"):
        count = int(((values if name != "log1p" else values + 1) <= 0).sum()) if values is not None else 0
        problem = "log of zero" if low >= (0 if name != "log1p" else -1) else "log of a negative number"
        return trace.finding(
            problem, step, count,
            f"{name} has {_count(count, 'input')} at or below {-1 if name == 'log1p' else 0}; the smallest is {low:.3g}{_produced_by(trace, source)}.",
            "Apply log_softmax, logsigmoid or logsumexp to the logits, or add a small constant: (x + 1e-8).log().",
        )  # fmt: skip
    if name in ("div", "reciprocal", "rsqrt") and not half_precision:
        other = [value for value in step.inputs if value.smooth][-1]
        return trace.finding(
            "division by zero", step, 0.0, f"{name} divides by 0{_produced_by(trace, other)}.",
            "Keep the divisor away from 0: add a small constant, or clamp it.",
        )  # fmt: skip
    if name in ("sqrt", "pow", "acos", "asin", "atanh", "acosh") and any(_has_nan(v) for v in step.outputs):
        return trace.finding(
            f"{name} outside its domain", step, low, f"The input of {name} is {low:.3g}{_produced_by(trace, source)}.",
            "Keep its input inside the domain with clamp.",
        )  # fmt: skip
    if "softmax" in name and low == -float("inf"):
        return trace.finding(
            "softmax over a fully masked row", step, low, "A row of the softmax is masked completely.",
            "Leave one entry of every row unmasked, or remove such rows.",
        )  # fmt: skip
    if name.startswith("nll_loss") and any(_has_nan(value) for value in step.outputs):
        return trace.finding(
            "all targets ignored", step, 0.0,
            "The weights of all targets add up to 0 (weight=, ignore_index=), so the loss is 0 / 0.",
            "Give every class a positive weight, and skip batches in which no target is left.",
        )  # fmt: skip
    largest = torch.finfo(out.dtype).max
    problem = "overflow in half precision" if half_precision else "overflow"
    size = max((rms(value.now) for value in step.inputs if value.smooth and is_finite(value.now)), default=0.0)
    overflow = f"{name} of inputs up to {high:.4g} exceeds the largest {kind} ({largest:.3g})"
    if name in ("exp", "expm1"):
        remedy = "Subtract the row's maximum before exp, or use torch.softmax or torch.logsumexp, which do that."
    elif half_precision:
        remedy = "Compute this step in float32, or divide before it."
    else:
        remedy = "Find why its inputs are large: scale the initialisation down, add a norm, or clip."
    return trace.finding(problem, step, high if high else size, f"{overflow}{_produced_by(trace, source)}.", remedy)


def _backward(trace: StepTrace, step: Step) -> Finding:
    name = packet(step.target) or step.name
    source = next((value for value in step.inputs if value.smooth), None)
    zeros = 0 if source is None or source.now is None else int((source.now == 0).sum())
    at = f", with {_count(zeros, 'input')} equal to 0" if zeros else ""
    return trace.finding(
        "non-finite gradient", step, zeros,
        f"The loss is finite, but the gradient through {name} is not{at}{_produced_by(trace, source)}.",
        f"Keep the input of {name} away from 0, as in (x + 1e-8).{name}(); torch.where after it does not help.",
    )  # fmt: skip


def _produced_by(trace: StepTrace, value: Value | None) -> str:
    """The operator that produced an input, as text."""
    step = None if value is None else value.origin
    if step is None:
        return ""
    name = packet(step.target) or step.name
    return f"; its input comes from {name}{f' in {step.module}' if step.module else ''}"


def _has_nan(value: Value) -> bool:
    return isinstance(value.now, Tensor) and value.smooth and bool(torch.isnan(value.now).any())


def _has_infinity(value: Value) -> bool:
    return (
        isinstance(value.now, Tensor)
        and value.smooth
        and not value.dtype.is_complex
        and bool((value.now == float("inf")).any())
    )


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
