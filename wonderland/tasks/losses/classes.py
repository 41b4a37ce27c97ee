"""Losses of a class, from logits: cross-entropy for several classes, for two, and one that looks at the hard examples."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.losses.convention import finite, meet, numbers, settle, show, strength, tensor


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

    `smoothing` s takes a share of the truth and gives it to all classes alike, so that no logit must go to infinity. Class
    weights v are `weight=v[target]`.

    Shapes: prediction (..., c) logits; target (...) labels, or (..., c) probabilities such as mixup makes.
    Book: Alice 4.2 and 4.3.2; D2L 4.1. Paper for smoothing: Szegedy et al., 2016.

    >>> cross_entropy(torch.tensor([[1000.0, 0.0]]), torch.tensor([1]))
    tensor(1000.)
    """
    smoothing = strength("cross_entropy", "smoothing", smoothing, high=1.0)
    log_p, target = log_probabilities("cross_entropy", prediction, target, mask)
    if target.is_floating_point():
        own = -(target * log_p).sum(-1)
    else:
        own = -log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    if smoothing:
        own = (1 - smoothing) * own - smoothing * log_p.mean(-1)
    return settle("cross_entropy", own, mask, weight, reduction)


def focal(
    prediction: Any,
    target: Any,
    *,
    gamma: float | int = 2.0,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""Cross-entropy that fades for examples the model already gets right.

    .. math:: l = -(1 - p_y)^\gamma \log p_y

    With gamma 0 it is cross-entropy. Shapes: prediction (..., c) logits, target (...) labels.
    Book: Alice 4.3.4 (named). Paper: Lin et al., 2017.

    >>> focal(torch.tensor([[0.0, 0.0]]), torch.tensor([0]), gamma=1)
    tensor(0.3466)
    """
    gamma = strength("focal", "gamma", gamma)
    log_p, target = log_probabilities("focal", prediction, target, mask)
    if target.is_floating_point():
        raise WonderlandError(
            "focal takes a target of labels, not of probabilities: it weighs by that of the true class."
        )
    own = log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    # At p = 1 the slope of a root is infinite; the smallest number in place of 0 keeps it finite.
    doubt = (-torch.expm1(own)).clamp(min=torch.finfo(own.dtype).tiny)
    return settle("focal", -(doubt**gamma) * own, mask, weight, reduction)


def binary_cross_entropy(
    prediction: Any,
    target: Any,
    *,
    smoothing: float | int = 0.0,
    mask: Any = None,
    weight: Any = None,
    reduction: Any = "mean",
) -> Tensor:
    r"""Cross-entropy of one logit for each question that is answered by yes or no.

    .. math:: l = -y \log \sigma(\hat y) - (1 - y) \log(1 - \sigma(\hat y)) = \mathrm{softplus}(\hat y) - y \hat y

    The target is 0 or 1, or the probability of 1; `smoothing` s draws it to the middle, (1 - s) y + s / 2. The logits of
    an honest model may all lie between 0 and 1, so here nobody can tell them from probabilities: give no sigmoid's output.

    Shapes: both (...). Book: Alice 4.3.1.

    >>> binary_cross_entropy(torch.tensor([0.0, 200.0]), torch.tensor([1.0, 0.0]), reduction="none")
    tensor([  0.6931, 200.0000])
    """
    name = "binary_cross_entropy"
    smoothing = strength(name, "smoothing", smoothing, high=1.0)
    prediction, target = meet(name, prediction, target, mask)
    _within(name, target)
    if smoothing:
        target = (1 - smoothing) * target + smoothing / 2
    return settle(name, (1 - target) * prediction - F.logsigmoid(prediction), mask, weight, reduction)


def log_probabilities(name: str, prediction: Any, target: Any, mask: Any) -> tuple[Tensor, Tensor]:
    """Log-probabilities (..., c) of logits, and the labels or probabilities they meet, both checked."""
    numbers(name, "prediction", prediction)
    tensor(name, "target", target)
    soft = target.is_floating_point()
    if prediction.dim() == 0 or target.shape != (prediction.shape if soft else prediction.shape[:-1]):
        what = "probabilities" if soft else "labels"
        raise WonderlandError(
            f"{name} got a prediction of shape {tuple(prediction.shape)} and a target of {what} of shape "
            f"{tuple(target.shape)}: logits (..., c), classes last, meet labels (...) or probabilities (..., c)."
        )
    if target.dtype == torch.bool:
        raise WonderlandError(f"{name} takes a target of labels 0, 1, 2 ... in whole numbers, not torch.bool.")
    spots = prediction.shape[:-1]
    if mask is not None and isinstance(mask, Tensor) and mask.dim() > len(spots):
        raise WonderlandError(
            f"{name} got a mask of shape {tuple(mask.shape)} for elements of shape {tuple(spots)}: "
            "it hides whole predictions, not classes."
        )
    logits, target = show(name, prediction, mask), show(name, target, mask)
    classes = prediction.shape[-1]
    if not torch.compiler.is_compiling():
        _no_probabilities(name, prediction.detach() if mask is None else prediction.detach()[mask])
        if soft:
            shown = target.detach() if mask is None else target.detach()[mask]
            distribution(name, "target", shown)
        elif target.numel() and (target.min() < 0 or target.max() >= classes):
            low, high = int(target.min()), int(target.max())
            raise WonderlandError(
                f"{name} got the label {low if low < 0 else high} in its target, and the prediction has classes "
                f"0 to {classes - 1}: correct it, or hide it with mask."
            )
    return F.log_softmax(logits, -1), target.to(prediction.dtype) if soft else target.long()


def distribution(name: str, what: str, value: Tensor) -> None:
    """Say where an argument (..., c) is no distribution over classes: numbers of at least 0 that sum to 1."""
    finite(name, what, value)
    if value.numel() == 0:
        return
    if value.min() < 0:
        raise WonderlandError(f"{name} takes probabilities as its {what}, not {float(value.min()):g}.")
    sums = value.sum(-1).flatten()
    if (sums - 1).abs().max() > 1e-3:
        far = float(sums[(sums - 1).abs().argmax()])
        raise WonderlandError(f"{name} takes probabilities that sum to 1 as its {what}, not to {far:g}.")


def _no_probabilities(name: str, prediction: Tensor) -> None:
    """Rows that are at least 0 and sum to 1 to the last bit come from a softmax, never from a model's last layer."""
    rows = prediction.reshape(-1, prediction.shape[-1])
    if len(rows) < 2 or rows.shape[1] < 2 or rows.dtype not in (torch.float32, torch.float64) or rows.min() < 0:
        return
    if (rows.sum(1) - 1).abs().max() <= 8 * torch.finfo(rows.dtype).eps:
        raise WonderlandError(
            f"{name} got a prediction whose every row sums to 1: these are probabilities, and logits belong here. "
            "Leave the softmax out of the model, or give the logarithm of its output."
        )


def _within(name: str, target: Tensor) -> None:
    if torch.compiler.is_compiling() or target.numel() == 0:
        return
    low, high = float(target.min()), float(target.max())
    if low < 0 or high > 1:
        raise WonderlandError(f"{name} takes a target from 0 to 1, not {low if low < 0 else high:g}.")
