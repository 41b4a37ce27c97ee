"""A loop over time in a program that is exported: one operator with a body, so that the number of steps stays free."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.scan import scan

States = tuple[Tensor, ...]


def is_exporting() -> bool:
    """Whether `torch.export` is recording: kernels are not used then, and loops over time have to be operators."""
    return torch.compiler.is_exporting()


def over_time(
    step: Callable[[States, States], tuple[States, States]],
    state: States,
    inputs: States,
    lengths: Tensor | None = None,
) -> tuple[States, States]:
    """`state, outputs = step(state, inputs at one time)` for each time, as one operator that exported programs keep.

    Shapes: inputs (b, t, ...) -> outputs (b, t, ...) and the last state. Beyond a row's length outputs are 0 and the state stays.
    """

    def body(carried: Any, now: Any) -> Any:
        *values, index = now
        new, outputs = step(tuple(carried), tuple(values))
        if lengths is not None:
            real = index < lengths
            new = tuple(torch.where(_like(real, n), n, old) for n, old in zip(new, carried, strict=True))
            outputs = tuple(torch.where(_like(real, y), y, torch.zeros_like(y)) for y in outputs)
        return [_own(n) for n in new], [_own(y) for y in outputs]

    times = torch.arange(inputs[0].shape[1], device=inputs[0].device)
    last, outputs = scan(body, [_own(s) for s in state], [*(_own(x.transpose(0, 1)) for x in inputs), times], dim=0)
    return tuple(y.transpose(0, 1) for y in outputs), tuple(last)


def _like(real: Tensor, values: Tensor) -> Tensor:
    return real.reshape(-1, *(1,) * (values.dim() - 1))


def _own(values: Tensor) -> Tensor:
    """A copy, laid out in the order of its axes: states that go in and out of the loop must be alike."""
    return values.clone(memory_format=torch.contiguous_format)
