"""AdaGrad: a learning rate for each coordinate, smaller where gradients were large."""

import torch
from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, State, UpdateRule, increment_step


def _init(parameter: Tensor, options: Options) -> State:
    return {"step": 0, "sum": torch.full_like(parameter, options["initial_accumulator_value"])}


def _rate(state: State, options: Options) -> float:
    return options["lr"] / (1 + (state["step"] - 1) * options["lr_decay"])


def _update(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""The learning rate divided by the root of the sum of all squared gradients so far.

    .. math:: s_t = s_{t-1} + g_t^2, \qquad x_t = x_{t-1} - \frac{\eta_t\,g_t}{\sqrt{s_t + \epsilon_0} + \epsilon}

    PyTorch has :math:`\epsilon` (`eps`) outside the root, D2L inside (`eps_root`, with `eps=0`).
    Book: D2L 12.7. Paper: Duchi et al., 2011.
    """
    state = {**state, "step": state["step"] + 1}
    gradient = gradient + options["weight_decay"] * parameter
    state["sum"] = state["sum"] + gradient**2
    return -_rate(state, options) * gradient / ((state["sum"] + options["eps_root"]).sqrt() + options["eps"]), state


def _numbers(state: State, options: Options) -> tuple[float, ...]:
    return _rate(state, options), options["weight_decay"], options["eps"], options["eps_root"]


adagrad = UpdateRule(
    _init,
    _update,
    {
        "lr": 1e-2,
        "lr_decay": 0.0,
        "weight_decay": 0.0,
        "initial_accumulator_value": 0.0,
        "eps": 1e-10,
        "eps_root": 0.0,
    },
    Kernel("adagrad", ("sum",), _numbers, ("step",), increment_step),
)
