"""Gradient flow: parameters without a gradient, frozen layers between trained ones, and target networks that are trained."""

import re
from collections.abc import Iterable, Iterator

import torch

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import MATRIX_PRODUCTS, StepTrace, TracedOp

_TARGET_NETWORK = re.compile(
    r"(^|[._])(target|teacher|ema|momentum|slow)(_|\d|net|model|encoder|critic|network|$)", re.IGNORECASE
)

_OPPONENT = re.compile(r"critic|disc|judge|reward|percept|adversar|(^|[._])(d|netd)($|[._])", re.IGNORECASE)


def without_gradient(trace: StepTrace, optimized: set[str] | None = None) -> Iterator[Finding]:
    """Trainable parameters that no gradient reaches: not used, or cut off by an operator without a gradient.

    Parameters that the optimizer leaves out need no gradient: another step trains them.
    """
    missing = [
        name
        for name in sorted(trace.trainable, key=list(trace.parameters).index)
        if trace.gradients[name] is None and (optimized is None or name in optimized)
    ]
    if len(missing) == len(trace.trainable):
        missing = [name for name in missing if _is_used(trace, name)] or missing
    groups: dict[str, list[str]] = {}
    for name in missing:
        groups.setdefault(_highest(trace, name, set(missing)), []).append(name)
    cuts: dict[int, Finding] = {}
    for path, names in groups.items():
        count = sum(trace.parameter_values[name].numel() for name in names)
        cut = _cut(trace, names)
        subject = f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''} ({count:,} parameters)"
        if cut is not None:
            if id(cut) not in cuts:
                how = (
                    "runs under no_grad"
                    if not cut.grad_enabled
                    else f"is {packet(cut.target) or cut.name}, which has no gradient"
                )
                cuts[id(cut)] = trace.finding(
                    "cut gradient", cut, count, f"No gradient reaches {subject}: an operator between them and the loss {how}.",
                    "Remove detach, no_grad or rounding between them and the loss, or freeze these parameters.",
                )  # fmt: skip
                yield cuts[id(cut)]
            continue
        used = any(_is_used(trace, name) for name in names)
        how = "is used, but the loss does not depend on it" if used else "is not used in the forward pass"
        yield Finding(
            "unused parameter", path, trace.defined(names[0] if path == trace.module_of(names[0]) else path), count,
            f"{subject} {how}, so it is never trained.",
            "Use it in forward, or remove it.",
        )  # fmt: skip


def _is_used(trace: StepTrace, name: str) -> bool:
    value = trace.parameters[name]
    return any(used is value for step in trace.steps for used in step.inputs)


def _highest(trace: StepTrace, name: str, missing: set[str], among: set[str] | None = None) -> str:
    """The highest module whose parameters among `among` (by default the trainable ones) are all in `missing`."""
    among = trace.trainable if among is None else among
    path = trace.module_of(name)
    while path:
        parent = path.rpartition(".")[0]
        if not parent or any(other.startswith(parent + ".") and other not in missing for other in among):
            break
        path = parent
    return path


def _cut(trace: StepTrace, names: Iterable[str]) -> Step | None:
    """The first step without a gradient on a path from the parameters to the loss, None where there is no path."""
    needed = {id(trace.loss)}
    on_path: set[int] = set()
    for step in reversed(trace.steps):
        if any(id(value) in needed for value in step.outputs):
            on_path.add(id(step))
            needed.update(id(value) for value in step.inputs)
    reached_values = {id(trace.parameters[name]) for name in names}
    for step in trace.steps:
        if not any(id(value) in reached_values for value in step.inputs):
            continue
        if id(step) in on_path and not any(id(value) in trace.differentiable for value in step.outputs):
            return step
        reached_values.update(id(value) for value in step.outputs)
    return None


