"""Running a trace: each step is a closure over numbered slots, and a slot is emptied after its last use."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.autodiff.node import Step, Value
from wonderland.autodiff.recorder import ACTIVE, attributed_to

Slots = list[Any]


class Program:
    """The steps of a trace, compiled to closures that run on new inputs; shapes are not checked here."""

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
        last_use: dict[int, int] = {}
        for number, step in enumerate(steps):
            for value in (*step.inputs, *step.outputs):
                last_use[self.slots[id(value)]] = number
        kept = {slot for slot in self.outputs if slot is not None}
        freed_after: dict[int, list[int]] = {}
        for slot, number in last_use.items():
            if slot not in kept:
                freed_after.setdefault(number, []).append(slot)
        self.recorded_steps = list(steps)
        self.steps = [self._closure(step, freed_after.get(number, [])) for number, step in enumerate(steps)]

    def __call__(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The outputs, for inputs in a flat list."""
        env: Slots = [None] * len(self.slots)
        for slot, tensor in zip(self.inputs, tensors, strict=True):
            env[slot] = tensor
        for slot, tensor in self.constants:
            env[slot] = tensor
        if ACTIVE:  # the run is being recorded: its steps get the source line and module of these
            for step, recorded in zip(self.steps, self.recorded_steps, strict=True):
                with attributed_to(recorded), torch.set_grad_enabled(recorded.grad_enabled and torch.is_grad_enabled()):
                    step(env)
        else:
            for step in self.steps:
                step(env)
        return [None if slot is None else env[slot] for slot in self.outputs]

    def _closure(self, step: Step, freed: list[int]) -> Callable[[Slots], None]:
        call = getattr(step.target, "_op", step.target)
        positional = [self._argument(entry) for entry in step.args]
        keywords = {name: self._argument(entry) for name, entry in step.kwargs.items()}
        store = self._store(step.result)
        only_values = all(isinstance(entry, Value) for entry in step.args) and not keywords
        slots = [self.slots[id(entry)] for entry in step.args if isinstance(entry, Value)]
        if only_values and isinstance(step.result, Value):
            return _direct(call, slots, self.slots[id(step.result)], freed)
        fixed_keywords = {name: entry for name, (varies, entry) in keywords.items() if not varies}
        read_keywords = {name: read for name, (varies, read) in keywords.items() if varies}
        template = [None if varies else entry for varies, entry in positional]
        reads = [(number, read) for number, (varies, read) in enumerate(positional) if varies]

        def run(env: Slots) -> None:
            args = template.copy()
            for number, read in reads:
                args[number] = read(env)
            if read_keywords:
                result = call(*args, **fixed_keywords, **{name: read(env) for name, read in read_keywords.items()})
            else:
                result = call(*args, **fixed_keywords)
            store(env, result)
            del result  # so that a slot freed now frees its memory
            for slot in freed:
                env[slot] = None

        return run

    def _argument(self, entry: Any) -> tuple[bool, Any]:
        """(True, a function that reads it from the slots) for what varies from run to run, else (False, the argument)."""
        if isinstance(entry, Value):
            slot = self.slots[id(entry)]
            return True, lambda env: env[slot]
        if isinstance(entry, list | tuple) and any(isinstance(item, Value) for item in entry):
            parts = [(self.slots[id(item)], None) if isinstance(item, Value) else (None, item) for item in entry]
            return True, lambda env: [fixed if slot is None else env[slot] for slot, fixed in parts]
        return False, entry

    def _store(self, result: Any) -> Callable[[Slots, Any], None]:
        if isinstance(result, Value):
            slot = self.slots[id(result)]

            def store(env: Slots, output: Any) -> None:
                env[slot] = output

            return store
        slots = [self.slots[id(value)] if isinstance(value, Value) else None for value in result or ()]

        def store_several(env: Slots, outputs: Any) -> None:
            for slot, output in zip(slots, outputs, strict=True):
                if slot is not None:
                    env[slot] = output

        return store_several


def _direct(call: Any, slots: list[int], out: int, freed: list[int]) -> Callable[[Slots], None]:
    """The most frequent case, all arguments values and one output, without building argument lists."""
    if len(slots) == 1:
        (first,) = slots

        def unary(env: Slots) -> None:
            env[out] = call(env[first])
            for slot in freed:
                env[slot] = None

        return unary
    if len(slots) == 2:
        first, second = slots

        def binary(env: Slots) -> None:
            env[out] = call(env[first], env[second])
            for slot in freed:
                env[slot] = None

        return binary

    def many(env: Slots) -> None:
        env[out] = call(*[env[slot] for slot in slots])
        for slot in freed:
            env[slot] = None

    return many
