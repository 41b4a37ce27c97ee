"""The convention of losses, kept in one place: shapes that agree, masks that hide, and one way to a single number."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest

REDUCTIONS = ("mean", "sum", "none")


def meet(name: str, prediction: Any, target: Any, mask: Any = None) -> tuple[Tensor, Tensor]:
    """Prediction and target of one shape and type, 0 where the mask hides; or a sentence that says why they do not meet."""
    numbers(name, "prediction", prediction)
    tensor(name, "target", target)
    if prediction.shape != target.shape:
        raise WonderlandError(
            f"{name} got a prediction of shape {tuple(prediction.shape)} and a target of shape {tuple(target.shape)}: "
            f"give both one shape, for nothing is broadcast.{_hint(prediction, target)}"
        )
    target = target.to(prediction.dtype)
    prediction, target = show(name, prediction, mask), show(name, target, mask)
    finite(name, "target", target)
    return prediction, target


def show(name: str, value: Tensor, mask: Any) -> Tensor:
    """`value` with 0 where the mask hides: neither a value nor a gradient passes there."""
    if mask is None:
        return value
    return value.masked_fill(~spread(mask_of(name, mask, value.shape), value.shape), 0)


def settle(name: str, losses: Tensor, mask: Any, weight: Any, reduction: Any) -> Tensor:
    """Losses to what was asked for: their weighted mean, their sum, or each of them."""
    if reduction not in REDUCTIONS:
        raise WonderlandError(
            f"{name} takes a reduction of 'mean', 'sum' or 'none', not {reduction!r}.{nearest(str(reduction), REDUCTIONS)}"
        )
    if mask is None and weight is None:
        if reduction == "mean" and losses.numel() == 0:
            raise WonderlandError(f"{name} got an empty prediction, which has no mean: leave empty batches out.")
        return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses
    shares = _shares(name, losses, mask, weight)
    each = losses * shares
    if reduction == "none":
        return each
    if reduction == "sum":
        return each.sum()
    total = shares.sum()
    if not torch.compiler.is_compiling() and not total > 0:
        what = "mask that hides every element" if weight is None else "weight that is 0 for every element it is shown"
        raise WonderlandError(f"{name} got a {what}, which leaves no mean: leave such batches out.")
    return each.sum() / total


def _shares(name: str, losses: Tensor, mask: Any, weight: Any) -> Tensor:
    shares = torch.ones_like(losses, requires_grad=False)
    if weight is not None:
        numbers(name, "weight", weight)
        _leading(name, "weight", weight, losses.shape)
        # A hidden weight may hold anything, so it is hidden before it is looked at.
        shares = show(name, spread(weight, losses.shape).to(losses.dtype), mask)
        finite(name, "weight", shares)
        if not torch.compiler.is_compiling() and shares.numel() and shares.min() < 0:
            raise WonderlandError(f"{name} takes a weight of at least 0, not {float(shares.min()):g}.")
    return show(name, shares, mask)


def mask_of(name: str, mask: Any, shape: torch.Size) -> Tensor:
    """A mask, checked to be booleans over the leading axes of a shape."""
    tensor(name, "mask", mask)
    if mask.dtype != torch.bool:
        raise WonderlandError(f"{name} takes a mask of booleans, True where an element is real, not {mask.dtype}.")
    _leading(name, "mask", mask, shape)
    return mask


def _leading(name: str, what: str, value: Tensor, shape: torch.Size) -> None:
    if value.shape != shape[: value.dim()]:
        raise WonderlandError(
            f"{name} got a {what} of shape {tuple(value.shape)} for elements of shape {tuple(shape)}: "
            f"a {what} is laid out over all of their axes, or over the first of them."
        )


def spread(value: Tensor, shape: torch.Size) -> Tensor:
    """A value over leading axes, repeated over the others."""
    return value.reshape(*value.shape, *[1] * (len(shape) - value.dim())).expand(shape)


def tensor(name: str, what: str, value: Any) -> None:
    """Say that an argument is no tensor."""
    if not isinstance(value, Tensor):
        raise WonderlandError(f"{name} takes a tensor as its {what}, not a {type(value).__name__}.")


def numbers(name: str, what: str, value: Any) -> None:
    """Say that an argument holds no floating point numbers."""
    tensor(name, what, value)
    if not value.is_floating_point():
        raise WonderlandError(f"{name} takes floating point numbers as its {what}, not {value.dtype}.")


def finite(name: str, what: str, value: Tensor) -> None:
    """Say where an argument first holds NaN or infinity."""
    if torch.compiler.is_compiling() or bool(value.detach().isfinite().all()):
        return
    spot = tuple((~value.isfinite()).nonzero()[0].tolist())
    raise WonderlandError(
        f"{name} got a {what} that is {float(value[spot]):g} at {spot}: leave such elements out, or hide them with mask."
    )


def strength(name: str, what: str, value: Any, *, low: float = 0.0, high: float = float("inf"), open: bool = False):
    """A setting as a float, checked to lie between `low` and `high`; `open` shuts both ends out."""
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if fits and (low < value < high if open else low <= value <= high and abs(value) != float("inf")):
        return float(value)
    if high == float("inf"):
        span = f"above {low:g}" if open else f"of at least {low:g}"
    else:
        span = f"between {low:g} and {high:g}, both excluded" if open else f"from {low:g} to {high:g}"
    raise WonderlandError(f"{name} takes a {what} {span}, not {value!r}.")


def _hint(prediction: Tensor, target: Tensor) -> str:
    if prediction.shape == (*target.shape, 1):
        return " prediction.squeeze(-1) has the target's."
    if target.shape == (*prediction.shape, 1):
        return " target.squeeze(-1) has the prediction's."
    return ""
