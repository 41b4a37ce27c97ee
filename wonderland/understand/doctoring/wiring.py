"""Wiring: parameters that no gradient reaches, layers frozen between others, teachers that learn."""

import re
from collections.abc import Iterable, Iterator

import torch

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step
from wonderland.understand.doctoring.exam import Exam, Moment
from wonderland.understand.doctoring.finding import Finding

_TEACHER = re.compile(
    r"(^|[._])(target|teacher|ema|momentum|slow)(_|\d|net|model|encoder|critic|network|$)", re.IGNORECASE
)


def unreached(exam: Exam) -> Iterator[Finding]:
    """Parameters in training to which no gradient flows: never used, or cut off on the way."""
    lost = [name for name in sorted(exam.trainable, key=list(exam.parameters).index) if exam.gradients[name] is None]
    if len(lost) == len(exam.trainable):
        lost = [name for name in lost if _used(exam, name)] or lost
    groups: dict[str, list[str]] = {}
    for name in lost:
        groups.setdefault(_top(exam, name, set(lost)), []).append(name)
    cuts: dict[int, Finding] = {}
    for path, names in groups.items():
        count = sum(exam.numbers[name].numel() for name in names)
        cut = _cut(exam, names)
        words = f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''} ({count:,} numbers)"
        if cut is not None:
            if id(cut) not in cuts:
                how = (
                    "runs without gradients"
                    if not cut.grad_enabled
                    else f"is {packet(cut.target) or cut.name}, which has no gradient"
                )
                cuts[id(cut)] = exam.finding(
                    "cut gradient", cut, count, f"No gradient reaches {words}: the step on the way to the loss {how}.",
                    "Leave out detach, no_grad or rounding on the way, or freeze these parameters on purpose.",
                )  # fmt: skip
                yield cuts[id(cut)]
            continue
        used = any(_used(exam, name) for name in names)
        how = "is used, but what it gives never reaches the loss" if used else "takes no part in the forward pass"
        yield Finding(
            "unused parameter", path, exam.defined(names[0] if path == exam.place(names[0]) else path), count,
            f"{words} {how}, so it never learns.",
            "Use it in forward, or remove it.",
        )  # fmt: skip


def _used(exam: Exam, name: str) -> bool:
    value = exam.parameters[name]
    return any(one is value for step in exam.steps for one in step.inputs)


def _top(exam: Exam, name: str, lost: set[str], among: set[str] | None = None) -> str:
    """The highest module all of whose parameters (those in training unless others are named) are lost."""
    among = exam.trainable if among is None else among
    path = exam.place(name)
    while path:
        parent = path.rpartition(".")[0]
        if not parent or any(other.startswith(parent + ".") and other not in lost for other in among):
            break
        path = parent
    return path


def _cut(exam: Exam, names: Iterable[str]) -> Step | None:
    """The first step at which the way from parameters to the loss has no gradient, if there is a way."""
    needed = {id(exam.loss)}
    way: set[int] = set()
    for step in reversed(exam.steps):
        if any(id(value) in needed for value in step.outputs):
            way.add(id(step))
            needed.update(id(value) for value in step.inputs)
    touched = {id(exam.parameters[name]) for name in names}
    for step in exam.steps:
        if not any(id(value) in touched for value in step.inputs):
            continue
        if id(step) in way and not any(id(value) in exam.alive for value in step.outputs):
            return step
        touched.update(id(value) for value in step.outputs)
    return None


