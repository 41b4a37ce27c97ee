"""RMSProp: AdaGrad with a moving average instead of a sum."""

import torch
from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, State, UpdateRule


def _init(parameter: Tensor, options: Options) -> State:
    return {"square_avg": torch.zeros_like(parameter)}


def _update(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""The learning rate divided by the root of a moving average of squared gradients.

    .. math::
        s_t = \gamma s_{t-1} + (1 - \gamma) g_t^2, \qquad
        x_t = x_{t-1} - \frac{\eta\,g_t}{\sqrt{s_t + \epsilon_0} + \epsilon}

    :math:`\gamma` is `alpha`, as in PyTorch, which has :math:`\epsilon` (`eps`) outside the root; D2L has it inside
    (`eps_root`, with `eps=0`). Book: D2L 12.8. Paper: Tieleman and Hinton, 2012.
    """
    alpha = options["alpha"]
    gradient = gradient + options["weight_decay"] * parameter
    square = alpha * state["square_avg"] + (1 - alpha) * gradient**2
    step = -options["lr"] * gradient / ((square + options["eps_root"]).sqrt() + options["eps"])
    return step, {"square_avg": square}


def _numbers(state: State, options: Options) -> tuple[float, ...]:
    alpha = options["alpha"]
    return options["lr"], options["weight_decay"], alpha, 1 - alpha, options["eps"], options["eps_root"]


rmsprop = UpdateRule(
    _init,
    _update,
    {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "eps_root": 0.0, "weight_decay": 0.0},
    Kernel("rmsprop", ("square_avg",), _numbers),
)
