"""The cells of nonlinear recurrences: what one token does to the state."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Step = Callable[[Tensor, tuple[Tensor, ...], Tensor, Tensor | None, float], tuple[Tensor, ...]]

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda x: x}
_KINDS = {"tanh": 0, "relu": 1, "identity": 2}


def _elman(activation: str) -> Step:
    def step(u: Tensor, state: tuple[Tensor, ...], weight: Tensor, extra: Tensor | None, leak: float):
        (h,) = state
        new = _ACTIVATIONS[activation](torch.addmm(u, h, weight.t()))
        return (new if leak == 1 else (1 - leak) * h + leak * new,)

    return step


def _lstm(u: Tensor, state: tuple[Tensor, ...], weight: Tensor, extra: Tensor | None, leak: float):
    h, c = state
    i, f, g, o = torch.addmm(u, h, weight.t()).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def _gru_after(u: Tensor, state: tuple[Tensor, ...], weight: Tensor, extra: Tensor | None, leak: float):
    (h,) = state
    assert extra is not None
    e = h.shape[-1]
    # Split and not sliced: slices of a loop's body do not export.
    (u_gates, u_new), (v_gates, v_new) = u.split((2 * e, e), -1), (h @ weight.t()).split((2 * e, e), -1)
    r, z = torch.sigmoid(u_gates + v_gates).chunk(2, -1)
    n = torch.tanh(u_new + r * (v_new + extra))
    return (torch.lerp(n, h, z),)


def _gru_before(u: Tensor, state: tuple[Tensor, ...], weight: Tensor, extra: Tensor | None, leak: float):
    (h,) = state
    e = h.shape[-1]
    (u_gates, u_new), (gates, new) = u.split((2 * e, e), -1), weight.split((2 * e, e))
    r, z = torch.sigmoid(torch.addmm(u_gates, h, gates.t())).chunk(2, -1)
    n = torch.tanh(torch.addmm(u_new, r * h, new.t()))
    return (torch.lerp(n, h, z),)


def _ligru(activation: str) -> Step:
    def step(u: Tensor, state: tuple[Tensor, ...], weight: Tensor, extra: Tensor | None, leak: float):
        (h,) = state
        gate, new = torch.addmm(u, h, weight.t()).chunk(2, -1)
        return (torch.lerp(h, _ACTIVATIONS[activation](new), torch.sigmoid(gate)),)

    return step


@dataclass(frozen=True)
class Cell:
    """One kind of recurrence: its equation, and how many blocks of units its weights and gradients have."""

    step: Step
    kernel: str
    gates: int
    gradients: int
    kind: int = 0
    keeps: bool = False
    states: int = 1


CELLS: dict[str, Cell] = {
    "lstm": Cell(_lstm, "lstm", 4, 4, keeps=True, states=2),
    "gru_after": Cell(_gru_after, "gru", 3, 4, keeps=True),
    "gru_before": Cell(_gru_before, "gru_before", 3, 3),
    **{f"rnn_{name}": Cell(_elman(name), "rnn", 1, 1, kind) for name, kind in _KINDS.items()},
    **{f"ligru_{name}": Cell(_ligru(name), "ligru", 2, 2, kind) for name, kind in _KINDS.items()},
}
