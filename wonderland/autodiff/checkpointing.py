"""Checkpointing: gradients under a memory budget, by forgetting values of the forward pass and computing them again."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import is_fake
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

from wonderland.autodiff import memory
from wonderland.autodiff.node import Step, Value, over
from wonderland.autodiff.plans import Numbered, least
from wonderland.autodiff.trace import Trace, trace
from wonderland.autodiff.transforms import value_and_grad
from wonderland.core import WonderlandError
from wonderland.ops import native

_DECIDES = (
    " The function decides by its numbers, so every call is traced anew with all values in memory: the budget is kept by "
    "the gradient, and not by the tracing before it."
)


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
    lasting: bool = True

    def __str__(self) -> str:
        share = 100 * self.extra / max(self.flops, 1)
        return (
            f"Predicted peak {memory.words(self.predicted)} of the budget of {memory.words(self.budget)} "
            f"({memory.words(self.without)} without checkpointing); {share:.1f} % more work: "
            f"{self.forgotten} values of the forward pass are computed again, {self.kept} are kept."
            + ("" if self.lasting else _DECIDES)
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
        plan = replace(plan, lasting=lasting)
        if lasting:
            self._made[key] = joint, plan
        return joint, plan


def checkpoint(f: Callable[..., Any], budget: int | str, argnums: int | tuple[int, ...] = 0) -> Checkpointed:
    """The value and gradient of a scalar function, with intermediate values of at most `budget` bytes alive at once.

    `checkpoint(f, "200MB").plan(*args)` says what it will do. What is kept is chosen for the whole graph: the forward pass
    is cut where little memory crosses, and pieces are computed again in the backward pass, those first that free the most
    memory for the least work. Random numbers are never drawn again. The function is traced once for each kind of arguments:
    what else it reads is taken as it was then, so batches are arguments; buffers of modules are updated. Book: Alice 6.3.

    >>> loss = lambda x: x.exp().sin().exp().sum()
    >>> value, slope = checkpoint(loss, budget="1MB")(torch.zeros(3))
    >>> slope
    tensor([1.2534, 1.2534, 1.2534])
    """
    return Checkpointed(f, budget, argnums)


def imagined(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Trace, bool]:
    """The trace of a function from shapes alone, so that tracing keeps the budget too; and whether that was enough.

    Where the function decides by its numbers, or its modules remember a tensor of the last call, it is run, and the trace is
    good for this call only.
    """
    from torch._subclasses import fake_tensor as fake

    try:
        with _remembering() as shadows, native.shapes_only(), fake.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            made = trace(f, *tree_map(lambda x: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x, args))
        if not shadows and not any(isinstance(tensor, fake.FakeTensor) for _, tensor in made.constants):
            return made, True
    except (fake.DataDependentOutputException, fake.DynamicOutputShapeException):
        pass
    made = trace(f, *args)
    with torch.no_grad():  # the plan writes buffers when it runs, so what the trace wrote is taken back
        for tensor, before in made.before:
            tensor.copy_(before)
    return made, False


@contextmanager
def _remembering() -> Iterator[list[str]]:
    """Modules as they were before: what they got without numbers is taken out again, and told by the names of attributes."""
    seen: dict[int, tuple[nn.Module, dict[str, Any], dict[str, Any]]] = {}
    found: list[str] = []

    def keep(module: nn.Module, _: Any) -> None:
        seen.setdefault(id(module), (module, dict(vars(module)), dict(module._buffers)))

    hook = register_module_forward_pre_hook(keep)
    try:
        yield found
    finally:
        hook.remove()
        for module, before, buffers in seen.values():
            for now, had in ((vars(module), before), (module._buffers, buffers)):
                for name in [name for name, entry in now.items() if any(map(is_fake, tree_leaves(entry)))]:
                    if name != "_flat_weights":  # torch's recurrent layers list their weights there at each call
                        found.append(name)
                    if name in had:
                        now[name] = had[name]
                    else:
                        del now[name]


def fitted(joint: Trace, budget: int) -> tuple[list[Step], Plan]:
    """Steps whose peak keeps the budget with the least extra work found, and the plan that says so."""
    constants = [value for value, _ in joint.constants]
    program = Numbered(joint.inputs, joint.steps, joint.kept, constants)
    plain = [(number, False) for number in range(len(joint.steps))]
    without, flops, saved = program.peak(plain), sum(program.flops), program.saved()
    if without <= budget:
        return joint.steps, Plan(budget, without, without, flops, 0, 0, len(saved))
    order, dropped, smallest = least(program, budget)
    if order is None:
        raise WonderlandError(
            f"No plan found keeps {memory.words(budget)}: the smallest peak is {memory.words(min(without, smallest))}, "
            f"and {memory.words(without)} without checkpointing. Give a larger budget or a smaller batch."
        )
    forgotten = len(saved & dropped)
    plan = Plan(budget, program.peak(order), without, flops, program.extra(order), forgotten, len(saved) - forgotten)
    return ordered(joint.steps, order, program.split), plan


def ordered(steps: Sequence[Step], order: Sequence[tuple[int, bool]], split: int) -> list[Step]:
    """The steps in another order, those that run again with new values, which all that comes later reads."""
    again: dict[int, Value] = {}
    found = []
    for number, repeats in order:
        step = steps[number]
        if repeats:
            step = _copied(step, again)
        elif number >= split and any(id(value) in again for value in step.inputs):
            change = lambda value: again.get(id(value), value)  # noqa: E731
            step = replace(step, args=over(step.args, Value, change), kwargs=over(step.kwargs, Value, change))
        found.append(step)
    return found


def _copied(step: Step, again: dict[int, Value]) -> Step:
    """A step once more, with new values for what it gives."""

    def fresh(value: Value) -> Value:
        made = replace(value, name="", now=None)
        again[id(value)] = made
        return made

    change = lambda value: again.get(id(value), value)  # noqa: E731
    new = replace(step, args=over(step.args, Value, change), kwargs=over(step.kwargs, Value, change))
    new.result = over(step.result, Value, fresh)
    for value in new.outputs:
        value.made_by = weakref.ref(new)
    return new
