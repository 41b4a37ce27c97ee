"""Hooks: who waits to be called when a module is, also where a part calls another without a call of the module."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as everywhere

HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")


def untouched(*modules: nn.Module) -> bool:
    """Whether nobody waits to be called when one of these modules is: kernels that go past them would leave them out."""
    return not any(
        one._forward_hooks
        or one._forward_pre_hooks
        or one._backward_hooks
        or one._backward_pre_hooks
        or "forward" in vars(one)
        for one in modules
    ) and not any(getattr(everywhere, name) for name in HOOKS)


def heard(module: nn.Module, x: Tensor, call: Callable[[Tensor], Any]) -> Any:
    """What `call` makes of x in the name of a module, with that module's hooks around it.

    Mixers made of mixers go on with methods that check nothing and know states. Hooks are called as in a call of the module,
    with its input and its output; a state that comes with the output is handed past them.
    """
    if torch.compiler.is_compiling() or untouched(module):
        return call(x)
    past: list[Any] = []

    def forward(x: Tensor) -> Tensor:
        found = call(x)
        if isinstance(found, tuple):
            past.append(found[1])
            return found[0]
        return found

    own = vars(module).get("forward")
    module.forward = forward
    try:
        y = module(x)
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own
    return (y, past[0]) if past else y
