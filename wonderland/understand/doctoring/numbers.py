"""Numbers that are not finite: where the first one was made, and of what."""

from collections.abc import Iterator

import torch
from torch import Tensor

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step, Value
from wonderland.understand.doctoring.exam import Exam, finite, rms
from wonderland.understand.doctoring.finding import Finding

_HALF = (torch.float16, torch.bfloat16)
_GIVEN = frozenset(
    {"full", "full_like", "masked_fill", "where", "fill", "scalar_tensor", "constant_pad_nd", "index_put", "scatter"}
)  # fmt: skip
# An infinity from these is never meant, whatever becomes of it later.
_NEVER = frozenset(
    {"exp", "expm1", "sum", "mean", "cumsum", "mul", "add", "addmm", "mm", "bmm", "baddbmm", "convolution", "pow", "cosh", "sinh", "square"}
)  # fmt: skip


def numbers(exam: Exam, torch_finite: bool) -> Iterator[Finding]:
    """The site of the first number that is not finite, if loss or gradients have any."""
    for name, number in exam.numbers.items():
        if not finite(number):
            share = float((~torch.isfinite(number)).double().mean())
            yield Finding(
                "broken weights", exam.place(name), exam.defined(name), share,
                f"{name} holds numbers that are not finite before the first step.",
                "Build the model anew, or load weights saved before they broke.",
            )  # fmt: skip
            return
    for tensor in exam.batch.values():
        if not finite(tensor) and not finite(exam.loss.now):
            count = int((~torch.isfinite(tensor)).sum())
            yield Finding(
                "broken data", "", exam.home, count,
                f"The batch holds {_count(count, 'number')} that {'is' if count == 1 else 'are'} not finite, in a tensor {tuple(tensor.shape)}.",
                "Repair or leave out these rows before they reach the model.",
            )  # fmt: skip
            return
    step = _origin(exam) if not finite(exam.loss.now) else _silent(exam)
    if step is not None:
        yield _forward(exam, step)
    elif not torch_finite and exam.sick_reverse is not None:
        yield _backward(exam, exam.sick_reverse)


def _origin(exam: Exam) -> Step | None:
    """Walk back from the loss along numbers that are not finite, to the first step that made one."""
    place = {id(step): index for index, step in enumerate(exam.steps)}
    waiting, seen = [exam.loss.origin], set()
    while waiting:
        step = waiting.pop()
        if step is None or id(step) in seen or id(step) not in place:
            continue
        seen.add(id(step))
        waiting += [value.origin for value in step.inputs if not finite(value.now)]
    chain = sorted(place[one] for one in seen)
    steps = [exam.steps[index] for index in chain]
    made = [step for step in steps if all(finite(v.now) for v in step.inputs) and packet(step.target) not in _GIVEN]
    turned = [step for step in steps if any(_nan(v) for v in step.outputs) and not any(_nan(v) for v in step.inputs)]
    return next(iter(made or turned or steps), None)


def _silent(exam: Exam) -> Step | None:
    """A step that overflows although the loss is finite: dividing by infinity gives a quiet 0."""
    for step in exam.steps:
        if packet(step.target) not in _NEVER or not any(value.smooth for value in step.outputs):
            continue
        if any(_positive(value) for value in step.outputs) and all(finite(value.now) for value in step.inputs):
            return step
    return None


def _forward(exam: Exam, step: Step) -> Finding:
    name, out = packet(step.target) or step.name, step.outputs[0]
    source = next((value for value in step.inputs if value.smooth), None)
    now = None if source is None else source.now
    half = out.dtype in _HALF
    kind = str(out.dtype).removeprefix("torch.")
    low, high = (0.0, 0.0) if now is None or not now.numel() else (float(now.min()), float(now.max()))
    if name in ("log", "log2", "log10", "log1p"):
        count = int(((now if name != "log1p" else now + 1) <= 0).sum()) if now is not None else 0
        illness = "log of zero" if low >= (0 if name != "log1p" else -1) else "log of a negative number"
        return exam.finding(
            illness, step, count,
            f"{name} is taken of {_count(count, 'number')} at or below 0; the smallest is {low:.3g}{_maker(exam, source)}.",
            "Take log_softmax, logsigmoid or logsumexp of the scores themselves, or add a small number inside: (x + 1e-8).log().",
        )  # fmt: skip
    if name in ("div", "reciprocal", "rsqrt") and not half:
        other = [value for value in step.inputs if value.smooth][-1]
        return exam.finding(
            "division by zero", step, 0.0, f"{name} divides by 0{_maker(exam, other)}.",
            "Keep the divisor away from 0: add a small number, or clamp it.",
        )  # fmt: skip
    if name in ("sqrt", "pow", "acos", "asin", "atanh", "acosh") and any(_nan(v) for v in step.outputs):
        return exam.finding(
            f"{name} outside its domain", step, low, f"{name} is taken of {low:.3g}{_maker(exam, source)}.",
            "Keep its argument inside the domain with clamp.",
        )  # fmt: skip
    if "softmax" in name and low == -float("inf"):
        return exam.finding(
            "softmax over nothing", step, low, "A row that softmax is taken over is masked from end to end.",
            "Leave one entry of every row unmasked, or drop such rows.",
        )  # fmt: skip
    largest = torch.finfo(out.dtype).max
    illness = "overflow in half precision" if half else "overflow"
    size = max((rms(value.now) for value in step.inputs if value.smooth and finite(value.now)), default=0.0)
    made = f"{name} of numbers up to {high:.4g} gives more than {kind} can hold ({largest:.3g})"
    if name in ("exp", "expm1"):
        remedy = "Subtract the row's maximum before exp, or use torch.softmax or torch.logsumexp, which do so."
    elif half:
        remedy = "Compute this step in float32, or divide before it."
    else:
        remedy = "Find what makes its arguments large: scale the initialisation down, add a norm, or clip."
    return exam.finding(illness, step, high if high else size, f"{made}{_maker(exam, source)}.", remedy)


def _backward(exam: Exam, step: Step) -> Finding:
    name = packet(step.target) or step.name
    source = next((value for value in step.inputs if value.smooth), None)
    zeros = 0 if source is None or source.now is None else int((source.now == 0).sum())
    at = f", where its argument is 0 in {_count(zeros, 'place')}" if zeros else ""
    return exam.finding(
        "gradient that is not finite", step, zeros,
        f"The loss is finite, but its gradient through {name} is not{at}{_maker(exam, source)}.",
        f"Keep the argument of {name} away from 0 before it is taken, (x + 1e-8).{name}(): choosing with where afterwards is too late.",
    )  # fmt: skip


def _maker(exam: Exam, value: Value | None) -> str:
    """Where the argument came from."""
    step = None if value is None else value.origin
    if step is None:
        return ""
    name = packet(step.target) or step.name
    return f"; they come from {name}{f' in {step.module}' if step.module else ''}"


def _nan(value: Value) -> bool:
    return isinstance(value.now, Tensor) and value.smooth and bool(torch.isnan(value.now).any())


def _positive(value: Value) -> bool:
    return (
        isinstance(value.now, Tensor)
        and value.smooth
        and not value.dtype.is_complex
        and bool((value.now == float("inf")).any())
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
