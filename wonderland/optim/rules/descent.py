"""Gradient descent: a step against the gradient, of all examples or of a mini-batch."""

from torch import Tensor

from wonderland.optim.rules.rule import Kernel, Options, State, UpdateRule


def _init(parameter: Tensor, options: Options) -> State:
    return {}


def _update(gradient: Tensor, state: State, parameter: Tensor, options: Options) -> tuple[Tensor, State]:
    r"""A step against the gradient, with L2 penalty.

    .. math:: x_t = x_{t-1} - \eta\,(g_t + \lambda x_{t-1})

    With the gradient of all examples this is gradient descent, with that of some of them it is SGD: one rule.
    Book: Alice 2.3 (definition 2.8); D2L 12.3 to 12.5.
    """
    return -options["lr"] * (gradient + options["weight_decay"] * parameter), state


sgd = UpdateRule(
    _init,
    _update,
    {"lr": 1e-3, "weight_decay": 0.0},
    Kernel("sgd", (), lambda state, options: (options["lr"], options["weight_decay"])),
)
