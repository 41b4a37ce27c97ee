"""Checkpointing: gradients under a memory budget, by forgetting values of the forward pass and computing them again."""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from wonderland.autodiff import cost, memory
from wonderland.autodiff.node import Step, Value, over
from wonderland.autodiff.trace import Trace, trace
from wonderland.autodiff.transforms import value_and_grad
from wonderland.core import WonderlandError


@dataclass(frozen=True)
class Plan:
    """What checkpointing will do: the peak it predicts, and the work it adds. All in bytes and floating point operations."""

    budget: int
    predicted: int
    without: int
    flops: int
    extra: int
    forgotten: int
    kept: int

    def __str__(self) -> str:
        share = 100 * self.extra / max(self.flops, 1)
        return (
            f"Predicted peak {memory.words(self.predicted)} of the budget of {memory.words(self.budget)} "
            f"({memory.words(self.without)} without checkpointing); {share:.1f} % more work: "
            f"{self.forgotten} values of the forward pass are computed again, {self.kept} are kept."
        )


class Checkpointed:
    """A function that gives (value, gradient) like `value_and_grad`, within a memory budget; made by `checkpoint`."""

    def __init__(self, f: Callable[..., Any], budget: int | str, argnums: int | tuple[int, ...]):
        self.f, self.budget, self.argnums = f, memory.parse(budget), argnums
        self._made: dict[Any, tuple[Trace, Plan]] = {}

    def plan(self, *args: Any) -> Plan:
        """What will be kept and what computed again for these arguments; nothing is run but one trace of the function."""
        return self._ready(args)[1]

    def __call__(self, *args: Any) -> Any:
        return self._ready(args)[0](*args)

    def _ready(self, args: tuple[Any, ...]) -> tuple[Trace, Plan]:
        flat, nesting = tree_flatten(args)
        key = (str(nesting), tuple((tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else x for x in flat))
        if key in self._made:
            return self._made[key]
        joint, lasting = imagined(value_and_grad(self.f, self.argnums), args)
        joint.steps, plan = fitted(joint, self.budget)
        if lasting:
            self._made[key] = joint, plan
        return joint, plan


def checkpoint(f: Callable[..., Any], budget: int | str, argnums: int | tuple[int, ...] = 0) -> Checkpointed:
    """The value and gradient of a scalar function, with intermediate values of at most `budget` bytes alive at once.

    `checkpoint(f, "200MB").plan(*args)` says what it will do. What is kept is chosen for the whole graph: the forward pass
    is cut where little memory crosses, and pieces are computed again in the backward pass, those first that free the most
    memory for the least work. Random numbers are never drawn again. The function is traced once for each kind of arguments:
    what else it reads is taken as it was then, so batches are arguments, and buffers are not updated. Book: Alice 6.3.

    >>> loss = lambda x: x.exp().sin().exp().sum()
    >>> value, slope = checkpoint(loss, budget="1MB")(torch.zeros(3))
    >>> slope
    tensor([1.2534, 1.2534, 1.2534])
    """
    return Checkpointed(f, budget, argnums)


def imagined(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Trace, bool]:
    """The trace of a function from shapes alone, so that tracing keeps the budget too; and whether that was enough.

    Where the function decides by its numbers it is run, and the trace is good for these numbers only.
    """
    from torch._subclasses import fake_tensor as fake

    try:
        with fake.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            made = trace(f, *tree_map(lambda x: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x, args))
        if not any(isinstance(tensor, fake.FakeTensor) for _, tensor in made.constants):
            return made, True
    except (fake.DataDependentOutputException, fake.DynamicOutputShapeException):
        pass
    return trace(f, *args), False


def fitted(joint: Trace, budget: int) -> tuple[list[Step], Plan]:
    """Steps whose peak keeps the budget with the least extra work found, and the plan that says so."""
    inputs, outputs = joint.inputs, joint.outputs
    constants = [value for value, _ in joint.constants]

    def measured(steps: Sequence[Step]) -> int:
        return memory.peak(inputs, steps, outputs, constants)

    split = _forward_length(joint)
    without, flops = measured(joint.steps), joint.flops
    best: tuple[int, list[Step], int, set[int]] | None = (0, joint.steps, without, set()) if without <= budget else None
    smallest = without
    if best is None:
        for pieces in _candidates(joint, split):
            dropped: set[int] = set()
            for piece in pieces:
                dropped = dropped | piece
                steps = recomputed(joint, split, dropped)
                found = measured(steps)
                smallest = min(smallest, found)
                if found <= budget:
                    extra = sum(map(cost.flops, steps)) - flops
                    if best is None or extra < best[0]:
                        best = (extra, steps, found, dropped)
                    break
    if best is None:
        raise WonderlandError(
            f"No plan found keeps {memory.words(budget)}: the smallest peak is {memory.words(smallest)}, "
            f"and {memory.words(without)} without checkpointing. Give a larger budget or a smaller batch."
        )
    extra, steps, predicted, dropped = best
    saved = _saved(joint, split)
    forgotten = len([value for value in saved if id(value) in dropped])
    return steps, Plan(budget, predicted, without, flops, extra, forgotten, len(saved) - forgotten)


def _forward_length(joint: Trace) -> int:
    """Where the backward pass begins: after the last step that the value depends on."""
    wanted, length = {id(joint.outputs[0])}, 0
    for number in range(len(joint.steps) - 1, -1, -1):
        step = joint.steps[number]
        if any(id(value) in wanted for value in step.outputs):
            length = max(length, number + 1)
            wanted.update(id(value) for value in step.inputs)
    return length


def _saved(joint: Trace, split: int) -> list[Value]:
    """The values of the forward pass that the backward pass reads."""
    owners = memory.Owners(joint.steps)
    made = {id(value): value for step in joint.steps[:split] for value in step.outputs}
    read = {id(owners.of(value)) for step in joint.steps[split:] for value in step.inputs} | {
        id(value) for step in joint.steps[split:] for value in step.inputs
    }
    return [value for key, value in made.items() if key in read]


def _candidates(joint: Trace, split: int) -> list[list[set[int]]]:
    """Ways to forget, each a list of sets of values, forgotten one set after the other until the budget is kept."""
    steps = joint.steps[:split]
    fixed = {id(value) for step in steps if _random(step) for value in step.outputs}
    saved = {id(value) for value in _saved(joint, split)}
    weight = {id(value): cost.flops(step) for step in steps for value in step.outputs}
    cheap = {
        key for step in steps for key in map(id, step.outputs) if weight[key] <= 4 * sum(v.numel for v in step.outputs)
    }
    ways = [[{key for key in cheap if key not in fixed}]]
    crossing = _crossing(steps, joint.outputs)
    for count in _counts(split):
        cuts = _cuts(steps, crossing, count)
        pieces = []
        for begin, end in zip([0, *cuts], [*cuts, split], strict=True):
            across = crossing[end - 1][1] if end < split else set()
            made = {id(value) for step in steps[begin:end] for value in step.outputs}
            pieces.append({key for key in made if key not in fixed and key not in across})
        gain = [_gain(piece, saved, steps, weight) for piece in pieces]
        order = sorted(range(len(pieces)), key=lambda k: -gain[k])
        ways.append([pieces[k] for k in order if pieces[k]])
        ways.append([pieces[k] for k in range(len(pieces)) if pieces[k]])
    return ways


def _random(step: Step) -> bool:
    """Whether a step draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(step.target, "tags", ())


def _counts(split: int) -> list[int]:
    found, count = [], 2
    while count <= max(2, min(split // 2, 64)):
        found.append(count)
        count = count + 1 if count < 8 else int(count * 1.3) + 1
    return found


def _gain(piece: set[int], saved: set[int], steps: Sequence[Step], weight: dict[int, int]) -> float:
    """Bytes that forgetting a piece frees, for each operation that computing it again takes."""
    freed = sum(value.bytes for step in steps for value in step.outputs if id(value) in piece and id(value) in saved)
    work = sum(weight[key] for key in piece)
    return freed / max(work, 1)


def _crossing(steps: Sequence[Step], outputs: Sequence[Any]) -> list[tuple[int, set[int]]]:
    """For each place between two steps, the bytes and the values that cross it."""
    owners = memory.Owners(steps)
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        for value in step.inputs:
            last[id(value)] = number
    for value in outputs:
        if isinstance(value, Value):
            last[id(value)] = len(steps)
    alive: dict[int, Value] = {}
    found = []
    for number, step in enumerate(steps):
        for value in step.outputs:
            alive[id(value)] = value
        alive = {key: value for key, value in alive.items() if last.get(key, -1) > number}
        own = {id(owners.of(value)): owners.of(value).bytes for value in alive.values()}
        found.append((sum(own.values()), set(alive)))
    return found


def _cuts(steps: Sequence[Step], crossing: list[tuple[int, set[int]]], count: int) -> list[int]:
    """Places that cut the forward pass in `count` pieces of about the same memory, each where little crosses nearby."""
    total = [0]
    for step in steps:
        total.append(total[-1] + (0 if cost.is_view(step) else sum(value.bytes for value in step.outputs)))
    cuts: list[int] = []
    for number in range(1, count):
        low, high = (total[-1] * (number - 0.5) / count, total[-1] * (number + 0.5) / count)
        near = [place for place in range(1, len(steps)) if low <= total[place] <= high and place not in cuts]
        if near:
            cuts.append(min(near, key=lambda place: (crossing[place - 1][0], abs(total[place] - (low + high) / 2))))
    return sorted(cuts)


def recomputed(joint: Trace, split: int, dropped: set[int]) -> list[Step]:
    """The steps with forgotten values computed again in the backward pass, each just before it is first read there."""
    origin = {id(value): step for step in joint.steps[:split] for value in step.outputs}
    owners = memory.Owners(joint.steps)
    # A view is forgotten with the memory it looks at, and a view of what is kept costs nothing.
    gone = {key for key in dropped if key in origin}
    gone |= {
        key
        for key, step in origin.items()
        if cost.is_view(step) and step.inputs and id(owners.of(step.outputs[0])) in dropped
    }
    gone |= {key for key, step in origin.items() if cost.is_view(step)}
    again: dict[int, Value] = {}
    steps = list(joint.steps[:split])

    def available(value: Value) -> Value:
        """A value to read: itself if it was kept, else its new copy, made now if there is none yet."""
        key = id(value)
        if key not in gone:
            return value
        if key not in again:
            stack = [origin[key]]
            while stack:
                step = stack[-1]
                missing = [origin[id(one)] for one in step.inputs if id(one) in gone and id(one) not in again]
                if missing:
                    stack.extend(missing)
                    continue
                stack.pop()
                if all(id(one) in again for one in step.outputs):
                    continue
                steps.append(_copied(step, again, gone))
        return again[key]

    for step in joint.steps[split:]:
        if any(id(value) in gone for value in step.inputs):
            for value in step.inputs:
                available(value)
            change = lambda value: again.get(id(value), value)  # noqa: E731
            step = replace(step, args=over(step.args, Value, change), kwargs=over(step.kwargs, Value, change))
        steps.append(step)
    return steps


def _copied(step: Step, again: dict[int, Value], gone: set[int]) -> Step:
    """A step once more, with new values for what it gives."""

    def fresh(value: Value) -> Value:
        made = replace(value, name="", now=None)
        again[id(value)] = made
        return made

    def change(value: Value) -> Value:
        return again.get(id(value), value) if id(value) in gone else value

    args, kwargs = over(step.args, Value, change), over(step.kwargs, Value, change)
    new = replace(step, args=args, kwargs=kwargs)
    new.result = over(step.result, Value, fresh)
    for value in new.outputs:
        value.made_by = weakref.ref(new)
    return new
