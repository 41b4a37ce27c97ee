"""The interface of an update rule: two pure functions, their options, and optionally a kernel that works in place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

State = dict[str, Any]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Kernel:
    """The same rule as a fused C++ kernel, a function in ops/kernels/optimizers.cpp.

    Args:
        symbol: name of the C++ function.
        tensors: names of the state's tensors, in the order of the C++ arguments.
        numbers: the scalar arguments of the C++ function, from the state after `advance` and the options.
        plain: names of the state's scalars, such as the count of steps.
        advance: updates these scalars before the kernel runs.
    """

    symbol: str
    tensors: tuple[str, ...]
    numbers: Callable[[State, Options], tuple[float, ...]]
    plain: tuple[str, ...] = ()
    advance: Callable[[State, Options], None] = lambda state, options: None


@dataclass(frozen=True)
class UpdateRule:
    """An update rule: its state for a parameter, and its step.

    Args:
        init: `init(parameter, options) -> state`, before the first step.
        update: `update(gradient, state, parameter, options) -> (step, state)`; the new parameter is `parameter + step`.
            Arguments are not changed.
        options: every option of the rule, with its default.
        kernel: the fast form, if there is one.

    >>> import torch
    >>> from wonderland.optim import rules
    >>> x = torch.tensor([10.0])
    >>> state = rules.sgd.init(x, rules.sgd.options)
    >>> step, state = rules.sgd.update(2 * x, state, x, {**rules.sgd.options, "lr": 0.2})
    >>> x + step
    tensor([6.])
    """

    init: Callable[[Tensor, Options], State]
    update: Callable[[Tensor, State, Tensor, Options], tuple[Tensor, State]]
    options: Options
    kernel: Kernel | None = None


def increment_step(state: State, options: Options) -> None:
    """Add 1 to the step count: the `advance` of most rules."""
    state["step"] = state["step"] + 1
