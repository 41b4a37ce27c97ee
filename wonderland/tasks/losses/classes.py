"""Classification losses from logits: cross-entropy, binary cross-entropy, focal loss."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.losses.convention import (
    apply_mask,
    check_finite,
    check_float,
    check_number,
    check_pair,
    check_tensor,
    reduce_losses,
)


def cross_entropy(
    prediction: Any,
    target: Any,
    *,
    smoothing: float | int = 0.0,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""Cross-entropy of logits: minus the log-probability of the true class.

    .. math:: l = -\sum_c q_c \log p_c, \qquad p = \mathrm{softmax}(\hat y), \qquad
        q = (1 - s)\, y + s / C, \qquad \nabla_{\hat y}\, l = p - q

    Label smoothing s moves a share of the target to all classes equally, so that the optimal logits are finite. For class
    weights v use `weight=v[target]`.

    Shapes: prediction (..., c) logits; target (...) labels, or (..., c) probabilities such as mixup makes.
    Book: Alice 4.2 and 4.3.2; D2L 4.1. Paper for smoothing: Szegedy et al., 2016.

    >>> cross_entropy(torch.tensor([[1000.0, 0.0]]), torch.tensor([1]))
    tensor(1000.)
    """
    smoothing = check_number("cross_entropy", "smoothing", smoothing, high=1.0)
    log_p, target = log_probabilities("cross_entropy", prediction, target, mask)
    if target.is_floating_point():
        losses = -(target * log_p).sum(-1)
    else:
        losses = -log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    if smoothing:
        losses = (1 - smoothing) * losses - smoothing * log_p.mean(-1)
    return reduce_losses("cross_entropy", losses, mask, weight, reduction)


