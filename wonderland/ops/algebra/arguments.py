"""What the mathematics needs from its arguments, and the sentence when it does not get it."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError

Numbers = Any  # a tensor, an array, or nested lists of real numbers

_SHAPES = {0: "one number", 1: "a vector", 2: "a matrix"}


def numbers(name: str, value: Numbers, dims: int | None = None) -> Tensor:
    """The argument `name` as a float64 tensor that is finite, not empty, and of `dims` dimensions where that is asked.

    >>> numbers("x", [1, 2])
    tensor([1., 2.], dtype=torch.float64)
    >>> numbers("x", [1, float("nan")])
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: `x` holds nan at index (1,): only finite numbers are allowed here.
    """
    if isinstance(value, Tensor):
        if value.is_complex():
            raise WonderlandError(f"`{name}` holds complex numbers: only real ones are allowed here.")
        tensor = value.to(torch.float64)
    else:
        try:
            tensor = torch.from_numpy(np.array(value, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise WonderlandError(f"`{name}` is not made of numbers: {error}.") from error
    if dims is not None and tensor.dim() != dims:
        raise WonderlandError(f"`{name}` has shape {tuple(tensor.shape)} and has to be {_SHAPES[dims]}.")
    if tensor.numel() == 0:
        raise WonderlandError(f"`{name}` is empty: its shape is {tuple(tensor.shape)}.")
    wrong = ~tensor.detach().isfinite()
    if wrong.any():
        where = tuple(wrong.nonzero()[0].tolist())
        raise WonderlandError(
            f"`{name}` holds {tensor[where].item()} at index {where}: only finite numbers are allowed here."
        )
    return tensor


def square(name: str, value: Numbers) -> Tensor:
    """The argument `name` as a finite square matrix."""
    matrix = numbers(name, value, 2)
    if matrix.shape[0] != matrix.shape[1]:
        raise WonderlandError(f"`{name}` has shape {tuple(matrix.shape)} and has to be square.")
    return matrix


def positive(name: str, value: Any) -> float:
    """The argument `name` as a number above zero."""
    if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
        raise WonderlandError(f"`{name}` has to be a positive number, not {value}.")
    return float(value)


def count(name: str, value: Any, least: int = 1) -> int:
    """The argument `name` as a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise WonderlandError(f"`{name}` has to be a whole number of at least {least}, not {value}.")
    return value


def level(name: str, value: Any) -> float:
    """The argument `name` as a probability strictly between 0 and 1."""
    if not (isinstance(value, int | float) and 0 < value < 1):
        raise WonderlandError(f"`{name}` has to lie strictly between 0 and 1, not at {value}.")
    return float(value)


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """The argument `name` as one of the words that are allowed."""
    if value not in choices:
        raise WonderlandError(f"`{name}` has to be one of {', '.join(map(repr, choices))}, not {value!r}.")
    return value