def frozen_layers(trace: StepTrace) -> Iterator[Finding]:
    """Layers with requires_grad=False between trained layers."""
    frozen = [op for op in trace.layers if op.weights and not op.weights & trace.trainable]
    trained = [op for op in trace.layers if op.weights & trace.trainable]
    fixed = {name for name in trace.parameters if name not in trace.trainable and name not in trace.loss_parameters}
    frozen_modules = {trace.module_of(sorted(op.weights)[0]): op for op in reversed(frozen)}
    trained_modules = {trace.module_of(sorted(op.weights & trace.trainable)[0]) for op in trained}
    groups: dict[str, list[TracedOp]] = {}
    for op in reversed(frozen_modules.values()):
        if op.source is None or id(op.source) not in trace.differentiable or _has_adapter(op, trained):
            continue
        after = any(other.index > op.index and other.depth > op.depth for other in trained)
        if len(frozen_modules) < len(trained_modules) if after else 4 * len(frozen_modules) <= len(trained_modules):
            groups.setdefault(_highest(trace, sorted(op.weights)[0], fixed, set(trace.parameters)), []).append(op)
    for path, ops in groups.items():
        names = sorted(name for name in fixed if name.startswith(f"{path}.") or trace.module_of(name) == path)
        count = sum(trace.parameter_values[name].numel() for name in names)
        subject = f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}"
        verb = "have" if len(names) > 1 else "has"
        yield Finding(
            "frozen layer", path, trace.line(ops[0].step), count,
            f"{subject} {verb} requires_grad=False, while {len(trained_modules)} other layers are trained, some of them before this one.",
            "If this is not intended, call requires_grad_(True) before the optimizer is made.",
        )  # fmt: skip


def _has_adapter(op: TracedOp, trained: list[TracedOp]) -> bool:
    """Whether a trained layer of lower width reads the same input, as a low-rank adapter (LoRA) does."""
    width = lambda layer: layer.out.shape[layer.axis] if layer.out.shape else 0  # noqa: E731
    return any(
        other.source is not None
        and op.source is not None
        and other.source.now is op.source.now
        and width(other) < min(width(op), op.source.shape[-1])
        for other in trained
    )


def trained_targets(trace: StepTrace, optimized: set[str] | None) -> Iterator[Finding]:
    """Gradients into modules that should be constant: a second copy of a module, a module of the loss, parameters not in the optimizer."""
    reached = {name for name, gradient in trace.gradients.items() if gradient is not None}
    if optimized is not None and optimized & trace.trainable:
        missing = sorted(name for name in reached & trace.trainable - optimized)
        if missing:
            yield from _outside_optimizer(trace, missing, optimized)
            return
    outside = sorted(reached & trace.loss_parameters)
    if outside:
        yield _missing_detach(trace, "", outside, "belong to a module that only the loss uses")
        return
    modules = [
        (path, module)
        for path, module in trace.model.named_modules()
        if path and any(True for _ in module.parameters())
    ]
    shapes = {path: {name: tuple(p.shape) for name, p in module.named_parameters()} for path, module in modules}
    for index, (path, module) in enumerate(modules):
        for other, other_module in modules[:index]:
            if shapes[path] != shapes[other] or other.startswith(path + ".") or path.startswith(other + "."):
                continue
            named_target = bool(_TARGET_NETWORK.search(path)) != bool(_TARGET_NETWORK.search(other))
            equal = all(torch.equal(a, b) for a, b in zip(module.parameters(), other_module.parameters(), strict=True))
            copies = equal and any(True for _ in module.children()) and any(p.dim() > 1 for p in module.parameters())
            if not (named_target or copies) or _in_series(trace, other, path):
                continue
            learner = other if _TARGET_NETWORK.search(path) or not named_target else path
            target = path if learner == other else other
            target_names = [f"{target}.{name}" for name in shapes[path] if f"{target}.{name}" in reached]
            if target_names and any(f"{learner}.{name}" in reached for name in shapes[path]):
                why = "belong to a copy of" if equal else "belong to a module with the shapes of"
                yield _missing_detach(trace, target, target_names, f"{why} {learner}, and both run in parallel")
                return


