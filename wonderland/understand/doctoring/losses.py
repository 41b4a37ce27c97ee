"""Losses that are given what they do not expect: shares in the place of scores, rows against columns."""

from collections.abc import Iterator

import torch
from torch import Tensor

from wonderland.autodiff.cost import VIEWS, packet
from wonderland.autodiff.node import Step, Value
from wonderland.understand.doctoring.exam import Exam, Moment, wide
from wonderland.understand.doctoring.finding import Finding

_PAIRED = frozenset(
    {"sub", "rsub", "mul", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "xlogy", "eq", "div"}
)  # fmt: skip


def losses(exam: Exam) -> Iterator[Finding]:
    """The first step of the loss that reads its arguments otherwise than they were meant."""
    for m in exam.moments:
        if id(m.out) not in exam.alive:
            continue
        found = _twice(exam, m) or _squashed(exam, m) or _no_logarithms(exam, m) or _crossed(exam, m)
        if found is not None:
            yield found
            return


def _twice(exam: Exam, m: Moment) -> Finding | None:
    """The log_softmax of a cross-entropy taken of what lies between 0 and 1 and sums to 1 already."""
    if m.name != "_log_softmax" or m.source is None or not isinstance(m.source.now, Tensor):
        return None
    shares, axis = wide(m.source.now), int(m.step.args[1])
    if shares.shape[axis] < 2 or bool((shares < 0).any()):
        return None
    if float((shares.sum(axis) - 1).abs().max()) > 0.01:
        return None
    count = shares.shape[axis]
    least = torch.log(torch.tensor(1 + (count - 1) / torch.e)).item()
    return exam.finding(
        "softmax before cross-entropy", m.step, least,
        f"The scores lie between 0 and 1 and sum to 1 over {count} classes, so softmax was taken of them already and is taken "
        f"again here: the loss cannot fall below {least:.2f}.",
        "Give the loss the scores themselves: leave out the softmax in the model, and take it when predicting.",
    )  # fmt: skip


def _squashed(exam: Exam, m: Moment) -> Finding | None:
    """The sigmoid inside of a loss taken of what a sigmoid gave."""
    if m.name not in ("log_sigmoid", "log_sigmoid_forward") or m.source is None:
        return None
    maker = _maker(m.source)
    if maker is None or packet(maker.target) not in ("sigmoid", "_softmax"):
        return None
    return exam.finding(
        "sigmoid before a loss of logits", m.step, 0.69,
        f"The loss takes the sigmoid of its scores itself, and these come from {packet(maker.target).strip('_')} already.",
        "Leave out the sigmoid in the model, or take binary_cross_entropy, which expects probabilities.",
    )  # fmt: skip


def _no_logarithms(exam: Exam, m: Moment) -> Finding | None:
    """The negative log-likelihood of numbers that are no logarithms of probabilities."""
    if m.name not in ("nll_loss_forward", "nll_loss2d_forward") or m.source is None or m.source.now is None:
        return None
    scores = wide(m.source.now)
    axis = 1 if scores.dim() > 1 else 0
    if scores.shape[axis] < 2 or not bool(torch.isfinite(scores).all()):
        return None
    mass = scores.exp().sum(axis)
    if 0.5 < float(mass.median()) < 1.5:
        return None
    return exam.finding(
        "nll loss of scores", m.step, float(mass.median()),
        f"nll_loss expects logarithms of probabilities, and the exponentials of what it is given sum to {float(mass.median()):.3g}, not 1.",
        "Take cross_entropy of the scores, or log_softmax before nll_loss.",
    )  # fmt: skip


def _crossed(exam: Exam, m: Moment) -> Finding | None:
    """Answers (n, 1) held against targets (n,): every answer meets every target."""
    if m.name not in _PAIRED or len(m.step.inputs) < 2:
        return None
    one, two = (_narrow(value) for value in m.step.inputs[:2])
    count = max(one.numel, two.numel)
    if (
        count < 2
        or sorted((one.shape, two.shape), key=len) != [(count,), (count, 1)]
        or m.out.numel not in (1, count**2)
    ):
        return None
    given = [value for value in (one, two) if exam.fed(value) and id(value) not in exam.alive]
    learns = [value for value in (one, two) if id(value) in exam.alive]
    if not given or not learns:
        return None
    return exam.finding(
        "broadcast loss", m.step, count**2,
        f"Answers {learns[0].shape} against targets {given[0].shape} give {count} x {count} differences: every answer is held "
        "against every target, and the best the model can learn is their mean.",
        "Give both the same shape: answer.squeeze(-1), or targets.unsqueeze(-1).",
    )  # fmt: skip


def _narrow(value: Value) -> Value:
    """A value before it was expanded."""
    while (step := value.origin) is not None and packet(step.target) == "expand":
        value = step.inputs[0]
    return value


def _maker(value: Value) -> Step | None:
    """The step that computed a value, seen through views."""
    step = value.origin
    while step is not None and packet(step.target) in VIEWS and step.inputs:
        step = step.inputs[0].origin
    return step
