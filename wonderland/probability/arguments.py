"""Checks of arguments that must be probabilities."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers


def probabilities(name: str, value: Numbers, dims: int | None = None) -> Tensor:
    """The argument `name` as probabilities: no negative entry, and a sum of 1 to about nine digits.

    >>> probabilities("p", [0.5, 0.6])
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: `p` sums to 1.1: probabilities sum to 1.
    """
    probs = numbers(name, value, dims)
    below = (probs < 0).nonzero()
    if len(below):
        where = tuple(below[0].tolist())
        raise WonderlandError(
            f"`{name}` holds {probs[where].item():g} at index {where}: probabilities are not negative."
        )
    total = float(probs.detach().sum())
    # Probabilities from a float32 softmax have its rounding error.
    tolerance = 1e-5 if isinstance(value, Tensor) and value.dtype != torch.float64 else 1e-8
    if abs(total - 1) > tolerance:
        raise WonderlandError(f"`{name}` sums to {total:.6g}: probabilities sum to 1.")
    return probs


def same_shape(first: str, a: Tensor, second: str, b: Tensor) -> None:
    """Raise unless both have the same shape."""
    if a.shape != b.shape:
        raise WonderlandError(f"`{first}` has shape {tuple(a.shape)} where `{second}` has {tuple(b.shape)}.")
