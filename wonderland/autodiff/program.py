"""Running a trace: each step a closure over numbered slots, each slot emptied after its last use."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.autodiff.node import Step, Value
from wonderland.autodiff.record import ACTIVE, standing_for

Slots = list[Any]


class Program:
    """The steps of a trace, ready to run on other numbers; nothing in it looks at shapes or decides anything."""

    def __init__(
        self,
        inputs: Sequence[Value],
        constants: Sequence[tuple[Value, Tensor]],
        steps: Sequence[Step],
        outputs: Sequence[Any],
    ):
        self.slots = {id(value): number for number, value in enumerate(inputs)}
        for value, _ in constants:
            self.slots.setdefault(id(value), len(self.slots))
        for step in steps:
            for value in step.outputs:
                self.slots.setdefault(id(value), len(self.slots))
        self.inputs = [self.slots[id(value)] for value in inputs]
        self.constants = [(self.slots[id(value)], tensor) for value, tensor in constants]
        self.outputs = [self.slots[id(value)] if isinstance(value, Value) else None for value in outputs]
        last: dict[int, int] = {}
        for number, step in enumerate(steps):
            for value in (*step.inputs, *step.outputs):
                last[self.slots[id(value)]] = number
        kept = {slot for slot in self.outputs if slot is not None}
        ends: dict[int, list[int]] = {}
        for slot, number in last.items():
            if slot not in kept:
                ends.setdefault(number, []).append(slot)
        self.told = list(steps)
        self.steps = [self._closure(step, ends.get(number, [])) for number, step in enumerate(steps)]

    def __call__(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The outputs, for inputs in a flat list."""
        env: Slots = [None] * len(self.slots)
        for slot, tensor in zip(self.inputs, tensors, strict=True):
            env[slot] = tensor
        for slot, tensor in self.constants:
            env[slot] = tensor
        if ACTIVE:  # the program is recorded in its turn: new steps stand for these
            for step, told in zip(self.steps, self.told, strict=True):
                with standing_for(told), torch.set_grad_enabled(told.smooth and torch.is_grad_enabled()):
                    step(env)
        else:
            for step in self.steps:
                step(env)
        return [None if slot is None else env[slot] for slot in self.outputs]

    def _closure(self, step: Step, ends: list[int]) -> Callable[[Slots], None]:
        call = getattr(step.target, "_op", step.target)
        fetch = [self._fetch(entry) for entry in step.args]
        named = {name: self._fetch(entry) for name, entry in step.kwargs.items()}
        store = self._store(step.result)
        plain = all(isinstance(entry, Value) for entry in step.args) and not named
        places = [self.slots[id(entry)] for entry in step.args if isinstance(entry, Value)]
        if plain and isinstance(step.result, Value):
            return _direct(call, places, self.slots[id(step.result)], ends)
        fixed = {name: value for name, (moving, value) in named.items() if not moving}
        moving = {name: value for name, (moves, value) in named.items() if moves}
        template = [None if moves else value for moves, value in fetch]
        moves = [(number, value) for number, (is_moving, value) in enumerate(fetch) if is_moving]

        def run(env: Slots) -> None:
            args = template.copy()
            for number, value in moves:
                args[number] = value(env)
            store(
                env,
                call(*args, **fixed, **{name: value(env) for name, value in moving.items()})
                if moving
                else call(*args, **fixed),
            )
            for slot in ends:
                env[slot] = None

        return run

    def _fetch(self, entry: Any) -> tuple[bool, Any]:
        """(whether it changes from run to run, how it is got)."""
        if isinstance(entry, Value):
            slot = self.slots[id(entry)]
            return True, lambda env: env[slot]
        if isinstance(entry, list | tuple) and any(isinstance(one, Value) for one in entry):
            parts = [(self.slots[id(one)], None) if isinstance(one, Value) else (None, one) for one in entry]
            return True, lambda env: [fixed if slot is None else env[slot] for slot, fixed in parts]
        return False, entry

    def _store(self, result: Any) -> Callable[[Slots, Any], None]:
        if isinstance(result, Value):
            slot = self.slots[id(result)]

            def store(env: Slots, found: Any) -> None:
                env[slot] = found

            return store
        slots = [self.slots[id(one)] if isinstance(one, Value) else None for one in result or ()]

        def scatter(env: Slots, found: Any) -> None:
            for slot, one in zip(slots, found, strict=True):
                if slot is not None:
                    env[slot] = one

        return scatter


def _direct(call: Any, places: list[int], out: int, ends: list[int]) -> Callable[[Slots], None]:
    """The closures that run most often, without any list in between."""
    if len(places) == 1:
        (first,) = places

        def one(env: Slots) -> None:
            env[out] = call(env[first])
            for slot in ends:
                env[slot] = None

        return one
    if len(places) == 2:
        first, second = places

        def two(env: Slots) -> None:
            env[out] = call(env[first], env[second])
            for slot in ends:
                env[slot] = None

        return two

    def many(env: Slots) -> None:
        env[out] = call(*[env[place] for place in places])
        for slot in ends:
            env[slot] = None

    return many
