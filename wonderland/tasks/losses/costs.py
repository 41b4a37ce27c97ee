"""Cost-sensitive decisions: the action with the lowest expected cost, which is not always the most likely class."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.tasks.losses.classes import check_distribution
from wonderland.tasks.losses.convention import check_finite, check_float


def expected_costs(prediction: Any, costs: Any) -> Tensor:
    r"""The expected cost of each action.

    .. math:: r_i = \sum_j C_{ij}\, p_j

    Rows of C are actions, columns true classes. Shapes: prediction (..., c) probabilities, costs (a, c) -> (..., a).
    Book: Alice 4.3.3.

    >>> costs = torch.tensor([[0.0, 10.0], [1.0, 0.0]])
    >>> expected_costs(torch.tensor([0.5, 0.5]), costs)
    tensor([5.0000, 0.5000])
    """
    check_float("expected_costs", "prediction", prediction)
    if not torch.compiler.is_compiling():
        check_distribution("expected_costs", "prediction", prediction.detach())
    costs = torch.as_tensor(costs, dtype=prediction.dtype, device=prediction.device)
    if costs.dim() != 2 or costs.shape[1] != prediction.shape[-1]:
        raise WonderlandError(
            f"expected_costs takes costs with a row for each action and a column for each of the "
            f"{prediction.shape[-1]} classes, not of shape {tuple(costs.shape)}."
        )
    check_finite("expected_costs", "costs", costs)
    return prediction @ costs.T


def decide(prediction: Any, costs: Any) -> Tensor:
    r"""The action with the lowest expected cost, the first of equal ones.

    .. math:: \hat y = \arg\min_i \sum_j C_{ij}\, p_j

    With costs 1 - I it is the most likely class. Shapes: prediction (..., c) probabilities, costs (a, c) -> (...).
    Book: Alice 4.3.3.

    >>> costs = torch.tensor([[0.0, 10.0], [1.0, 0.0]])
    >>> decide(torch.tensor([[0.92, 0.08], [0.9, 0.1]]), costs)
    tensor([0, 1])
    """
    return expected_costs(prediction, costs).argmin(-1)
