"""vmap: a function of one example as a function of many, in and around the transforms of this folder.

A recorder sees the operations that vmap makes of a batch, so that what is recorded around a vmap has derivatives as usual.
Inside of vmap there are no single tensors to record: transforms called there are those of torch.func, with the fused kernels
of `wonderland.ops` replaced by their equations.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from wonderland.core import WonderlandError
from wonderland.ops import native


def vmap(
    f: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that applies f to each entry along an axis of its arguments, all at once; the arguments are torch.vmap's.

    in_dims: the axis of each argument (None: the same for all), out_dims: the axis of each output.
    Gradients for each example of a batch are `vmap(grad(loss), in_dims=(None, 0, 0))`, with loss(weights, x, y).

    >>> from wonderland.autodiff import grad
    >>> vmap(grad(lambda x: x**3))(torch.tensor([1.0, 2.0, 3.0]))
    tensor([ 3., 12., 27.])
    """
    if not callable(f):
        raise WonderlandError(f"vmap takes a function of tensors, not a {type(f).__name__}.")
    batched = torch.vmap(f, in_dims, out_dims, randomness=randomness, chunk_size=chunk_size)

    @wraps(f, assigned=("__name__", "__doc__"), updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(entry, Tensor) for entry in tree_flatten((args, kwargs))[0]):
            raise WonderlandError("vmap was called without a tensor to take apart.")
        with native.recording("equations"):
            try:
                return batched(*args, **kwargs)
            except ValueError as error:
                if isinstance(error, WonderlandError) or not str(error).startswith("vmap"):
                    raise
                raise WonderlandError(f"vmap cannot take the arguments apart: {error}") from error

    return mapped


def with_equations(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose fused kernels are replaced by their equations, which torch.func can differentiate and batch."""

    @wraps(f, assigned=("__name__", "__doc__"), updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        with native.recording("equations"):
            return f(*args, **kwargs)

    return run
