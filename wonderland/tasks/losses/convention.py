"""Checks, masks and reductions that all losses share."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest

REDUCTIONS = ("mean", "sum", "none")


def check_pair(name: str, prediction: Any, target: Any, mask: Any = None) -> tuple[Tensor, Tensor]:
    """Prediction and target in the same shape and dtype, 0 where masked; raises where they do not fit."""
    check_float(name, "prediction", prediction)
    check_tensor(name, "target", target)
    if prediction.shape != target.shape:
        raise WonderlandError(
            f"{name} got a prediction of shape {tuple(prediction.shape)} and a target of shape {tuple(target.shape)}: "
            f"give both the same shape; nothing is broadcast.{_squeeze_hint(prediction, target)}"
        )
    target = target.to(prediction.dtype)
    prediction, target = apply_mask(name, prediction, mask), apply_mask(name, target, mask)
    check_finite(name, "target", target)
    return prediction, target


def apply_mask(name: str, value: Tensor, mask: Any) -> Tensor:
    """`value` with 0 where masked; no gradient flows there."""
    if mask is None:
        return value
    return value.masked_fill(~expand_trailing(check_mask(name, mask, value.shape), value.shape), 0)


def reduce_losses(name: str, losses: Tensor, mask: Any, weight: Any, reduction: Any) -> Tensor:
    """Apply the reduction: weighted mean, sum, or none."""
    if reduction not in REDUCTIONS:
        raise WonderlandError(
            f"{name} takes a reduction of 'mean', 'sum' or 'none', not {reduction!r}.{nearest(str(reduction), REDUCTIONS)}"
        )
    if mask is None and weight is None:
        if reduction == "mean" and losses.numel() == 0:
            raise WonderlandError(f"{name} got an empty prediction, which has no mean: skip empty batches.")
        return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses
    weights = _element_weights(name, losses, mask, weight)
    weighted = losses * weights
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    total = weights.sum()
    if not torch.compiler.is_compiling() and not total > 0:
        cause = "mask that hides every element" if weight is None else "weight that is 0 for every unmasked element"
        raise WonderlandError(f"{name} got a {cause}, so there is no mean: skip such batches.")
    return weighted.sum() / total


def _element_weights(name: str, losses: Tensor, mask: Any, weight: Any) -> Tensor:
    weights = torch.ones_like(losses, requires_grad=False)
    if weight is not None:
        check_float(name, "weight", weight)
        _check_leading_axes(name, "weight", weight, losses.shape)
        # A masked weight may be NaN, so the mask is applied before the check.
        weights = apply_mask(name, expand_trailing(weight, losses.shape).to(losses.dtype), mask)
        check_finite(name, "weight", weights)
        if not torch.compiler.is_compiling() and weights.numel() and weights.min() < 0:
            raise WonderlandError(f"{name} takes a weight of at least 0, not {float(weights.min()):g}.")
    return apply_mask(name, weights, mask)


def check_mask(name: str, mask: Any, shape: torch.Size) -> Tensor:
    """Check that a mask is boolean and has the leading axes of a shape."""
    check_tensor(name, "mask", mask)
    if mask.dtype != torch.bool:
        raise WonderlandError(f"{name} takes a mask of booleans, True where an element is real, not {mask.dtype}.")
    _check_leading_axes(name, "mask", mask, shape)
    return mask


def _check_leading_axes(name: str, argument: str, value: Tensor, shape: torch.Size) -> None:
    if value.shape != shape[: value.dim()]:
        raise WonderlandError(
            f"{name} got a {argument} of shape {tuple(value.shape)} for elements of shape {tuple(shape)}: "
            f"a {argument} has all of their axes, or the leading ones."
        )


def expand_trailing(value: Tensor, shape: torch.Size) -> Tensor:
    """Expand a value with leading axes over the trailing ones."""
    return value.reshape(*value.shape, *[1] * (len(shape) - value.dim())).expand(shape)


def check_tensor(name: str, argument: str, value: Any) -> None:
    """Raise unless an argument is a tensor."""
    if not isinstance(value, Tensor):
        raise WonderlandError(f"{name} takes a tensor as its {argument}, not a {type(value).__name__}.")


def check_float(name: str, argument: str, value: Any) -> None:
    """Raise unless an argument is a floating point tensor."""
    check_tensor(name, argument, value)
    if not value.is_floating_point():
        raise WonderlandError(f"{name} takes floating point numbers as its {argument}, not {value.dtype}.")


def check_finite(name: str, argument: str, value: Tensor) -> None:
    """Raise where an argument has NaN or infinity."""
    if torch.compiler.is_compiling() or bool(value.detach().isfinite().all()):
        return
    index = tuple((~value.isfinite()).nonzero()[0].tolist())
    raise WonderlandError(
        f"{name} got a {argument} that is {float(value[index]):g} at {index}: remove such elements, or mask them."
    )


def check_number(
    name: str, argument: str, value: Any, *, low: float = 0.0, high: float = float("inf"), open: bool = False
):
    """An option as a float, checked to lie between `low` and `high`; `open` excludes both ends."""
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if fits and (low < value < high if open else low <= value <= high and abs(value) != float("inf")):
        return float(value)
    if high == float("inf"):
        span = f"above {low:g}" if open else f"of at least {low:g}"
    else:
        span = f"between {low:g} and {high:g}, both excluded" if open else f"from {low:g} to {high:g}"
    raise WonderlandError(f"{name} takes a {argument} {span}, not {value!r}.")


def _squeeze_hint(prediction: Tensor, target: Tensor) -> str:
    if prediction.shape == (*target.shape, 1):
        return " prediction.squeeze(-1) has the target's."
    if target.shape == (*prediction.shape, 1):
        return " target.squeeze(-1) has the prediction's."
    return ""
