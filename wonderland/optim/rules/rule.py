"""What an update rule is: two pure functions, the options they read, and the kernel that does the same in place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

State = dict[str, Any]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Kernel:
    """The same rule in one pass over memory: an entry of ops/kernels/optimizers.cpp.

    Args:
        symbol: name of the entry.
        tensors: names of the state's tensors, in the order in which the entry takes them.
        numbers: from the state after `advance` and the options, what the entry multiplies with.
        plain: names of the state's plain numbers, such as the count of steps.
        advance: changes these, and nothing else, before the pass.
    """

    symbol: str
    tensors: tuple[str, ...]
    numbers: Callable[[State, Options], tuple[float, ...]]
    plain: tuple[str, ...] = ()
    advance: Callable[[State, Options], None] = lambda state, options: None


@dataclass(frozen=True)
class Rule:
    """An update rule: what it remembers for a parameter, and the step it takes.

    Args:
        init: `init(parameter, options) -> state`, before the first step.
        update: `update(gradient, state, parameter, options) -> (step, state)`; the new parameter is `parameter + step`.
            Neither argument is changed.
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


def count(state: State, options: Options) -> None:
    """One more step: what most rules do to their plain numbers."""
    state["step"] = state["step"] + 1
