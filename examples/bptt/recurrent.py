"""A recurrent network with gates on the gradient through time."""

from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland import autodiff

STATE, LENGTH, DELAY = 4, 24, 5


@dataclass(frozen=True)
class Problem:
    """Weights (d, d), (d), (d), inputs (t) and targets (t): the input of five steps ago."""

    within: Tensor
    into: Tensor
    out: Tensor
    inputs: Tensor
    targets: Tensor


def problem(seed: int = 0) -> Problem:
    """A network with a long memory: its recurrent matrix is a slightly contracted rotation."""
    generator = torch.Generator().manual_seed(seed)
    normal = lambda *size: torch.randn(*size, dtype=torch.float64, generator=generator)  # noqa: E731
    turn = torch.linalg.qr(normal(STATE, STATE)).Q
    inputs = normal(LENGTH)
    return Problem(
        0.95 * turn,
        0.5 * normal(STATE),
        normal(STATE),
        inputs,
        inputs.roll(DELAY).index_fill(0, torch.arange(DELAY), 0),
    )


def loss(within: Tensor, gates: Tensor, given: Problem) -> Tensor:
    r"""The squared error of each of n copies of the network, with a gate on the gradient before each step.

    .. math::
        h_t = \tanh(W \, [\xi_t h_{t-1} + (1 - \xi_t) \operatorname{stop}(h_{t-1})] + u x_t), \qquad
        L = \frac{1}{2T} \sum_t (v^\top h_t - y_t)^2

    The gate changes no value, it multiplies the derivative by h_{t-1}: 1 lets all of it through, 0 nothing.
    Shapes: within (n, d, d), gates (n, t) -> (n). Book: D2L 9.7.
    """
    h = within.new_zeros(len(within), STATE)
    total = within.new_zeros(len(within))
    for t in range(LENGTH):
        gate = gates[:, t : t + 1]
        past = gate * h + (1 - gate) * autodiff.stop_gradient(h)
        h = torch.tanh((within @ past.unsqueeze(-1)).squeeze(-1) + given.into * given.inputs[t])
        total = total + (h @ given.out - given.targets[t]) ** 2
    return total / (2 * LENGTH)


def gradients(gates: Tensor, given: Problem) -> Tensor:
    """The derivative by the recurrent weights for each row of gates: (n, t) -> (n, d, d)."""
    copies = given.within.expand(len(gates), STATE, STATE).clone()
    return autodiff.grad(lambda within: loss(within, gates, given).sum())(copies)


def whole() -> Tensor:
    """Open gates, for the full gradient: (1, t)."""
    return torch.ones(1, LENGTH, dtype=torch.float64)


def regular(window: int) -> Tensor:
    """Gates that are closed at the beginning of each piece of `window` steps: (1, t)."""
    return (torch.arange(LENGTH) % window != 0).double().unsqueeze(0)


def at_random(count: int, keep: float, seed: int = 0) -> Tensor:
    r"""Gates that are closed at random, and scaled up when open so that the gradient is unbiased: (count, t).

    .. math:: P(\xi_t = 0) = 1 - \pi, \qquad P(\xi_t = \pi^{-1}) = \pi, \qquad E[\xi_t] = 1

    Every path back through time is weighted by a product of independent gates, whose mean is 1: no bias.
    Book: D2L 9.7.1. Paper: Tallec and Ollivier, 2017.
    """
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(count, LENGTH, dtype=torch.float64, generator=generator) < keep).double() / keep


def by_hand(given: Problem) -> Tensor:
    r"""The full gradient by the recursion of the book, without autodiff.

    .. math::
        \frac{\partial L}{\partial h_t} = \frac{1}{T}(o_t - y_t) v + W^\top \left[ (1 - h_{t+1}^2) \odot
        \frac{\partial L}{\partial h_{t+1}} \right], \qquad
        \frac{\partial L}{\partial W} = \sum_t \left[ (1 - h_t^2) \odot \frac{\partial L}{\partial h_t} \right] h_{t-1}^\top

    Book: D2L 9.7.2.
    """
    states = [given.within.new_zeros(STATE)]
    for x in given.inputs:
        states.append(torch.tanh(given.within @ states[-1] + given.into * x))
    gradient, total = given.within.new_zeros(STATE), torch.zeros_like(given.within)
    for t in range(LENGTH, 0, -1):
        gradient = gradient + (given.out @ states[t] - given.targets[t - 1]) * given.out / LENGTH
        inner = (1 - states[t] ** 2) * gradient
        total = total + torch.outer(inner, states[t - 1])
        gradient = given.within.T @ inner
    return total


def reach(given: Problem) -> Tensor:
    """How large the derivative of the last state by the state k steps before is, for k = 0, 1, ...: spectral norms."""
    states = [given.within.new_zeros(STATE)]
    for x in given.inputs:
        states.append(torch.tanh(given.within @ states[-1] + given.into * x))
    table, sizes = torch.eye(STATE, dtype=torch.float64), [1.0]
    for h in reversed(states[2:]):
        table = table @ ((1 - h**2)[:, None] * given.within)
        sizes.append(torch.linalg.matrix_norm(table, 2).item())
    return torch.tensor(sizes)
