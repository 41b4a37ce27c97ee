"""Adam (weight decay as L2 penalty), AdamW (decoupled weight decay) and Yogi."""

import math

import torch
from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, State, UpdateRule, increment_step


def _init(parameter: Tensor, options: Options) -> State:
    first = torch.zeros_like(parameter)
    return {
        "step": 0,
        "exp_avg": first,
        "exp_avg_sq": torch.full_like(parameter, options.get("initial_accumulator_value", 0.0)),
    }


def _scaled(state: State, options: Options) -> Tensor:
    """The first moment divided by the root of the second, both with bias correction."""
    (first, second), t = options["betas"], state["step"]
    mean, square = state["exp_avg"] / (1 - first**t), state["exp_avg_sq"] / (1 - second**t)
    return mean / (square.sqrt() + options["eps"])


def _moments(gradient: Tensor, state: State, options: Options) -> State:
    first, second = options["betas"]
    return {
        "step": state["step"] + 1,
        "exp_avg": first * state["exp_avg"] + (1 - first) * gradient,
        "exp_avg_sq": second * state["exp_avg_sq"] + (1 - second) * gradient**2,
    }


def _adam(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""Adam; its `weight_decay` is the L2 penalty, which joins the gradient and is scaled with it.

    .. math::
        g_t \leftarrow g_t + \lambda x_{t-1}, \qquad
        v_t = \beta_1 v_{t-1} + (1 - \beta_1) g_t, \qquad s_t = \beta_2 s_{t-1} + (1 - \beta_2) g_t^2

        x_t = x_{t-1} - \eta\,\frac{\hat v_t}{\sqrt{\hat s_t} + \epsilon}, \qquad
        \hat v_t = \frac{v_t}{1 - \beta_1^t}, \quad \hat s_t = \frac{s_t}{1 - \beta_2^t}

    Book: Alice 2.3.2; D2L 12.10. Paper: Kingma and Ba, 2015.
    """
    state = _moments(gradient + options["weight_decay"] * parameter, state, options)
    return -options["lr"] * _scaled(state, options), state


def _adamw(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""Adam with decoupled weight decay: it does not enter the moments.

    .. math:: x_t = x_{t-1} - \eta\,\Bigl(\frac{\hat v_t}{\sqrt{\hat s_t} + \epsilon} + \lambda x_{t-1}\Bigr)

    with the moments of Adam. Book: D2L 12.10. Paper: Loshchilov and Hutter, 2019.
    """
    state = _moments(gradient, state, options)
    return -options["lr"] * (_scaled(state, options) + options["weight_decay"] * parameter), state


def _yogi(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""Adam whose second moment changes by the squared gradient, not by its difference to it, so it decreases slowly.

    .. math:: s_t = s_{t-1} + (1 - \beta_2)\, g_t^2 \odot \operatorname{sign}(g_t^2 - s_{t-1})

    The rest as in Adam, bias correction included, the L2 penalty in the gradient; :math:`s_0` is `initial_accumulator_value`.
    Book: D2L 12.10. Paper: Zaheer et al., 2018.
    """
    gradient = gradient + options["weight_decay"] * parameter
    after, before, square = _moments(gradient, state, options), state["exp_avg_sq"], gradient**2
    after["exp_avg_sq"] = before + (1 - options["betas"][1]) * square * torch.sign(square - before)
    return -options["lr"] * _scaled(after, options), after


def _numbers(state: State, options: Options) -> tuple[float, ...]:
    (first, second), t, lr = options["betas"], state["step"], options["lr"]
    scale = math.sqrt(1 - second**t)
    return lr / (1 - first**t), options["weight_decay"], 1 - first, second, 1 - second, scale, options["eps"], lr


def _rule(update, symbol: str, options: Options) -> UpdateRule:
    return UpdateRule(
        _init, update, options, Kernel(symbol, ("exp_avg", "exp_avg_sq"), _numbers, ("step",), increment_step)
    )


_OPTIONS = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8}
adam = _rule(_adam, "adam", {**_OPTIONS, "weight_decay": 0.0})
adamw = _rule(_adamw, "adamw", {**_OPTIONS, "weight_decay": 1e-2})
yogi = _rule(
    _yogi,
    "yogi",
    {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-3, "weight_decay": 0.0, "initial_accumulator_value": 1e-6},
)
