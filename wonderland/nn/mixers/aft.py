"""The attention-free transformer: each channel averages its values with weights of its own, no queries times keys."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from wonderland.core import WonderlandError, nearest, part
from wonderland.nn.contract.mixer import Mixer, lengths
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.nn.mixers.cache import cache_layout, forget, remember, standing, visible
from wonderland.ops.shapes import readable
from wonderland.ops.steps import EMPTY, empty
from wonderland.ops.wkv import wkv

FORMS = ("simple", "local", "full")
AT_ONCE = 1 << 22  # weights held at once: rows of queries are taken in pieces of this size


@part
class AFT(Mixer):
    r"""Attention-free transformer (the book writes ATF): an average over tokens in every channel, opened by a gate.

    .. math::
        y_i = W_o \Big( \sigma(q_i) \odot \frac{\sum_j e^{k_j + w_{ij}} \odot v_j}{\sum_j e^{k_j + w_{ij}}} \Big)

    `form` says what :math:`w` is: `simple`, 0 everywhere, and the past fits into two sums; `local`, trained where
    :math:`|i - j| <` `window` and 0 beyond; `full`, trained everywhere. The latter two are made for sequences of up to
    `length` tokens and cost time quadratic in t; `rank` writes :math:`w = U V^\top` with that many columns. With `causal`
    (default) the sums run over :math:`j \le i`.

    Shapes: x (b, t, dim) -> (b, t, dim); state of `simple`: two sums (b, 2, dim) and their scale (b, dim), constant in t;
    else keys and values (b, t, 2 dim). Book: Alice 13.4.1. Paper: Zhai et al., 2021.

    >>> mixer = AFT(dim=16)
    >>> mixer(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        dim: int,
        *,
        form: str = "simple",
        causal: bool = True,
        length: int = 256,
        window: int = 32,
        rank: int | None = None,
    ):
        super().__init__()
        if form not in FORMS:
            raise WonderlandError(f"AFT has the forms {', '.join(FORMS)}, not {form!r}.{nearest(form, FORMS)}")
        if min(dim, length, window, 1 if rank is None else rank) < 1:
            raise WonderlandError(
                f"AFT cannot be built with dim={dim}, length={length}, window={window}, rank={rank}: each is at least 1."
            )
        self.dim, self.form, self.causal, self.length, self.window = dim, form, causal, length, window
        self.weighs_unseen = form != "simple"
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.bias = self.left = self.right = None
        if form != "simple" and rank is None:
            self.bias = nn.Parameter(torch.randn(length, length) * 0.02)
        elif form != "simple" and rank is not None:
            self.left = nn.Parameter(torch.randn(length, rank) * 0.1)
            self.right = nn.Parameter(torch.randn(length, rank) * 0.1)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        if self.causal:
            return (*super().laws(), laws.strict_causality)
        return (*super().laws(), laws.permutation_equivariance) if self.form == "simple" else super().laws()

    def layout(self) -> Layout:
        if self.form == "simple":
            return Slot((2, self.dim)), Slot((self.dim,), fill=EMPTY)
        return cache_layout(2 * self.dim)

    def check(self, x: Tensor, mask: Tensor | None) -> None:
        super().check(x, mask)
        self.check_length(x)

    def check_length(self, x: Tensor) -> None:
        """Say so when a sequence, or a piece of one, has more positions than were built."""
        if self.form != "simple" and x.shape[1] > self.length:
            raise WonderlandError(
                f"This AFT knows positions up to {self.length} and the sequence has {x.shape[1]}: build it with a larger length."
            )

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        q, k, v = self.qkv(x).chunk(3, 2)
        if self.form != "simple":
            average, state = self.weighted(k, v, state, seen, mask)
            state = state if self.causal else ()
        elif self.causal:
            still = k.new_zeros(self.dim)
            past = None if state is None else (state[0], state[1])
            average, state = wkv(k, v, still, still, state=past, lengths=None if mask is None else lengths(mask))
        else:
            k = k if mask is None else k.masked_fill(~mask.unsqueeze(2), empty(k.dtype))
            average, state = (torch.softmax(k, 1) * v).sum(1, keepdim=True), ()
        return self.out(torch.sigmoid(q) * average), state

    def weighted(
        self, k: Tensor, v: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, State]:
        """Averages with trained weights for pairs of positions, over the cache and the new tokens."""
        self.check_length(k)
        entries, places = remember(state, torch.cat([k, v], 2), seen, mask, None)
        queries, keys = standing(entries, places, k.shape[1], seen, None)
        if seen is not None and readable(queries) and int(queries.max()) >= self.length:
            raise WonderlandError(
                f"This AFT knows positions up to {self.length} and the stream has come to {int(queries.max()) + 1}: "
                "build it with a larger length."
            )
        shown = visible(queries, keys, self.causal, None).squeeze(1)
        pair = self.pairs(queries, keys.clamp(min=0)).masked_fill(~shown, -torch.inf)
        k, v = entries.chunk(2, 2)
        rows = max(1, AT_ONCE // max(1, k.numel()))
        pieces = [pair] if rows >= pair.shape[1] else pair.split(rows, 1)
        if len(pieces) == 1:
            averages = [_average(k, v, pair)]
        else:
            averages = [checkpoint(_average, k, v, piece, use_reentrant=False) for piece in pieces]
        return torch.cat(averages, 1), forget(entries, places, None)

    def pairs(self, queries: Tensor, keys: Tensor) -> Tensor:
        """w for each pair of positions: (b, q), (b, k) -> (b, q, k)."""
        queries = queries.clamp(max=self.length - 1)
        if self.bias is not None:
            weights = self.bias[queries.unsqueeze(2), keys.unsqueeze(1)]
        else:
            assert self.left is not None
            assert self.right is not None
            weights = self.left[queries] @ self.right[keys].transpose(1, 2)
        if self.form == "local":
            near = (queries.unsqueeze(2) - keys.unsqueeze(1)).abs() < self.window
            weights = torch.where(near, weights, torch.zeros_like(weights))
        return weights


def _average(k: Tensor, v: Tensor, pair: Tensor) -> Tensor:
    """(b, n, d), (b, n, d), (b, q, n) -> (b, q, d): a softmax over tokens in every channel."""
    weights = torch.softmax(k.unsqueeze(1) + pair.unsqueeze(3), 2)
    return (weights * v.unsqueeze(1)).sum(2)
