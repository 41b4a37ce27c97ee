"""When fast forms may be used at all: checked here for every rule.

A compiled step or a fused block goes past torch's modules, operators and dispatcher. It is therefore used only where
nothing observes these: no hook, no compiler or export, no recording of derivatives, no functional transform, no autocast, no
dispatch mode, no tensor subclass, no other device.
"""

from itertools import repeat
from operator import contains

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

from wonderland.nn.contract.hooks import has_no_hooks
from wonderland.ops import native

__all__ = ["DTYPES", "HookWatch", "has_no_hooks", "plain", "unobserved"]

DTYPES = (torch.float32, torch.float64)


def unobserved() -> bool:
    """Whether nothing observes operators: no compiler, recording, transform, autocast or dispatch mode."""
    return (
        not torch.compiler.is_compiling()
        and not native.is_observed()
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._len_torch_dispatch_stack()
    )


def plain(*tensors: Tensor | None) -> bool:
    """Whether kernels can read these tensors: no subclass, dense, on the CPU, all float32 or all float64."""
    dtype = None
    for tensor in tensors:
        if tensor is not None:
            dtype = dtype or tensor.dtype
            if tensor.dtype != dtype or not tensor.is_cpu or not native.is_plain(tensor):
                return False
    return dtype in DTYPES


class HookWatch:
    """The forward hooks of a module and of everything inside it, and forwards assigned to instances."""

    def __init__(self, module: nn.Module):
        inner = list(module.modules())
        self._hooks = [hooks for child in inner for hooks in (child._forward_hooks, child._forward_pre_hooks)]
        self._hooks += global_hooks._global_forward_hooks, global_hooks._global_forward_pre_hooks
        self._attributes = [vars(child) for child in inner]
        self.any = self._present()

    def _present(self) -> bool:
        return any(self._hooks) or any(map(contains, self._attributes, repeat("forward")))

    def unchanged(self) -> bool:
        """Whether there are hooks now if there were some at first, and none if there were none."""
        return self._present() == self.any
