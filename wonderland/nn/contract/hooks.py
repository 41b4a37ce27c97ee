"""Forward and backward hooks of modules that are called by another method than `module(x)`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")


def has_no_hooks(*modules: nn.Module) -> bool:
    """Whether none of these modules has a hook or a `forward` assigned to the instance, and torch has no global hook."""
    return not any(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or "forward" in vars(module)
        for module in modules
    ) and not any(getattr(global_hooks, name) for name in HOOKS)


def call_with_hooks(module: nn.Module, x: Tensor, call: Callable[[Tensor], Any]) -> Any:
    """`call(x)`, with the hooks of `module` around it, as if it were `module(x)`.

    Mixers made of mixers call methods of their parts that check nothing and know states. Hooks get the input and the
    output; a state that comes with the output is returned without passing them.
    """
    if torch.compiler.is_compiling() or has_no_hooks(module):
        return call(x)
    states: list[Any] = []

    def forward(x: Tensor) -> Tensor:
        result = call(x)
        if isinstance(result, tuple):
            states.append(result[1])
            return result[0]
        return result

    own = vars(module).get("forward")
    module.forward = forward
    try:
        y = module(x)
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own
    return (y, states[0]) if states else y
