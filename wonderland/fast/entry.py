"""The functions that the hook `nn.contract.fast_path` calls."""

from typing import Any

import torch
from torch import Tensor

from wonderland.fast import rules  # noqa: F401  (fills the table)
from wonderland.fast.compiled_step import allowed, compiled_step
from wonderland.fast.guard import unobserved
from wonderland.fast.step_rules import alone
from wonderland.fast.table import rule_of
from wonderland.nn.contract.state import may_consume


def step(mixer: Any, x: Tensor, state: Any) -> tuple[Tensor, Any] | None:
    """One token from any state that fits the mixer; None where there is no such form, or it may not be used now."""
    if not allowed(x.shape[0], x.shape[1], x):
        return None
    compiled = compiled_step(mixer, x.dtype, mixer.dim, alone)
    return None if compiled is None else compiled.run(x, state, x.shape, consume=may_consume())


def next_step(mixer: Any, x: Any, state: Any) -> tuple[Tensor, Any] | None:
    """One token from the state that the mixer's compiled step returned last, whose input needs no check; None otherwise."""
    compiled = mixer.__dict__["_compiled_step"]
    if compiled is None or torch.is_grad_enabled() or not unobserved() or not compiled.continues(x, state):
        return None
    if not compiled.belongs_to(mixer) or not compiled.valid():
        return None
    return compiled.run(x, state, x.shape, consume=may_consume())


def residual_block(mixer: Any, norm: Any, x: Tensor) -> Tensor | None:
    """`x + mixer(norm(x))` over whole sequences by one kernel; None where there is none, or it may not be used now."""
    fuse = rule_of(mixer).fuse
    return None if fuse is None else fuse(mixer, norm, x)


def images(module: Any, x: Tensor) -> Tensor | None:
    """A module of maps in use, without gradients; None where there is no such form, or it may not be used now."""
    form = rule_of(module).images
    return None if form is None else form(module, x)
