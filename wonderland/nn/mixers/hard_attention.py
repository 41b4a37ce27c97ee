"""Hard attention: each token takes the value of the token with the highest score."""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.contract.mixer import Mixer, hide
from wonderland.nn.contract.state import Layout, State
from wonderland.nn.mixers.attend import head_sizes
from wonderland.nn.mixers.cache import cache_layout, forget, remember, standing, visible


@part
class HardAttention(Mixer):
    r"""A dictionary with vectors for keys: softmax becomes argmax.

    .. math::
        h_i = v_{j(i)}, \qquad j(i) = \arg\max_j q_i^\top k_j, \qquad y_i = W_o [h_i^1 \Vert \dots \Vert h_i^H]

    It is the limit of soft attention whose scores are scaled ever more. The choice has no derivative: queries and keys get
    gradient 0. With `straight_through=True` the backward pass pretends that the choice was the softmax, which trains them
    with a gradient that is not that of the function.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the cache of keys and values, 2 dim numbers for each token.
    Book: Alice 10.1. Paper: Xu et al., 2015; straight-through: Bengio et al., 2013.

    >>> HardAttention(16, heads=2)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    weighs_unseen = True

    def __init__(self, dim: int, *, heads: int | None = None, causal: bool = True, straight_through: bool = False):
        super().__init__()
        self.dim, self.causal, self.straight_through = dim, causal, straight_through
        self.heads, _, self.width, _ = head_sizes(type(self).__name__, dim, heads, None, None, None)
        self.project = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        kept = tuple(law for law in super().laws() if not (self.straight_through and law is laws.gradients))
        return (*kept, laws.strict_causality if self.causal else laws.permutation_equivariance)

    def layout(self) -> Layout:
        return cache_layout(2 * self.dim)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        q, new = self.project(x).split([self.dim, 2 * self.dim], -1)
        entries, places = remember(state, new, seen, mask, None)
        scores, v = self._scores(q, entries, places, seen)
        chosen = scores.argmax(-1, keepdim=True)
        if self.straight_through:
            soft = scores.softmax(-1)
            y = (torch.zeros_like(soft).scatter(-1, chosen, 1.0) + soft - soft.detach()) @ v
        else:
            y = v.gather(2, chosen.expand(-1, -1, -1, self.width))
        y = self.out(y.transpose(1, 2).flatten(2))
        return y, forget(entries, places, None) if self.causal else ()

    def maps(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "b heads t t"]:
        """The choices of every head: 1 for the token that is taken, 0 for the others and at masked positions."""
        self.check(x, mask)
        q, new = self.project(hide(x, mask)).split([self.dim, 2 * self.dim], -1)
        entries, places = remember(None, new, None, mask, None)
        scores, _ = self._scores(q, entries, places, None)
        choices = torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
        return choices if mask is None else choices.masked_fill(~mask[:, None, :, None], 0)

    def _scores(self, q: Tensor, entries: Tensor, places: Tensor, seen: Tensor | None) -> tuple[Tensor, Tensor]:
        """The scores of new tokens over the entries of the cache, and the values of the entries."""
        queries, keys = standing(entries, places, q.shape[1], seen, None)
        q, k, v = (self._split(part) for part in (q, entries[..., : self.dim], entries[..., self.dim :]))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.width)
        return scores.masked_fill(~visible(queries, keys, self.causal, None), -math.inf), v

    def _split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, self.width).transpose(1, 2)
