"""Two kinds of uncertainty: noise in the data (aleatoric), and disagreement between members (epistemic)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.trust.arrays import class_probabilities, finite


@dataclass(frozen=True)
class Uncertainty:
    """A prediction with its uncertainty and the two parts of it. Shapes: mean (n, c) or (n,), the others (n,)."""

    mean: ndarray
    total: ndarray
    aleatoric: ndarray
    epistemic: ndarray


def _entropy(p: ndarray) -> ndarray:
    return -(p * np.log(np.where(p > 0, p, 1))).sum(-1)


def class_uncertainty(probabilities: Any) -> Uncertainty:
    r"""Entropy of the mean prediction, as the mean entropy of members and what they disagree about.

    .. math:: \underbrace{H[\bar p]}_{\text{total}} = \underbrace{\tfrac1k \sum_i H[p_i]}_{\text{aleatoric}}
              + \underbrace{\tfrac1k \sum_i \mathrm{KL}(p_i \| \bar p)}_{\text{epistemic}}

    The epistemic part is the mutual information of prediction and member, in nats. Members are networks of an ensemble, or
    draws of a posterior. Shapes: (k, n, c). Papers: Houlsby et al., 2011; Depeweg et al., 2018.

    >>> apart = class_uncertainty([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> apart.aleatoric.item(), round(apart.epistemic.item(), 4)
    (0.0, 0.6931)
    """
    array = finite("probabilities", probabilities, 3)
    class_probabilities(array.reshape(-1, array.shape[2]))
    mean = array.mean(0)
    total, within = _entropy(mean), _entropy(array).mean(0)
    return Uncertainty(mean, total, np.abs(within), np.maximum(total - within, 0))


def number_uncertainty(means: Any, variances: Any = None) -> Uncertainty:
    r"""Variance of a mixture of Gaussian predictions: the mean variance, and the variance of means.

    .. math:: \mathrm{Var}[y] = \underbrace{\tfrac1k \sum_i \sigma_i^2}_{\text{aleatoric}}
              + \underbrace{\tfrac1k \sum_i (\mu_i - \bar\mu)^2}_{\text{epistemic}}

    Shapes: means (k, n), variances (k, n). Paper: Lakshminarayanan et al., 2017.

    >>> number_uncertainty([[0.0], [2.0]], [[1.0], [3.0]]).total
    array([3.])
    """
    centre = finite("means", means, 2)
    wide = np.zeros_like(centre) if variances is None else finite("variances", variances, 2)
    if wide.shape != centre.shape:
        raise WonderlandError(f"`variances` has shape {wide.shape} where `means` has {centre.shape}.")
    if wide.min() < 0:
        raise WonderlandError(f"`variances` holds {wide.min():g}: variances are 0 or more.")
    inside, between = wide.mean(0), centre.var(0)
    return Uncertainty(centre.mean(0), inside + between, inside, between)


def ensemble_outputs(models: Sequence[nn.Module], *inputs: Tensor) -> Tensor:
    """What each network of a deep ensemble answers, in evaluation mode; modes are restored. Shapes: -> (k, n, ...).

    >>> ensemble_outputs([nn.Linear(2, 1), nn.Linear(2, 1)], torch.zeros(3, 2)).shape
    torch.Size([2, 3, 1])
    """
    if not models:
        raise WonderlandError("A deep ensemble needs at least one network.")
    answers = []
    for model in models:
        modes = [(module, module.training) for module in model.modules()]
        try:
            model.eval()
            with torch.no_grad():
                answers.append(model(*inputs))
        finally:
            for module, mode in modes:
                module.training = mode
    return torch.stack(answers)
