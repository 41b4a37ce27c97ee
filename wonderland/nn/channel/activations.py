"""Activations: functions of one number, named so that a saved model can say which it uses."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import WonderlandError, nearest, part
from wonderland.ops.gelu import gelu as _gelu
from wonderland.ops.squared_relu import squared_relu as _squared_relu

Activation = Callable[[Tensor], Tensor]


@part
def identity(x: Tensor) -> Tensor:
    """x, unchanged: a bilinear gate, a linear network."""
    return x


@part
def relu(x: Tensor) -> Tensor:
    """max(x, 0). Book: Alice 5.3."""
    return F.relu(x)


@part
def leaky_relu(x: Tensor) -> Tensor:
    """x where positive, else x / 100: no unit dies. Book: Alice 5.4."""
    return F.leaky_relu(x)


@part
def squared_relu(x: Tensor) -> Tensor:
    """max(x, 0) squared. Paper: So et al., 2021; RWKV's channel mixer."""
    return _squared_relu(x)


@part
def gelu(x: Tensor) -> Tensor:
    """x times the Gaussian distribution function of x, exactly. Book: Alice 5.4. Paper: Hendrycks and Gimpel, 2016."""
    return _gelu(x)


@part
def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by its formula with a tanh, as GPT-2 was trained."""
    return _gelu(x, tanh=True)


@part
def quick_gelu(x: Tensor) -> Tensor:
    """x sigmoid(1.702 x): GELU in one step. Paper: Hendrycks and Gimpel, 2016."""
    return x * torch.sigmoid(1.702 * x)


@part
def mish(x: Tensor) -> Tensor:
    """x tanh(softplus(x)). Paper: Misra, 2019."""
    return F.mish(x)


@part
def relu6(x: Tensor) -> Tensor:
    """max(x, 0), at most 6."""
    return F.relu6(x)


@part
def hard_swish(x: Tensor) -> Tensor:
    """x times a line that is 0 at -3 and 1 at 3, clipped: swish for small devices. Paper: Howard et al., 2019."""
    return F.hardswish(x)


@part
def silu(x: Tensor) -> Tensor:
    """x sigmoid(x), also called swish. Book: Alice 5.4."""
    return F.silu(x)


@part
def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent. Book: Alice 5.3."""
    return torch.tanh(x)


@part
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)). Book: Alice 5.3."""
    return torch.sigmoid(x)


@part
def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), a smooth rectifier. Book: Alice 5.4."""
    return F.softplus(x)


@part
def elu(x: Tensor) -> Tensor:
    """x where positive, else exp(x) - 1. Book: Alice 5.4."""
    return F.elu(x)


@part
def elu_plus_one(x: Tensor) -> Tensor:
    """ELU lifted above 0: the usual feature map of linear attention. Book: Alice 13.1."""
    return F.elu(x) + 1


ACTIVATIONS: dict[str, Activation] = {
    function.__name__: function
    for function in (
        identity, relu, leaky_relu, squared_relu, gelu, gelu_tanh, quick_gelu, mish, relu6, hard_swish, silu,
        tanh, sigmoid, softplus, elu, elu_plus_one,
    )
}  # fmt: skip


def name_of(function: Any) -> str:
    """The name of one of these functions; "" for any other, whatever it is called.

    >>> name_of(gelu), name_of(F.gelu)
    ('gelu', '')
    """
    name = getattr(function, "__name__", "")
    return name if ACTIVATIONS.get(name) is function else ""


def activation(choice: Any) -> Activation:
    """The function behind a name; a function is returned as it is.

    >>> activation("relu")(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    function: Any = choice
    if callable(function) and not isinstance(function, type):
        return function  # pyright: ignore[reportReturnType]
    if not isinstance(choice, str) or choice not in ACTIVATIONS:
        raise WonderlandError(
            f"There is no activation {choice!r}.{nearest(str(choice), ACTIVATIONS)} "
            f"The choices are {', '.join(ACTIVATIONS)}, or a function."
        )
    return ACTIVATIONS[choice]