def _outside_optimizer(trace: StepTrace, missing: list[str], optimized: set[str]) -> Iterator[Finding]:
    """Parameters with a gradient that the optimizer lacks: forgotten, or of a network that this step should not train."""
    path = _highest(trace, missing[0], set(missing))
    apart = all(name.startswith(path + ".") for name in missing) and bool(path)
    if apart and _OPPONENT.search(path) and not _feeds(trace, set(missing), optimized):
        return  # the step of a generator, whose gradient comes through the critic
    if apart and (
        _TARGET_NETWORK.search(path) or _has_twin(trace, path) or _feeds_a_part(trace, set(missing), optimized)
    ):
        yield _missing_detach(trace, path, missing, "are not in the optimizer")
        return
    value = trace.parameters[missing[0]]
    step = next((step for step in trace.steps if any(used is value for used in step.inputs)), None)
    count = sum(trace.parameter_values[name].numel() for name in missing)
    trained = sum(trace.parameter_values[name].numel() for name in optimized & trace.trainable)
    groups = list(dict.fromkeys(_highest(trace, name, set(missing)) for name in missing))
    yield Finding(
        "optimizer lacks parameters", path, trace.line(step), count,
        f"{missing[0]}{f' and {len(missing) - 1} more' if len(missing) > 1 else ''} ({count:,} parameters, in {', '.join(filter(None, groups[:4])) or 'the model'}) "
        f"get gradients, but the optimizer holds {trained:,} other parameters only, so they never change.",
        "Make the optimizer from model.parameters() after all layers exist; if they should stay fixed, call requires_grad_(False).",
    )  # fmt: skip


def _sources(trace: StepTrace, names: set[str]) -> set[int]:
    """Ids of the values that depend on some parameters."""
    reached = {id(trace.parameters[name]) for name in names}
    for step in trace.steps:
        if any(id(value) in reached for value in step.inputs):
            reached.update(id(value) for value in step.outputs)
    return reached


def _feeds(trace: StepTrace, missing: set[str], optimized: set[str]) -> bool:
    """Whether an optimized layer reads what the missing parameters computed."""
    reached = _sources(trace, missing)
    return any(op.weights & optimized and op.source is not None and id(op.source) in reached for op in trace.layers)


def _feeds_a_part(trace: StepTrace, missing: set[str], optimized: set[str]) -> bool:
    """Whether an optimized layer reads the output of the missing parameters in one call and not in another, as a critic does."""
    reached = _sources(trace, missing)
    calls: dict[frozenset[str], set[bool]] = {}
    for step in trace.steps:
        if packet(step.target) not in MATRIX_PRODUCTS:
            continue
        weights = frozenset().union(*(trace.dependencies.get(id(value), (frozenset(),))[0] for value in step.inputs))
        if weights & optimized:
            calls.setdefault(weights & optimized, set()).add(any(id(value) in reached for value in step.inputs))
    return any(len(reads) > 1 for reads in calls.values())


def _has_twin(trace: StepTrace, path: str) -> bool:
    """Whether another module has the same shapes and runs in parallel, as a target network does."""
    shapes = lambda module: [tuple(p.shape) for p in module.parameters()]  # noqa: E731
    own = trace.model.get_submodule(path)
    if len([p for p in own.parameters() if p.dim() > 1]) < 2:
        return False
    return any(
        other and other != path and not other.startswith(path + ".") and not path.startswith(other + ".")
        and shapes(module) == shapes(own) and not _in_series(trace, other, path)
        for other, module in trace.model.named_modules()
    )  # fmt: skip


def _in_series(trace: StepTrace, first: str, second: str) -> bool:
    """Whether one of two modules works on the output of the other."""

    def inside(step: Step, path: str) -> bool:
        return step.module == path or step.module.startswith(path + ".")

    for earlier, later in ((first, second), (second, first)):
        reached_values: set[int] = set()
        for step in trace.steps:
            if inside(step, earlier):
                reached_values.update(id(value) for value in step.outputs)
            elif any(id(value) in reached_values for value in step.inputs):
                if inside(step, later):
                    return True
                reached_values.update(id(value) for value in step.outputs)
    return False


def _missing_detach(trace: StepTrace, path: str, names: list[str], why: str) -> Finding:
    value = trace.parameters[names[0]]
    step = next((step for step in trace.steps if any(used is value for used in step.inputs)), None)
    return Finding(
        "missing detach", path, trace.line(step), len(names),
        f"Gradients flow into {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}, which {why}.",
        "If it is a teacher or target network, compute its output under torch.no_grad(), or detach it.",
    )  # fmt: skip
