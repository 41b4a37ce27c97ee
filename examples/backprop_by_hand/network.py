"""A network with one hidden layer: its objective, and the gradients of it worked out on paper."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Known:
    """A function and its derivative."""

    function: Callable[..., Tensor]
    derivative: Callable[..., Tensor]


ACTIVATIONS = {
    "tanh": Known(torch.tanh, lambda z: 1 - torch.tanh(z) ** 2),
    "sigmoid": Known(torch.sigmoid, lambda z: torch.sigmoid(z) * (1 - torch.sigmoid(z))),
    "relu": Known(torch.relu, lambda z: (z > 0).to(z.dtype)),
}


def _squared(o: Tensor, y: Tensor) -> Tensor:
    return ((o - y) ** 2).sum(1).mean() / 2


def _cross_entropy(o: Tensor, y: Tensor) -> Tensor:
    return (torch.logsumexp(o, 1) - (o * y).sum(1)).mean()


LOSSES = {
    "squared": Known(_squared, lambda o, y: (o - y) / len(o)),
    "cross-entropy": Known(_cross_entropy, lambda o, y: (torch.softmax(o, 1) - y) / len(o)),
}


def objective(w1: Tensor, w2: Tensor, x: Tensor, y: Tensor, decay: float, activation: str, loss: str) -> Tensor:
    r"""The regularised loss of a batch.

    .. math::
        z = W_1 x, \quad h = \phi(z), \quad o = W_2 h, \quad
        J = L(o, y) + \tfrac{\lambda}{2} \left( \|W_1\|^2 + \|W_2\|^2 \right)

    Shapes: x (n, d), w1 (h, d), w2 (q, h), y (n, q). Book: D2L 5.3.1.
    """
    o = ACTIVATIONS[activation].function(x @ w1.T) @ w2.T
    return LOSSES[loss].function(o, y) + decay / 2 * ((w1**2).sum() + (w2**2).sum())


def by_hand(
    w1: Tensor, w2: Tensor, x: Tensor, y: Tensor, decay: float, activation: str, loss: str
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The gradients of the objective by both weights and by the inputs, in the order of the backward pass.

    .. math::
        \partial_o J &= \partial_o L \\
        \partial_{W_2} J &= (\partial_o J)\, h^\top + \lambda W_2 \\
        \partial_h J &= W_2^\top\, \partial_o J \\
        \partial_z J &= \partial_h J \odot \phi'(z) \\
        \partial_{W_1} J &= (\partial_z J)\, x^\top + \lambda W_1 \\
        \partial_x J &= W_1^\top\, \partial_z J

    Book: D2L 5.3.3; Alice 6.4.1 (E.6.10, E.6.11, and E.6.9 as it should read).
    """
    z = x @ w1.T
    h = ACTIVATIONS[activation].function(z)
    o = h @ w2.T
    grad_o = LOSSES[loss].derivative(o, y)
    grad_w2 = grad_o.T @ h + decay * w2
    grad_h = grad_o @ w2
    grad_z = grad_h * ACTIVATIONS[activation].derivative(z)
    grad_w1 = grad_z.T @ x + decay * w1
    grad_x = grad_z @ w1
    return grad_w1, grad_w2, grad_x