def frozen(exam: Exam) -> Iterator[Finding]:
    """Layers that do not learn although layers before and after them do."""
    still = [m for m in exam.layers if m.weights and not m.weights & exam.trainable]
    learning = [m for m in exam.layers if m.weights & exam.trainable]
    fixed = {name for name in exam.parameters if name not in exam.trainable and name not in exam.outside}
    places = {exam.place(sorted(m.weights)[0]): m for m in reversed(still)}
    learn = {exam.place(sorted(m.weights & exam.trainable)[0]) for m in learning}
    groups: dict[str, list[Moment]] = {}
    for m in reversed(places.values()):
        if m.source is None or id(m.source) not in exam.alive or _adapted(m, learning):
            continue
        after = any(other.index > m.index and other.depth > m.depth for other in learning)
        if len(places) < len(learn) if after else 4 * len(places) <= len(learn):
            groups.setdefault(_top(exam, sorted(m.weights)[0], fixed, set(exam.parameters)), []).append(m)
    for path, found in groups.items():
        names = sorted(name for name in fixed if name.startswith(f"{path}.") or exam.place(name) == path)
        count = sum(exam.numbers[name].numel() for name in names)
        said = f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}"
        verb = "have" if len(names) > 1 else "has"
        yield Finding(
            "frozen layer", path, exam.line(found[0].step), count,
            f"{said} {verb} requires_grad=False, while {len(learn)} other layers are in training, before this one too.",
            "If that is not meant, call requires_grad_(True) on it before the optimizer is made.",
        )  # fmt: skip


def _adapted(m: Moment, learning: list[Moment]) -> bool:
    """Whether a frozen layer has a narrow one in training beside it, as adapters of low rank are."""
    width = lambda one: one.out.shape[one.axis] if one.out.shape else 0  # noqa: E731
    return any(
        other.source is not None
        and m.source is not None
        and other.source.now is m.source.now
        and width(other) < min(width(m), m.source.shape[-1])
        for other in learning
    )


def teachers(exam: Exam, held: set[str] | None) -> Iterator[Finding]:
    """Modules that others are held against, and that learn themselves: copies, what the loss brings, what nobody updates."""
    reached = {name for name, slope in exam.gradients.items() if slope is not None}
    if held is not None and held & exam.trainable:
        lost = sorted(name for name in reached & exam.trainable - held)
        if lost:
            path = _top(exam, lost[0], set(lost))
            yield _teacher(exam, path, lost, "are not among the parameters of the optimizer")
            return
    outside = sorted(reached & exam.outside)
    if outside:
        yield _teacher(exam, "", outside, "belong to a module that only the loss knows")
        return
    modules = [(path, one) for path, one in exam.model.named_modules() if path and any(True for _ in one.parameters())]
    shapes = {path: {name: tuple(p.shape) for name, p in one.named_parameters()} for path, one in modules}
    for index, (path, one) in enumerate(modules):
        for other, two in modules[:index]:
            if shapes[path] != shapes[other] or other.startswith(path + ".") or path.startswith(other + "."):
                continue
            hint = bool(_TEACHER.search(path)) != bool(_TEACHER.search(other))
            equal = all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
            twins = equal and any(True for _ in one.children()) and any(p.dim() > 1 for p in one.parameters())
            if not (hint or twins) or _in_series(exam, other, path):
                continue
            learner = other if _TEACHER.search(path) or not hint else path
            taught = path if learner == other else other
            mine = [f"{taught}.{name}" for name in shapes[path] if f"{taught}.{name}" in reached]
            if mine and any(f"{learner}.{name}" in reached for name in shapes[path]):
                why = "are those of a copy" if equal else "are those of a twin"
                yield _teacher(exam, taught, mine, f"{why} of {learner}, beside which it runs")
                return


def _in_series(exam: Exam, first: str, second: str) -> bool:
    """Whether one of two modules works on what the other one gave."""

    def inside(step: Step, path: str) -> bool:
        return step.module == path or step.module.startswith(path + ".")

    for one, two in ((first, second), (second, first)):
        touched: set[int] = set()
        for step in exam.steps:
            if inside(step, one):
                touched.update(id(value) for value in step.outputs)
            elif any(id(value) in touched for value in step.inputs):
                if inside(step, two):
                    return True
                touched.update(id(value) for value in step.outputs)
    return False


def _teacher(exam: Exam, path: str, names: list[str], why: str) -> Finding:
    value = exam.parameters[names[0]]
    step = next((step for step in exam.steps if any(one is value for one in step.inputs)), None)
    return Finding(
        "missing detach", path, exam.line(step), len(names),
        f"Gradients flow into {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}, which {why}.",
        "If it is a teacher or target, compute its answer under torch.no_grad(), or take .detach() of it.",
    )  # fmt: skip
