"""Adadelta: the size of past steps takes the place of a learning rate."""

import torch
from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, State, UpdateRule


def _init(parameter: Tensor, options: Options) -> State:
    return {"square_avg": torch.zeros_like(parameter), "acc_delta": torch.zeros_like(parameter)}


def _update(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""The gradient, rescaled to the size of recent steps.

    .. math::
        s_t = \rho s_{t-1} + (1 - \rho) g_t^2, \qquad
        g'_t = \frac{\sqrt{\Delta x_{t-1} + \epsilon}}{\sqrt{s_t + \epsilon}} g_t, \qquad x_t = x_{t-1} - \eta\,g'_t,
        \qquad \Delta x_t = \rho \Delta x_{t-1} + (1 - \rho) {g'_t}^2

    The book has :math:`\eta = 1`. Book: D2L 12.9. Paper: Zeiler, 2012.
    """
    rho, eps = options["rho"], options["eps"]
    gradient = gradient + options["weight_decay"] * parameter
    square = rho * state["square_avg"] + (1 - rho) * gradient**2
    rescaled = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * gradient
    delta = rho * state["acc_delta"] + (1 - rho) * rescaled**2
    return -options["lr"] * rescaled, {"square_avg": square, "acc_delta": delta}


def _numbers(state: State, options: Options) -> tuple[float, ...]:
    return options["lr"], options["weight_decay"], options["rho"], 1 - options["rho"], options["eps"]


adadelta = UpdateRule(
    _init,
    _update,
    {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0},
    Kernel("adadelta", ("square_avg", "acc_delta"), _numbers),
)
