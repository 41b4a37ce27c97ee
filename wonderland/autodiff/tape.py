"""Pushing tangents forward and cotangents backward through a recorded program, step by step, by the rules of the table."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step, Value, over, values
from wonderland.autodiff.record import standing_for
from wonderland.autodiff.recording import quiet, recording
from wonderland.autodiff.rules.table import Call, Rule, bound, conj, find, no_rule


def active(steps: Sequence[Step], sources: Sequence[Value]) -> set[int]:
    """The values, by id, through which derivatives by the sources flow."""
    found = {id(value) for value in sources}
    for step in steps:
        if not step.smooth or not any(id(value) in found for value in step.inputs):
            continue
        rule = find(step.target)
        if rule is not None and rule.stops:
            continue
        blind = rule.blind if rule is not None else ()
        for number, value in enumerate(step.outputs):
            if value.smooth and number not in blind:
                found.add(id(value))
    return found


def pull(
    steps: Sequence[Step], sources: Sequence[Value], outputs: Sequence[Value], cotangents: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Cotangents of the sources from those of the outputs: reverse mode."""
    alive = active(steps, sources)
    slopes: dict[int, Any] = {}
    for value, slope in zip(outputs, cotangents, strict=True):
        if slope is not None and id(value) in alive:
            _add(slopes, value, slope)
    wanted = {id(value) for value in sources}
    with quiet():
        for step in reversed(steps):
            given = [slopes.get(id(value)) for value in step.outputs]
            if all(slope is None for slope in given):
                continue
            for value in step.outputs:
                if id(value) not in wanted:
                    slopes.pop(id(value), None)
            if not any(id(value) in alive for value in step.inputs):
                continue
            with standing_for(step):
                for value, slope in reverse(step, given, alive):
                    _add(slopes, value, slope)
    return [slopes.get(id(value)) for value in sources]


def _add(slopes: dict[int, Any], value: Value, slope: Tensor) -> None:
    had = slopes.get(id(value))
    slopes[id(value)] = slope if had is None else had + slope


def called(step: Step) -> tuple[Call, Rule, dict[Any, Any]]:
    """A step as rules see it: numbers for values."""
    rule = find(step.target)
    assert rule is not None
    named = bound(step.target, step.args, step.kwargs)
    numbers = {name: over(entry, Value, _number) for name, entry in named.items()}
    y = over(step.result, Value, _number)
    call = Call(op_=step.target, rule_=rule, args=tuple(numbers.values()), names=tuple(numbers), y=y)
    for name, number in numbers.items():
        if isinstance(name, str):
            setattr(call, name, number)
    return call, rule, named


def _number(value: Value) -> Tensor:
    assert value.now is not None
    return value.now


def reverse(step: Step, slopes: Sequence[Tensor | None], alive: set[int]) -> list[tuple[Value, Tensor]]:
    """The cotangents of a step's arguments, for those through which derivatives flow."""
    if find(step.target) is None:
        raise no_rule(step.target, "reverse")
    call, rule, named = called(step)
    needs = [name for name, entry in named.items() if any(id(value) in alive for value in values(entry))]
    given = iter(slopes)
    g = over(step.result, Value, lambda _: next(given))
    if not isinstance(step.result, Value):
        outputs = step.outputs
        if len(outputs) == 1 and isinstance(step.result, tuple) and len(step.result) == 1:
            g = g[0]
    found: dict[Any, Any] = {}
    pairs: list[tuple[Value, Tensor]] = []
    if (matrix := _repeated(step, alive)) is not None:
        needs.remove("mat2")
        pairs.append((matrix, fit(conj(call.self).flatten(0, 1).t() @ g.flatten(0, 1), matrix)))
    if rule.joint is not None:
        found = rule.joint(needs, g, call)
    for name in needs:
        if name in found:
            continue
        if name not in rule.each:
            raise no_rule(step.target, f"reverse ({name})")
        found[name] = rule.each[name](g, call)
    for name in needs:
        entry, slope = named[name], found.get(name)
        if isinstance(entry, Value):
            entry, slope = [entry], [slope]
        for value, one in zip(entry, slope or [], strict=False):
            if isinstance(value, Value) and one is not None and id(value) in alive:
                pairs.append((value, fit(one, value)))
    return pairs


def _repeated(step: Step, alive: set[int]) -> Value | None:
    """The matrix that a batched product uses for every entry of the batch: its cotangent is one product, not a sum of many."""
    if packet(step.target) != "bmm" or id(step.args[1]) not in alive:
        return None
    value, origin = step.args[1], step.args[1].origin
    while origin is not None and packet(origin.target) in ("view", "_unsafe_view", "expand") and origin.smooth:
        before = origin.inputs[0]
        if before.shape == value.shape[1:] and packet(origin.target) == "expand" and id(before) in alive:
            return before
        if before.shape != value.shape:
            return None
        value, origin = before, before.origin
    return None


