"""Reverse and forward mode over recorded steps: cotangents are pulled back, tangents pushed forward, by the rules."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step, Value, map_tree, values
from wonderland.autodiff.recorder import attributed_to
from wonderland.autodiff.recording import no_torch_graph, recording
from wonderland.autodiff.rules.table import Call, Rule, bind_arguments, conj, find, no_rule


def active(steps: Sequence[Step], sources: Sequence[Value]) -> set[int]:
    """The ids of the values that have a derivative with respect to the sources."""
    reached = {id(value) for value in sources}
    for step in steps:
        if not step.grad_enabled or not any(id(value) in reached for value in step.inputs):
            continue
        rule = find(step.target)
        if rule is not None and rule.stops:
            continue
        nondifferentiable = rule.nondifferentiable if rule is not None else ()
        for number, value in enumerate(step.outputs):
            if value.smooth and number not in nondifferentiable:
                reached.add(id(value))
    return reached


def pull(
    steps: Sequence[Step],
    sources: Sequence[Value],
    outputs: Sequence[Value],
    output_cotangents: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """Reverse mode: the cotangents of the sources, given those of the outputs."""
    alive = active(steps, sources)
    cotangents: dict[int, Any] = {}
    for value, cotangent in zip(outputs, output_cotangents, strict=True):
        if cotangent is not None and id(value) in alive:
            _add(cotangents, value, cotangent)
    wanted = {id(value) for value in sources}
    with no_torch_graph():
        for step in reversed(steps):
            given = [cotangents.get(id(value)) for value in step.outputs]
            if all(cotangent is None for cotangent in given):
                continue
            for value in step.outputs:
                if id(value) not in wanted:
                    cotangents.pop(id(value), None)
            if not any(id(value) in alive for value in step.inputs):
                continue
            with attributed_to(step):
                for value, cotangent in reverse(step, given, alive):
                    _add(cotangents, value, cotangent)
    return [cotangents.get(id(value)) for value in sources]


def _add(cotangents: dict[int, Any], value: Value, cotangent: Tensor) -> None:
    so_far = cotangents.get(id(value))
    cotangents[id(value)] = cotangent if so_far is None else so_far + cotangent


def as_call(step: Step) -> tuple[Call, Rule, dict[Any, Any]]:
    """(the call that rules are given, the rule, the values by argument name) for a step."""
    rule = find(step.target)
    assert rule is not None
    named = bind_arguments(step.target, step.args, step.kwargs)
    tensors = {name: map_tree(entry, Value, _tensor) for name, entry in named.items()}
    y = map_tree(step.result, Value, _tensor)
    call = Call(op_=step.target, rule_=rule, args=tuple(tensors.values()), names=tuple(tensors), y=y)
    for name, entry in tensors.items():
        if isinstance(name, str):
            setattr(call, name, entry)
    return call, rule, named


def _tensor(value: Value) -> Tensor:
    assert value.now is not None
    return value.now


def reverse(step: Step, cotangents: Sequence[Tensor | None], alive: set[int]) -> list[tuple[Value, Tensor]]:
    """(value, cotangent) for each input of a step that is in `alive`, given the cotangents of its outputs."""
    if find(step.target) is None:
        raise no_rule(step.target, "reverse")
    call, rule, named = as_call(step)
    needs = [name for name, entry in named.items() if any(id(value) in alive for value in values(entry))]
    given = iter(cotangents)
    g = map_tree(step.result, Value, lambda _: next(given))
    if not isinstance(step.result, Value):
        outputs = step.outputs
        if len(outputs) == 1 and isinstance(step.result, tuple) and len(step.result) == 1:
            g = g[0]
    by_name: dict[Any, Any] = {}
    pairs: list[tuple[Value, Tensor]] = []
    if (matrix := _broadcast_matrix(step, alive)) is not None:
        needs.remove("mat2")
        pairs.append((matrix, match_value(conj(call.self).flatten(0, 1).t() @ g.flatten(0, 1), matrix)))
    if rule.joint is not None:
        by_name = rule.joint(needs, g, call)
    for name in needs:
        if name in by_name:
            continue
        if name not in rule.each:
            raise no_rule(step.target, f"reverse ({name})")
        by_name[name] = rule.each[name](g, call)
    for name in needs:
        entries, results = named[name], by_name.get(name)
        if isinstance(entries, Value):
            entries, results = [entries], [results]
        for value, cotangent in zip(entries, results or [], strict=False):
            if isinstance(value, Value) and cotangent is not None and id(value) in alive:
                pairs.append((value, match_value(cotangent, value)))
    return pairs


def _broadcast_matrix(step: Step, alive: set[int]) -> Value | None:
    """The matrix that a bmm has expanded over the batch, if there is one.

    Its cotangent is then a single matrix product, which is cheaper than a batched product and a sum over the batch.
    """
    if packet(step.target) != "bmm" or id(step.args[1]) not in alive:
        return None
    value, origin = step.args[1], step.args[1].origin
    while origin is not None and packet(origin.target) in ("view", "_unsafe_view", "expand") and origin.grad_enabled:
        before = origin.inputs[0]
        if before.shape == value.shape[1:] and packet(origin.target) == "expand" and id(before) in alive:
            return before
        if before.shape != value.shape:
            return None
        value, origin = before, before.origin
    return None


def match_value(cotangent: Tensor, value: Value) -> Tensor:
    """A cotangent with the shape and dtype of its value: summed over axes that were broadcast."""
    shape = value.shape
    if tuple(cotangent.shape) != shape:
        extra = cotangent.dim() - len(shape)
        if extra > 0:
            cotangent = cotangent.sum(list(range(extra)))
        axes = [axis for axis, size in enumerate(shape) if size == 1 and cotangent.shape[axis] != 1]
        if axes:
            cotangent = cotangent.sum(axes, keepdim=True)
        if tuple(cotangent.shape) != shape:
            cotangent = cotangent.expand(shape)
    if cotangent.is_complex() and not value.dtype.is_complex:
        cotangent = torch.real(cotangent)
    return cotangent.to(value.dtype) if cotangent.dtype != value.dtype else cotangent


def push(
    steps: Sequence[Step], sources: Sequence[Value], source_tangents: Sequence[Tensor | None], outputs: Sequence[Value]
) -> list[Tensor | None]:
    """Forward mode: the tangents of the outputs, given those of the sources."""
    given = [(value, tangent) for value, tangent in zip(sources, source_tangents, strict=True) if tangent is not None]
    alive = active(steps, [value for value, _ in given])
    tangents: dict[int, Tensor] = {id(value): tangent for value, tangent in given}
    with no_torch_graph():
        for step in steps:
            if not any(id(value) in alive for value in step.outputs):
                continue
            with attributed_to(step):
                for value, tangent in forward(step, tangents):
                    tangents[id(value)] = tangent
    return [tangents.get(id(value)) for value in outputs]


def forward(step: Step, tangents: dict[int, Tensor]) -> list[tuple[Value, Tensor]]:
    """The tangents of a step's outputs."""
    rule = find(step.target)
    if rule is None:
        raise no_rule(step.target, "forward")
    if not any(id(value) in tangents for value in step.inputs):
        return []
    call, rule, named = as_call(step)
    t: dict[Any, Any] = {}
    for name, entry in named.items():
        if isinstance(entry, Value):
            if id(entry) in tangents and entry.smooth:
                t[name] = tangents[id(entry)]
        elif any(id(value) in tangents for value in values(entry)):
            t[name] = [
                None
                if not isinstance(value, Value)
                else tangents[id(value)]
                if id(value) in tangents
                else torch.zeros_like(_tensor(value))
                for value in entry
            ]
    results = rule.tangent(t, call) if rule.tangent is not None else transpose_reverse(step, t, rule)
    outputs = step.outputs
    if isinstance(results, Tensor) or results is None:
        results = [results] + [None] * (len(outputs) - 1)
    pairs = []
    for number, (value, tangent) in enumerate(zip(outputs, results, strict=False)):
        if tangent is None or not value.smooth or number in rule.nondifferentiable:
            continue
        if tuple(tangent.shape) != value.shape:
            tangent = tangent.expand(value.shape)
        pairs.append((value, tangent.to(value.dtype) if tangent.dtype != value.dtype else tangent))
    return pairs


