"""Linear attention in chunks: matrix products within a chunk, one running matrix from chunk to chunk."""

from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.ops import native, shapes
from wonderland.ops.over_time import is_exporting

STEPS = 64

Keys = Float[Tensor, "b h t k"]
Values = Float[Tensor, "b h t v"]
Matrix = Float[Tensor, "b h k v"]


def linear_attention(q: Keys, k: Keys, v: Values, state: Matrix | None = None) -> tuple[Values, Matrix]:
    r"""Sums over the past, weighted by the products of queries and keys, and the matrix after the last position.

    .. math::
        y_i = q_i^\top S_i, \qquad S_i = S_{i-1} + k_i v_i^\top

    Nothing is normalised: a column of ones in v brings the denominator along. The backward pass is three such sums again, so
    only the inputs are kept. Time is linear in t. Book: Alice 13.1. Paper: Katharopoulos et al., 2020.
    """
    shapes.agree("linear_attention", q=(q, "b h t k"), k=(k, "b h t k"), v=(v, "b h t v"), state=(state, "b h k v ?"))
    shapes.real("linear_attention", q=q, k=k, v=v)
    first = q.new_zeros(*q.shape[:2], q.shape[3], v.shape[3]) if state is None else state
    q, k, v, first = native.common_dtype(q, k, v, first)
    if is_exporting():  # chunks would fix the number of steps
        return (q @ k.transpose(2, 3)).tril() @ v + q @ first, first + k.transpose(2, 3) @ v
    if native.is_transformed():
        return reference(q, k, v, first)
    if q.shape[2] == 1:
        first = first + k.transpose(2, 3) * v
        return q @ first, first
    return cast("tuple[Tensor, Tensor]", _Sums.apply(q, k, v, first))


def reference(q: Tensor, k: Tensor, v: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The equation, one token after the other."""
    s = q.new_zeros(*q.shape[:2], q.shape[3], v.shape[3]) if state is None else state
    outputs = []
    for i in range(q.shape[2]):
        s = s + k[:, :, i, :, None] * v[:, :, i, None, :]
        outputs.append((q[:, :, i, None] @ s).squeeze(2))
    return torch.stack(outputs, 2), s


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(q, k, v, state)
        return _chunked(q, k, v, state)

    @staticmethod
    def backward(ctx, dy, dlast):  # pyright: ignore[reportIncompatibleMethodOverride]
        q, k, v, state = ctx.saved_tensors
        dq, _ = _chunked(dy, v, k, state.transpose(2, 3))
        dk, _ = _chunked(v, dy, q, dlast.transpose(2, 3), reverse=True)
        dv, dstate = _chunked(k, q, dy, dlast, reverse=True)
        return dq, dk, dv, dstate


def _chunked(q: Tensor, k: Tensor, v: Tensor, state: Tensor, reverse: bool = False) -> tuple[Tensor, Tensor]:
    """Sums over positions up to each one, or from each one on; the matrix after all of them."""
    t = q.shape[2]
    steps = min(STEPS, t)
    chunks = -(-t // steps)

    def fold(x: Tensor) -> Tensor:
        x = F.pad(x, (0, 0, 0, chunks * steps - t)) if chunks * steps != t else x
        return x.reshape(*x.shape[:2], chunks, steps, x.shape[3])

    q, k, v = fold(q), fold(k), fold(v)
    scores = q @ k.transpose(3, 4)
    y = (scores.triu() if reverse else scores.tril()) @ v
    if chunks == 1:
        return (y + q @ state.unsqueeze(2)).squeeze(2), state + (k.transpose(3, 4) @ v).squeeze(2)
    adds = k.transpose(3, 4) @ v
    # Sums over the other chunks, never one's own added and taken away again: what comes later must not even round.
    if reverse:
        others = F.pad(adds[:, :, 1:].flip(2).cumsum(2).flip(2), (0, 0, 0, 0, 0, 1))
    else:
        others = F.pad(adds[:, :, :-1].cumsum(2), (0, 0, 0, 0, 1, 0))
    total = state + adds.sum(2)
    y = y + q @ (state.unsqueeze(2) + others)
    return y.reshape(*y.shape[:2], chunks * steps, -1)[:, :, :t], total
