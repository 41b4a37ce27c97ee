"""Recurrences in programs that are exported: loops over time of free length, in place of kernels."""

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.ops.cells import Cell
from wonderland.ops.over_time import over_time
from wonderland.ops.steps import discretise, no_tokens, weighted_step


def exported_recurrence(
    kind: Cell,
    x: Tensor,
    weight_input: Tensor,
    weight_state: Tensor,
    bias: Tensor | None,
    state: tuple[Tensor, ...],
    extra: Tensor | None,
    lengths: Tensor | None,
    leak: float,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """`ops.recurrence` in a program that is exported, whose number of steps is free."""

    def step(state: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        new = kind.step(inputs[0], state, weight_state, extra, leak)
        return new, new[:1]

    (y,), last = over_time(step, state, (F.linear(x, weight_input, bias),), lengths)
    return y, last


def exported_linear_scan(a: Tensor, x: Tensor, state: Tensor | None, lengths: Tensor | None) -> Tensor:
    """`ops.linear_scan` in a program that is exported, whose number of steps is free; complex numbers are two real ones."""
    steady, rates, inputs = a.dim() == 1, _parts(a), _parts(x)
    start = tuple(torch.zeros_like(part[:, 0]) for part in inputs) if state is None else _parts(state)
    if lengths is not None:
        real = (torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(1)).unsqueeze(2)
        rates = (torch.where(real, rates[0], 1.0), *(torch.where(real, part, 0.0) for part in rates[1:]))
        inputs, steady = tuple(torch.where(real, part, 0.0) for part in inputs), False

    def step(h: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        x, rate = now[: len(h)], rates if steady else now[len(h) :]
        if len(h) == 1:
            new = (rate[0] * h[0] + x[0],)
        else:
            new = (rate[0] * h[0] - rate[1] * h[1] + x[0], rate[0] * h[1] + rate[1] * h[0] + x[1])
        return new, new

    states, _ = over_time(step, start, inputs if steady else (*inputs, *rates))
    return states[0] if len(states) == 1 else torch.complex(*states)


def _parts(x: Tensor) -> tuple[Tensor, ...]:
    """Real and imaginary part, or a real tensor as it is."""
    return tuple(part.clone() for part in torch.view_as_real(x).unbind(-1)) if x.is_complex() else (x,)


def exported_selective_scan(
    u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, skip: Tensor | None, gate: Tensor | None,
    state: Tensor | None, lengths: Tensor | None, rule: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`ops.selective_scan` in a program that is exported, whose number of steps is free."""
    rates = a.t()

    def step(states: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        u, length, b, c = inputs
        length = length.unsqueeze(1)
        # A weight that is expanded would be a view of free size, which a loop's body cannot have.
        decay, weight = (torch.exp(length * rates), length) if rule == "euler" else discretise(length, rates, rule)
        new = decay * states[0] + weight * u.unsqueeze(1) * b.unsqueeze(2)
        return (new,), ((new * c.unsqueeze(2)).sum(1),)

    first = u.new_zeros(u.shape[0], a.shape[1], u.shape[2]) if state is None else state
    (y,), (last,) = over_time(step, (first,), (u, F.softplus(delta), b, c), lengths)
    y = y if skip is None else y + skip * u
    y = y if gate is None else y * F.silu(gate)
    if lengths is not None:
        real = torch.arange(u.shape[1], device=u.device) < lengths.unsqueeze(1)
        y = torch.where(real.unsqueeze(2), y, torch.zeros_like(y))
    return y, last


def exported_wkv(
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    bonus: Tensor,
    state: tuple[Tensor, Tensor] | None,
    lengths: Tensor | None,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """`ops.wkv` in a program that is exported, whose number of steps is free."""

    def step(state: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        new, y = weighted_step(state, inputs[0], inputs[1], decay, bonus)
        return new, (y,)

    (a, b), o = no_tokens(k) if state is None else (state[0].unbind(1), state[1])
    (y,), (a, b, o) = over_time(step, (a, b, o), (k, v), lengths)
    return y, (torch.stack((a, b), 1), o)
