"""Lion: the sign of a momentum; the rule was found by program search."""

import torch
from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, State, UpdateRule


def _init(parameter: Tensor, options: Options) -> State:
    return {"exp_avg": torch.zeros_like(parameter)}


def _update(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""Every weight changes by the same amount, by the sign of an interpolation between momentum and gradient.

    .. math::
        x_t = x_{t-1} - \eta\,\bigl(\operatorname{sign}(\beta_1 m_{t-1} + (1 - \beta_1) g_t) + \lambda x_{t-1}\bigr),
        \qquad m_t = \beta_2 m_{t-1} + (1 - \beta_2) g_t

    Steps are larger than Adam's at the same learning rate: use 3 to 10 times less, and as much more weight decay.
    Paper: Chen et al., 2023.
    """
    first, second = options["betas"]
    mean = state["exp_avg"]
    direction = torch.sign(first * mean + (1 - first) * gradient)
    step = -options["lr"] * (direction + options["weight_decay"] * parameter)
    return step, {"exp_avg": second * mean + (1 - second) * gradient}


def _numbers(state: State, options: Options) -> tuple[float, ...]:
    first, second = options["betas"]
    return options["lr"], options["weight_decay"], first, 1 - first, second, 1 - second


lion = UpdateRule(
    _init,
    _update,
    {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0},
    Kernel("lion", ("exp_avg",), _numbers),
)