def focal(
    prediction: Any,
    target: Any,
    *,
    gamma: float | int = 2.0,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""Cross-entropy with a lower weight for examples that are classified well.

    .. math:: l = -(1 - p_y)^\gamma \log p_y

    With gamma 0 it is cross-entropy. Shapes: prediction (..., c) logits, target (...) labels.
    Book: Alice 4.3.4 (named). Paper: Lin et al., 2017.

    >>> focal(torch.tensor([[0.0, 0.0]]), torch.tensor([0]), gamma=1)
    tensor(0.3466)
    """
    gamma = check_number("focal", "gamma", gamma)
    log_p, target = log_probabilities("focal", prediction, target, mask)
    if target.is_floating_point():
        raise WonderlandError(
            "focal takes a target of labels, not of probabilities: its weight depends on the probability of the true class."
        )
    true_log_p = log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    # For gamma < 1 the gradient at p = 1 would be infinite; clamping keeps it finite.
    error = (-torch.expm1(true_log_p)).clamp(min=torch.finfo(true_log_p.dtype).tiny)
    return reduce_losses("focal", -(error**gamma) * true_log_p, mask, weight, reduction)


def binary_cross_entropy(
    prediction: Any,
    target: Any,
    *,
    smoothing: float | int = 0.0,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""Binary cross-entropy of one logit for each element.

    .. math:: l = -y \log \sigma(\hat y) - (1 - y) \log(1 - \sigma(\hat y)) = \mathrm{softplus}(\hat y) - y \hat y

    The target is 0 or 1, or the probability of 1; `smoothing` s moves it towards 1/2: (1 - s) y + s / 2. Logits between
    0 and 1 are valid, so probabilities passed by mistake cannot be detected: do not apply a sigmoid before.

    Shapes: both (...). Book: Alice 4.3.1.

    >>> binary_cross_entropy(torch.tensor([0.0, 200.0]), torch.tensor([1.0, 0.0]), reduction="none")
    tensor([  0.6931, 200.0000])
    """
    name = "binary_cross_entropy"
    smoothing = check_number(name, "smoothing", smoothing, high=1.0)
    prediction, target = check_pair(name, prediction, target, mask)
    _check_unit_interval(name, target)
    if smoothing:
        target = (1 - smoothing) * target + smoothing / 2
    return reduce_losses(name, (1 - target) * prediction - F.logsigmoid(prediction), mask, weight, reduction)


def log_probabilities(name: str, prediction: Any, target: Any, mask: Any) -> tuple[Tensor, Tensor]:
    """Log-probabilities (..., c) of logits, and the target as labels or probabilities, both checked."""
    check_float(name, "prediction", prediction)
    check_tensor(name, "target", target)
    soft = target.is_floating_point()
    if prediction.dim() == 0 or target.shape != (prediction.shape if soft else prediction.shape[:-1]):
        kind = "probabilities" if soft else "labels"
        raise WonderlandError(
            f"{name} got a prediction of shape {tuple(prediction.shape)} and a target of {kind} of shape "
            f"{tuple(target.shape)}: logits (..., c), classes last, go with labels (...) or probabilities (..., c)."
        )
    if target.dtype == torch.bool:
        raise WonderlandError(f"{name} takes a target of labels 0, 1, 2 ... as integers, not torch.bool.")
    positions = prediction.shape[:-1]
    if mask is not None and isinstance(mask, Tensor) and mask.dim() > len(positions):
        raise WonderlandError(
            f"{name} got a mask of shape {tuple(mask.shape)} for elements of shape {tuple(positions)}: "
            "it masks whole predictions, not classes."
        )
    logits, target = apply_mask(name, prediction, mask), apply_mask(name, target, mask)
    classes = prediction.shape[-1]
    if not torch.compiler.is_compiling():
        _check_not_probabilities(name, prediction.detach() if mask is None else prediction.detach()[mask])
        if soft:
            unmasked = target.detach() if mask is None else target.detach()[mask]
            check_distribution(name, "target", unmasked)
        elif target.numel() and (target.min() < 0 or target.max() >= classes):
            low, high = int(target.min()), int(target.max())
            raise WonderlandError(
                f"{name} got the label {low if low < 0 else high} in its target, and the prediction has classes "
                f"0 to {classes - 1}: correct it, or mask it."
            )
    return F.log_softmax(logits, -1), target.to(prediction.dtype) if soft else target.long()


def check_distribution(name: str, argument: str, value: Tensor) -> None:
    """Raise unless an argument (..., c) is a distribution over classes: non-negative and with sum 1."""
    check_finite(name, argument, value)
    if value.numel() == 0:
        return
    if value.min() < 0:
        raise WonderlandError(f"{name} takes probabilities as its {argument}, not {float(value.min()):g}.")
    sums = value.sum(-1).flatten()
    if (sums - 1).abs().max() > 1e-3:
        far = float(sums[(sums - 1).abs().argmax()])
        raise WonderlandError(f"{name} takes probabilities that sum to 1 as its {argument}, not to {far:g}.")


def _check_not_probabilities(name: str, prediction: Tensor) -> None:
    """Raise for rows that are non-negative and sum to 1 within rounding: they are the output of a softmax."""
    rows = prediction.reshape(-1, prediction.shape[-1])
    if len(rows) < 2 or rows.shape[1] < 2 or rows.dtype not in (torch.float32, torch.float64) or rows.min() < 0:
        return
    if (rows.sum(1) - 1).abs().max() <= 8 * torch.finfo(rows.dtype).eps:
        raise WonderlandError(
            f"{name} got a prediction whose every row sums to 1: these are probabilities, not logits. "
            "Remove the softmax from the model, or give the logarithm of its output."
        )


def _check_unit_interval(name: str, target: Tensor) -> None:
    if torch.compiler.is_compiling() or target.numel() == 0:
        return
    low, high = float(target.min()), float(target.max())
    if low < 0 or high > 1:
        raise WonderlandError(f"{name} takes a target from 0 to 1, not {low if low < 0 else high:g}.")