def transpose_reverse(step: Step, t: dict[Any, Any], rule: Rule) -> list[Tensor | None]:
    """The output tangents from the reverse rule: it is linear in the cotangent, and its transpose is the tangent map."""
    outputs = [
        value for number, value in enumerate(step.outputs) if value.smooth and number not in rule.nondifferentiable
    ]
    sources = [value for name in t for value in values(bind_arguments(step.target, step.args, step.kwargs)[name])]
    tangents = [
        tangent
        for name in t
        for tangent in (t[name] if isinstance(t[name], list) else [t[name]])
        if tangent is not None
    ]
    probes = [torch.zeros_like(_tensor(value)) for value in outputs]
    alive = {id(value) for value in sources}
    with recording(probes) as recorder:
        given = iter(probes)
        cotangents = [next(given) if any(value is output for output in outputs) else None for value in step.outputs]
        pairs = reverse(step, cotangents, alive)
        recorded = [(value, recorder.value(cotangent)) for value, cotangent in pairs]
    cotangents_of: dict[int, list[Value]] = {}
    for value, end in recorded:
        cotangents_of.setdefault(id(value), []).append(end)
    ends, seeds = [], []
    for value, tangent in zip(sources, tangents, strict=True):
        for end in cotangents_of.pop(id(value), []):
            ends.append(end)
            seeds.append(_cast_like(tangent, end))
    results = iter(pull(recorder.steps, recorder.inputs, ends, seeds))
    return [next(results) if any(value is output for output in outputs) else None for value in step.outputs]


def _cast_like(tangent: Tensor, end: Value) -> Tensor:
    """A tangent with the dtype of the recorded cotangent that it is paired with."""
    return tangent.to(end.dtype) if tangent.dtype != end.dtype else tangent
