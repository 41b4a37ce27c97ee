"""Decisions under costs: the class to answer is the one whose mistakes cost least, not always the likeliest."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.losses.classes import distribution
from wonderland.tasks.losses.convention import finite, numbers


def expected_costs(prediction: Any, costs: Any) -> Tensor:
    r"""What each answer would cost on average.

    .. math:: r_i = \sum_j C_{ij}\, p_j

    Rows of C are answers and columns truths. Shapes: prediction (..., c) probabilities, costs (a, c) -> (..., a).
    Book: Alice 4.3.3.

    >>> costs = torch.tensor([[0.0, 10.0], [1.0, 0.0]])
    >>> expected_costs(torch.tensor([0.5, 0.5]), costs)
    tensor([5.0000, 0.5000])
    """
    numbers("expected_costs", "prediction", prediction)
    if not torch.compiler.is_compiling():
        distribution("expected_costs", "prediction", prediction.detach())
    costs = torch.as_tensor(costs, dtype=prediction.dtype, device=prediction.device)
    if costs.dim() != 2 or costs.shape[1] != prediction.shape[-1]:
        raise WonderlandError(
            f"expected_costs takes costs with a row for each answer and a column for each of the "
            f"{prediction.shape[-1]} classes, not of shape {tuple(costs.shape)}."
        )
    finite("expected_costs", "costs", costs)
    return prediction @ costs.T


def decide(prediction: Any, costs: Any) -> Tensor:
    r"""The answer of least expected cost, the first among equals.

    .. math:: \hat y = \arg\min_i \sum_j C_{ij}\, p_j

    With costs 1 - I it is the likeliest class. Shapes: prediction (..., c) probabilities, costs (a, c) -> (...).
    Book: Alice 4.3.3.

    >>> costs = torch.tensor([[0.0, 10.0], [1.0, 0.0]])
    >>> decide(torch.tensor([[0.92, 0.08], [0.9, 0.1]]), costs)
    tensor([0, 1])
    """
    return expected_costs(prediction, costs).argmin(-1)
