"""Checkpointing: gradients within a memory budget, by recomputing values of the forward pass in the backward pass."""

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
from wonderland.autodiff.checkpoint_search import IndexedProgram, cheapest_order
from wonderland.autodiff.node import Step, Value, map_tree
from wonderland.autodiff.trace import Trace, trace
from wonderland.autodiff.transforms import value_and_grad
from wonderland.core import WonderlandError
from wonderland.ops import native

_RETRACED = (
    " The function branches on values, so it is traced again at every call with all values in memory: the budget holds for "
    "the gradient, not for that tracing."
)


@dataclass(frozen=True)
class CheckpointPlan:
    """The predicted peak memory (bytes) and additional work (floating point operations) of a checkpointed gradient.

    `without` is the peak without checkpointing, `extra` the additional operations. `recomputed` and `kept` count values of
    the forward pass. A plan that is not `reusable` holds for one call: the function branches on values.
    """

    budget: int
    predicted: int
    without: int
    flops: int
    extra: int
    recomputed: int
    kept: int
    reusable: bool = True

    def __str__(self) -> str:
        share = 100 * self.extra / max(self.flops, 1)
        return (
            f"Predicted peak {memory.format_bytes(self.predicted)} of the budget of {memory.format_bytes(self.budget)} "
            f"({memory.format_bytes(self.without)} without checkpointing); {share:.1f} % more work: "
            f"{self.recomputed} values of the forward pass are recomputed, {self.kept} are kept."
            + ("" if self.reusable else _RETRACED)
        )


