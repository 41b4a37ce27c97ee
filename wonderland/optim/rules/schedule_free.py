"""Schedule-free AdamW: an average of the iterates replaces the learning rate schedule, so no final step is needed."""

import torch
from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, State, UpdateRule


def _init(parameter: Tensor, options: Options) -> State:
    return {
        "step": 0,
        "peak": 0.0,
        "weight_sum": 0.0,
        "z": parameter.clone(),
        "exp_avg_sq": torch.zeros_like(parameter),
    }


def _rate(state: State, options: Options) -> float:
    """The learning rate of this step, with linear warmup."""
    return options["lr"] * min(1.0, state["step"] / max(1, options["warmup_steps"]))


def _advance(state: State, options: Options) -> None:
    state["step"] = state["step"] + 1
    state["peak"] = max(state["peak"], _rate(state, options))
    state["weight_sum"] = state["weight_sum"] + state["peak"] ** 2


def _average_weight(state: State) -> float:
    """The weight c_t of the newest iterate in the average."""
    return state["peak"] ** 2 / state["weight_sum"] if state["weight_sum"] else 0.0


def _update(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""Gradients are taken at y, between the iterate z and the average x; the parameter holds y.

    .. math::
        d_t = \frac{g_t}{\sqrt{\hat s_t} + \epsilon} + \lambda y_t, \qquad z_{t+1} = z_t - \eta_t d_t, \qquad
        x_{t+1} = (1 - c_t) x_t + c_t z_{t+1}, \qquad y_{t+1} = (1 - \beta_1) z_{t+1} + \beta_1 x_{t+1}

    with :math:`s_t` of Adam and :math:`c_t = \eta_{\max,t}^2 / \sum_i \eta_{\max,i}^2`. Only y and z are kept, as
    :math:`x = (y - (1 - \beta_1) z) / \beta_1`. Paper: Defazio et al., 2024.
    """
    state = dict(state)
    _advance(state, options)
    (first, second), lr, c = options["betas"], _rate(state, options), _average_weight(state)
    state["exp_avg_sq"] = second * state["exp_avg_sq"] + (1 - second) * gradient**2
    root = (state["exp_avg_sq"] / (1 - second ** state["step"])).sqrt() + options["eps"]
    direction = gradient / root + options["weight_decay"] * parameter
    step = c * (state["z"] - parameter) + lr * (first * (1 - c) - 1) * direction
    state["z"] = state["z"] - lr * direction
    return step, state


def _numbers(state: State, options: Options) -> tuple[float, ...]:
    (first, second), lr, c = options["betas"], _rate(state, options), _average_weight(state)
    scale = (1 - second ** state["step"]) ** 0.5
    return lr, options["weight_decay"], lr * (first * (1 - c) - 1), second, 1 - second, scale, options["eps"], c


schedule_free = UpdateRule(
    _init,
    _update,
    {"lr": 2.5e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, "warmup_steps": 0},
    Kernel("schedule_free", ("z", "exp_avg_sq"), _numbers, ("step", "peak", "weight_sum"), _advance),
)
