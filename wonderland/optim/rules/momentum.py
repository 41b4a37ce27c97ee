"""Momentum in its three usual forms: PyTorch's, heavy ball with the rate inside, and Nesterov."""

import torch
from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, State, UpdateRule


def _init(parameter: Tensor, options: Options) -> State:
    return {"momentum_buffer": torch.zeros_like(parameter)}


def _velocity(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, Tensor]:
    gradient = gradient + options["weight_decay"] * parameter
    return gradient, options["momentum"] * state["momentum_buffer"] + gradient


def _momentum(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""The learning rate outside the sum, as in PyTorch and in D2L.

    .. math:: v_t = \beta v_{t-1} + g_t, \qquad x_t = x_{t-1} - \eta_t v_t

    Book: D2L 12.6. Paper: Polyak, 1964.
    """
    _, velocity = _velocity(gradient, state, parameter, options)
    return -options["lr"] * velocity, {"momentum_buffer": velocity}


def _heavy_ball(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""The learning rate inside the sum, as in Alice: lowering the rate does not change the accumulated velocity.

    .. math:: v_t = \lambda v_{t-1} - \eta_t g_t, \qquad x_t = x_{t-1} + v_t

    The same as `momentum` at a constant rate, different under a schedule. Book: Alice 2.3.2.
    """
    gradient = gradient + options["weight_decay"] * parameter
    velocity = options["momentum"] * state["momentum_buffer"] - options["lr"] * gradient
    return velocity, {"momentum_buffer": velocity}


def _nesterov(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""Nesterov momentum: the step looks ahead by one momentum update.

    .. math:: v_t = \beta v_{t-1} + g_t, \qquad x_t = x_{t-1} - \eta_t (g_t + \beta v_t)

    Paper: Nesterov, 1983, in the form of Sutskever et al., 2013, as PyTorch has it.
    """
    gradient, velocity = _velocity(gradient, state, parameter, options)
    return -options["lr"] * (gradient + options["momentum"] * velocity), {"momentum_buffer": velocity}


_OPTIONS = {"lr": 1e-3, "momentum": 0.9, "weight_decay": 0.0}


def _rule(update, symbol: str) -> UpdateRule:
    numbers = lambda state, options: (options["lr"], options["momentum"], options["weight_decay"])  # noqa: E731
    return UpdateRule(_init, update, _OPTIONS, Kernel(symbol, ("momentum_buffer",), numbers))


momentum = _rule(_momentum, "momentum")
heavy_ball = _rule(_heavy_ball, "heavy_ball")
nesterov = _rule(_nesterov, "nesterov")
