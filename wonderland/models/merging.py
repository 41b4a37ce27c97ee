"""Merging models: weights of several fine-tuned models of one architecture become those of one."""

from collections.abc import Sequence

import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest

METHODS = ("average", "task", "ties")
Weights = dict[str, Tensor]


def merge_weights(
    models: Sequence[Weights],
    method: str = "average",
    *,
    base: Weights | None = None,
    shares: Sequence[float] | None = None,
    scale: float = 1.0,
    density: float = 0.2,
) -> Weights:
    r"""The weights, by name, of one model made of several that began alike.

    With :math:`\tau_m = \theta_m - \theta_0` the change of model m from the `base` (its task vector), and shares w that sum
    to 1 (equal unless given):

    .. math::
        \text{average:}\quad & \theta = \sum_m w_m \theta_m \\
        \text{task:}\quad & \theta = \theta_0 + \lambda \sum_m \tau_m \\
        \text{ties:}\quad & \theta = \theta_0 + \lambda\, \frac{\sum_m w_m \hat\tau_m [\mathrm{sign}\,\hat\tau_m = s]}
        {\sum_m w_m [\mathrm{sign}\,\hat\tau_m = s]}, \qquad s = \mathrm{sign} \sum_m w_m \hat\tau_m

    :math:`\lambda` is `scale`. TIES keeps of each change the `density` entries with the largest size in each tensor,
    :math:`\hat\tau`, elects a sign for each entry, and averages the changes that have it. Weights that the base does not
    have, such as a new head, are averaged. Numbers that are not floating point come from the first model.
    Papers: Wortsman et al., 2022; Ilharco et al., 2023; Yadav et al., 2023.

    >>> one, two, zero = ({"w": torch.tensor(value)} for value in ([1.0, 4.0], [3.0, -1.0], [0.0, 0.0]))
    >>> merge_weights([one, two])["w"], merge_weights([one, two], "task", base=zero)["w"]
    (tensor([2.0000, 1.5000]), tensor([4., 3.]))
    >>> merge_weights([one, two], "ties", base=zero, density=1.0)["w"]
    tensor([2., 4.])
    """
    _check(models, method, base, shares, density)
    given = [1.0] * len(models) if shares is None else [float(share) for share in shares]
    weights = torch.tensor([share / sum(given) for share in given], dtype=torch.float64)
    merged: Weights = {}
    for name, first in models[0].items():
        tensors = [model[name] for model in models]
        if not first.is_floating_point():
            merged[name] = first.clone()
            continue
        stacked = torch.stack([tensor.double() for tensor in tensors])
        share = weights.view(-1, *[1] * first.dim()).to(stacked.device)
        if method == "average" or base is None or name not in base:
            merged[name] = (share * stacked).sum(0).to(first.dtype)
            continue
        start = base[name].double()
        change = stacked - start
        total = change.sum(0) if method == "task" else _elected(change, share, density)
        merged[name] = (start + scale * total).to(first.dtype)
    return merged


def _elected(change: Tensor, share: Tensor, density: float) -> Tensor:
    """The mean of the largest changes (models, ...) that have the sign of their sum."""
    flat = change.abs().flatten(1)
    kept = max(1, round(density * flat.shape[1]))
    least = flat.kthvalue(flat.shape[1] - kept + 1, 1).values.view(-1, *[1] * (change.dim() - 1))
    trimmed = change.masked_fill(change.abs() < least, 0)
    sign = (share * trimmed).sum(0).sign()
    agreeing = (trimmed.sign() == sign) & (trimmed != 0)
    weight = (share * agreeing).sum(0)
    return (share * trimmed * agreeing).sum(0) / weight.clamp_min(torch.finfo(weight.dtype).tiny)


def _check(
    models: Sequence[Weights], method: str, base: Weights | None, shares: Sequence[float] | None, density: float
) -> None:
    if method not in METHODS:
        raise WonderlandError(
            f"There is no method {method!r}.{nearest(str(method), METHODS)} Models are merged by {', '.join(METHODS)}."
        )
    if len(models) < 2 and (method == "average" or not models):
        raise WonderlandError("Merging takes two models or more.")
    if method != "average" and base is None:
        raise WonderlandError(
            f"The method {method} adds changes to the model that all began from: name it as base (--base)."
        )
    if shares is not None and (len(shares) != len(models) or min(shares) < 0 or sum(shares) <= 0):
        raise WonderlandError(f"Shares are {len(models)} numbers, one for each model, 0 or more, not {list(shares)}.")
    if not 0 < density <= 1:
        raise WonderlandError(f"The density of ties is above 0 and at most 1, not {density:g}.")
    others: list[Weights] = list(models[1:])
    if base is not None:
        others.append(base)
    for number, other in enumerate(others, 2):
        which = f"model {number}" if number <= len(models) else "the base"
        for name in models[0]:
            if name not in other and number <= len(models):
                raise WonderlandError(f"Models of one architecture are merged, and {which} has no {name!r}.")
            if name in other and other[name].shape != models[0][name].shape:
                raise WonderlandError(
                    f"Models of one architecture are merged, and {name!r} has shape {list(other[name].shape)} in {which}, "
                    f"not {list(models[0][name].shape)}."
                )
