"""The hook through which mixers and models reach their fast forms.

`nn` and `models` hold equations and do not know how they are made fast. Fast forms are rules in a table keyed by exact
type: `wonderland.fast` has those of mixers and blocks, `wonderland.generation` those of whole models. Both lie below `nn`
in the order of imports, so they are loaded here by their constant names, when first needed.
"""

import functools
import importlib
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

BLOCKS = "wonderland.fast.entry"
MODELS = "wonderland.generation.compiled"


@functools.cache
def _load(name: str) -> ModuleType:
    return importlib.import_module(name)


def step(mixer: Any, x: Any, state: Any, mask: Any) -> tuple[Tensor, Any] | None:
    """One token of each row by a compiled step: outputs and the next state; None where plain torch has to do it."""
    if state is None or mask is not None or torch.compiler.is_compiling():
        return None
    return _load(BLOCKS).step(mixer, x, state)


def next_step(mixer: Any, x: Any, state: Any, mask: Any) -> tuple[Tensor, Any] | None:
    """`step` before x and state are checked: only from the state that the last step of this mixer returned, else None."""
    if state is None or mask is not None or "_compiled_step" not in mixer.__dict__ or torch.compiler.is_compiling():
        return None
    return _load(BLOCKS).next_step(mixer, x, state)


def model_step(model: Any, tokens: Any, state: Any, mask: Any) -> tuple[Tensor, Any] | None:
    """One token of each row through a whole model by a compiled step: logits and the next state, or None."""
    if state is None or mask is not None or torch.compiler.is_compiling():
        return None
    return _load(MODELS).step(model, tokens, state)


def residual_block(mixer: Any, norm: Any, x: Tensor) -> Tensor | None:
    """`x + mixer(norm(x))` over whole sequences by one kernel, with gradients; None where plain torch has to do it."""
    return None if torch.compiler.is_compiling() else _load(BLOCKS).residual_block(mixer, norm, x)


def images(module: Any, x: Any) -> Tensor | None:
    """Maps through a convolutional block in use, without gradients, by fused kernels; None where plain torch has to do it."""
    if module.training or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return None
    return _load(BLOCKS).images(module, x)
