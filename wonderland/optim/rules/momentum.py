"""Momentum: a heavy ball keeps its speed, in the three forms that people mean by the word."""

import torch
from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, Rule, State


def _init(parameter: Tensor, options: Options) -> State:
    return {"momentum_buffer": torch.zeros_like(parameter)}


def _velocity(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, Tensor]:
    gradient = gradient + options["weight_decay"] * parameter
    return gradient, options["momentum"] * state["momentum_buffer"] + gradient


def _momentum(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""The rate outside the sum, as in PyTorch and in D2L.

    .. math:: v_t = \beta v_{t-1} + g_t, \qquad x_t = x_{t-1} - \eta_t v_t

    Book: D2L 12.6. Paper: Polyak, 1964.
    """
    _, velocity = _velocity(gradient, state, parameter, options)
    return -options["lr"] * velocity, {"momentum_buffer": velocity}


def _heavy_ball(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""The rate inside the sum, as in Alice: the ball keeps the speed it has when the rate is lowered.

    .. math:: v_t = \lambda v_{t-1} - \eta_t g_t, \qquad x_t = x_{t-1} + v_t

    The same as `momentum` while the rate stays what it was, another path under a schedule. Book: Alice 2.3.2.
    """
    gradient = gradient + options["weight_decay"] * parameter
    velocity = options["momentum"] * state["momentum_buffer"] - options["lr"] * gradient
    return velocity, {"momentum_buffer": velocity}


def _nesterov(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""Momentum that looks ahead: the gradient counts once more, at the place where the ball will be.

    .. math:: v_t = \beta v_{t-1} + g_t, \qquad x_t = x_{t-1} - \eta_t (g_t + \beta v_t)

    Paper: Nesterov, 1983, in the form of Sutskever et al., 2013, as PyTorch has it.
    """
    gradient, velocity = _velocity(gradient, state, parameter, options)
    return -options["lr"] * (gradient + options["momentum"] * velocity), {"momentum_buffer": velocity}


_OPTIONS = {"lr": 1e-3, "momentum": 0.9, "weight_decay": 0.0}


def _rule(update, symbol: str) -> Rule:
    numbers = lambda state, options: (options["lr"], options["momentum"], options["weight_decay"])  # noqa: E731
    return Rule(_init, update, _OPTIONS, Kernel(symbol, ("momentum_buffer",), numbers))


momentum = _rule(_momentum, "momentum")
heavy_ball = _rule(_heavy_ball, "heavy_ball")
nesterov = _rule(_nesterov, "nesterov")
