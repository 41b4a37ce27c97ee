"""Where a norm finds the features: on the last axis, as tokens have them, or after the batch, as images have them."""

from typing import Any

from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.nn.contract.mixer import check_mask, check_numbers, check_pointwise

AXES = ("last", "first")


def check_axis(axis: str, name: str) -> str:
    """The place of the features, checked."""
    if axis not in AXES:
        raise WonderlandError(f"{name} takes an axis of 'last' or 'first', not {axis!r}.{nearest(str(axis), AXES)}")
    return axis


def check_around(x: Any, dim: int, mask: Any, name: str, axis: str, like: Tensor) -> None:
    """Say what is wrong with features (..., dim) or (batch, dim, ...), or with a mask for one axis of positions."""
    if axis == "last":
        check_pointwise(x, dim, mask, name, like)
        return
    if not isinstance(x, Tensor) or x.dim() < 2 or x.shape[1] != dim or 0 in x.shape:
        given = f"of shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"of type {type(x).__name__}"
        raise WonderlandError(f"{name} takes a tensor (batch, {dim}, ...), not {given}.")
    check_numbers(x, name, like)
    if mask is not None and x.dim() != 3:
        raise WonderlandError(
            f"{name} takes a mask with features (batch, {dim}, time) only, and this input has shape {tuple(x.shape)}."
        )
    check_mask(mask, x.movedim(1, -1), name)