class Checkpointed:
    """A function that returns (value, gradient) like `value_and_grad`, within a memory budget; made by `checkpoint`."""

    def __init__(self, f: Callable[..., Any], budget: int | str, argnums: int | tuple[int, ...]):
        self.f, self.budget, self.argnums = f, memory.parse_bytes(budget), argnums
        self._cache: dict[Any, tuple[Trace, CheckpointPlan]] = {}

    def plan(self, *args: Any) -> CheckpointPlan:
        """The plan for arguments of these shapes; the function is traced, and the gradient is not computed."""
        return self._traced(args)[1]

    def __call__(self, *args: Any) -> Any:
        return self._traced(args)[0](*args)

    def _traced(self, args: tuple[Any, ...]) -> tuple[Trace, CheckpointPlan]:
        flat, nesting = tree_flatten(args)
        key = (str(nesting), tuple((tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else x for x in flat))
        if key in self._cache:
            return self._cache[key]
        joint, reusable = trace_on_shapes(value_and_grad(self.f, self.argnums), args)
        joint.steps, plan = fit_budget(joint, self.budget)
        plan = replace(plan, reusable=reusable)
        if reusable:
            self._cache[key] = joint, plan
        return joint, plan


def checkpoint(f: Callable[..., Any], budget: int | str, argnums: int | tuple[int, ...] = 0) -> Checkpointed:
    """The value and gradient of a scalar function, with intermediate values of at most `budget` bytes alive at once.

    `checkpoint(f, "200MB").plan(*args)` is the plan. The forward pass is cut into segments where little memory crosses, and
    segments are recomputed in the backward pass, first those that free the most memory for the least work. Random numbers
    are never drawn again. The function is traced once for each set of argument shapes: tensors that it closes over keep the
    values they had then, so pass batches as arguments; buffers of modules are updated. Book: Alice 6.3.

    >>> loss = lambda x: x.exp().sin().exp().sum()
    >>> value, gradient = checkpoint(loss, budget="1MB")(torch.zeros(3))
    >>> gradient
    tensor([1.2534, 1.2534, 1.2534])
    """
    return Checkpointed(f, budget, argnums)


def trace_on_shapes(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Trace, bool]:
    """The trace of a function made with fake tensors, so that tracing takes no memory; and whether it can be reused.

    Where the function branches on values, or a module keeps a tensor from call to call, the function is traced with real
    tensors, and the trace holds for this call only.
    """
    from torch._subclasses import fake_tensor as fake

    try:
        with (
            _restoring_modules() as fake_attributes,
            native.shapes_only(),
            fake.FakeTensorMode(allow_non_fake_inputs=True) as mode,
        ):
            program = trace(f, *tree_map(lambda x: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x, args))
        if not fake_attributes and not any(isinstance(tensor, fake.FakeTensor) for _, tensor in program.constants):
            return program, True
    except (fake.DataDependentOutputException, fake.DynamicOutputShapeException):
        pass
    program = trace(f, *args)
    with torch.no_grad():  # running the plan writes buffers, so the writes of tracing are undone
        for tensor, before in program.before:
            tensor.copy_(before)
    return program, False


@contextmanager
def _restoring_modules() -> Iterator[list[str]]:
    """Restore module attributes that were set to fake tensors; yields the list of their names, filled at the end."""
    seen: dict[int, tuple[nn.Module, dict[str, Any], dict[str, Any]]] = {}
    fake_attributes: list[str] = []

    def remember(module: nn.Module, _: Any) -> None:
        seen.setdefault(id(module), (module, dict(vars(module)), dict(module._buffers)))

    hook = register_module_forward_pre_hook(remember)
    try:
        yield fake_attributes
    finally:
        hook.remove()
        for module, before, buffers in seen.values():
            for attributes, original in ((vars(module), before), (module._buffers, buffers)):
                for name in [name for name, entry in attributes.items() if any(map(is_fake, tree_leaves(entry)))]:
                    if name != "_flat_weights":  # torch's recurrent layers set this list of weights at each call
                        fake_attributes.append(name)
                    if name in original:
                        attributes[name] = original[name]
                    else:
                        del attributes[name]


def fit_budget(joint: Trace, budget: int) -> tuple[list[Step], CheckpointPlan]:
    """Steps reordered so that their peak memory is within the budget, and the plan; an error if no such order was found."""
    constants = [value for value, _ in joint.constants]
    program = IndexedProgram(joint.inputs, joint.steps, joint.kept, constants)
    unchanged = [(number, False) for number in range(len(joint.steps))]
    without, flops, saved = program.peak(unchanged), sum(program.flops), program.saved()
    if without <= budget:
        return joint.steps, CheckpointPlan(budget, without, without, flops, 0, 0, len(saved))
    order, dropped, smallest = cheapest_order(program, budget)
    if order is None:
        raise WonderlandError(
            f"No plan was found within {memory.format_bytes(budget)}: the smallest peak is {memory.format_bytes(min(without, smallest))}, "
            f"and {memory.format_bytes(without)} without checkpointing. Give a larger budget or a smaller batch."
        )
    recomputed = len(saved & dropped)
    plan = CheckpointPlan(
        budget, program.peak(order), without, flops, program.extra(order), recomputed, len(saved) - recomputed
    )
    return reordered_steps(joint.steps, order, program.split), plan


def reordered_steps(steps: Sequence[Step], order: Sequence[tuple[int, bool]], split: int) -> list[Step]:
    """The steps in this order; recomputed steps produce new values, which later steps read instead of the old ones."""
    again: dict[int, Value] = {}
    result = []
    for number, repeats in order:
        step = steps[number]
        if repeats:
            step = _recomputed(step, again)
        elif number >= split and any(id(value) in again for value in step.inputs):
            newest = lambda value: again.get(id(value), value)  # noqa: E731
            step = replace(step, args=map_tree(step.args, Value, newest), kwargs=map_tree(step.kwargs, Value, newest))
        result.append(step)
    return result


def _recomputed(step: Step, again: dict[int, Value]) -> Step:
    """A copy of a step with new output values, which are entered into `again`."""

    def fresh(value: Value) -> Value:
        copy = replace(value, name="", now=None)
        again[id(value)] = copy
        return copy

    newest = lambda value: again.get(id(value), value)  # noqa: E731
    new = replace(step, args=map_tree(step.args, Value, newest), kwargs=map_tree(step.kwargs, Value, newest))
    new.result = map_tree(step.result, Value, fresh)
    for value in new.outputs:
        value.origin_ref = weakref.ref(new)
    return new