def fit(slope: Tensor, value: Value) -> Tensor:
    """A cotangent in the shape and numbers of what it belongs to: summed over what was broadcast."""
    shape = value.shape
    if tuple(slope.shape) != shape:
        extra = slope.dim() - len(shape)
        if extra > 0:
            slope = slope.sum(list(range(extra)))
        axes = [axis for axis, size in enumerate(shape) if size == 1 and slope.shape[axis] != 1]
        if axes:
            slope = slope.sum(axes, keepdim=True)
        if tuple(slope.shape) != shape:
            slope = slope.expand(shape)
    if slope.is_complex() and not value.dtype.is_complex:
        slope = torch.real(slope)
    return slope.to(value.dtype) if slope.dtype != value.dtype else slope


def push(
    steps: Sequence[Step], sources: Sequence[Value], tangents: Sequence[Tensor | None], outputs: Sequence[Value]
) -> list[Tensor | None]:
    """Tangents of the outputs from those of the sources: forward mode."""
    alive = active(steps, [value for value, tangent in zip(sources, tangents, strict=True) if tangent is not None])
    moves: dict[int, Tensor] = {
        id(value): tangent for value, tangent in zip(sources, tangents, strict=True) if tangent is not None
    }
    with quiet():
        for step in steps:
            if not any(id(value) in alive for value in step.outputs):
                continue
            with standing_for(step):
                for value, tangent in forward(step, moves):
                    moves[id(value)] = tangent
    return [moves.get(id(value)) for value in outputs]


def forward(step: Step, moves: dict[int, Tensor]) -> list[tuple[Value, Tensor]]:
    """The tangents of a step's outputs."""
    rule = find(step.target)
    if rule is None:
        raise no_rule(step.target, "forward")
    if not any(id(value) in moves for value in step.inputs):
        return []
    call, rule, named = called(step)
    t: dict[Any, Any] = {}
    for name, entry in named.items():
        if isinstance(entry, Value):
            if id(entry) in moves and entry.smooth:
                t[name] = moves[id(entry)]
        elif any(id(value) in moves for value in values(entry)):
            t[name] = [
                None
                if not isinstance(value, Value)
                else moves[id(value)]
                if id(value) in moves
                else torch.zeros_like(_number(value))
                for value in entry
            ]
    found = rule.tangent(t, call) if rule.tangent is not None else transposed(step, t, call, rule)
    outputs = step.outputs
    if isinstance(found, Tensor) or found is None:
        found = [found] + [None] * (len(outputs) - 1)
    pairs = []
    for number, (value, tangent) in enumerate(zip(outputs, found, strict=False)):
        if tangent is None or not value.smooth or number in rule.blind:
            continue
        if tuple(tangent.shape) != value.shape:
            tangent = tangent.expand(value.shape)
        pairs.append((value, tangent.to(value.dtype) if tangent.dtype != value.dtype else tangent))
    return pairs


def transposed(step: Step, t: dict[Any, Any], call: Call, rule: Rule) -> list[Tensor | None]:
    """Forward mode from the reverse rule: that rule is linear in the cotangent, and its transpose is the tangent map."""
    outputs = [value for number, value in enumerate(step.outputs) if value.smooth and number not in rule.blind]
    sources = [value for name in t for value in values(bound(step.target, step.args, step.kwargs)[name])]
    tangents = [
        tangent
        for name in t
        for tangent in (t[name] if isinstance(t[name], list) else [t[name]])
        if tangent is not None
    ]
    probes = [torch.zeros_like(_number(value)) for value in outputs]
    alive = {id(value) for value in sources}
    with recording(probes) as recorder:
        given = iter(probes)
        slopes = [next(given) if any(value is one for one in outputs) else None for value in step.outputs]
        pairs = reverse(step, slopes, alive)
        ends = [(value, recorder.value(slope)) for value, slope in pairs]
    slopes_of: dict[int, list[Value]] = {}
    for value, end in ends:
        slopes_of.setdefault(id(value), []).append(end)
    ends_, starts = [], []
    for value, tangent in zip(sources, tangents, strict=True):
        for end in slopes_of.pop(id(value), []):
            ends_.append(end)
            starts.append(conj_fit(tangent, end))
    found = pull(recorder.steps, recorder.inputs, ends_, starts)
    named = iter(found)
    return [next(named) if any(value is one for one in outputs) else None for value in step.outputs]


def conj_fit(tangent: Tensor, end: Value) -> Tensor:
    """A tangent as the cotangent of a rule's result."""
    return tangent.to(end.dtype) if tangent.dtype != end.dtype else tangent
