"""Additive attention: a small network scores each pair of query and key, whatever their widths."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.cross_mixer import CrossMixer
from wonderland.nn.contract.mixer import Mixer, hide
from wonderland.nn.contract.state import TIME, Layout, Slot, State
from wonderland.nn.mixers.cache import cache_layout, forget, remember, standing, visible
from wonderland.ops.softmax import masked_softmax


@part
class AdditiveAttention(CrossMixer):
    r"""Attention as in the first translators: the score is a network with one hidden layer, the values are the context.

    .. math::
        a(q, k) = w^\top \tanh(W_q q + W_k k), \qquad c_i = \sum_j \mathrm{softmax}_j\, a(x_i, z_j)\, z_j

    The context vector c is projected to dim where the context has another width, and is the output where it has not.

    - `context_dim`: width of the context, dim unless given. `hidden`: width of the scoring network, dim unless given.

    Shapes: x (b, t, dim), context (b, m, context_dim) -> (b, t, dim); memory grows with t m hidden.
    Book: D2L 11.3, 11.4. Paper: Bahdanau et al., 2015.

    >>> AdditiveAttention(16, context_dim=6)(torch.randn(1, 5, 16), torch.randn(1, 9, 6)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, dim: int, *, context_dim: int | None = None, hidden: int | None = None):
        super().__init__()
        context_dim, hidden = dim if context_dim is None else context_dim, dim if hidden is None else hidden
        if min(dim, context_dim, hidden) < 1:
            raise WonderlandError(
                f"AdditiveAttention cannot be built with dim={dim}, context_dim={context_dim}, hidden={hidden}: "
                "all are whole numbers from 1."
            )
        self.dim, self.context_dim = dim, context_dim
        self.query = nn.Linear(dim, hidden, bias=False)
        self.key = nn.Linear(context_dim, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.out = nn.Linear(context_dim, dim, bias=False) if context_dim != dim else None

    def state_layout(self) -> Layout:
        return (
            Slot((TIME, self.query.out_features)),
            Slot((TIME, self.context_dim)),
            Slot((TIME,), dtype=torch.bool),
        )

    def read(self, context: Tensor, mask: Tensor | None) -> State:
        everything = torch.ones(context.shape[:2], dtype=torch.bool, device=context.device)
        return self.key(context), context, everything if mask is None else mask

    def answer(self, x: Tensor, state: State) -> Tensor:
        y = self.weights(x, state)[:, 0] @ state[1]
        return y if self.out is None else self.out(y)

    def weights(self, x: Tensor, state: State) -> Float[Tensor, "b 1 t m"]:
        """The attention weights over a prepared context."""
        keys, _, mask = state
        scores = additive_scores(self.query(x), keys, self.score.weight[0])
        return masked_softmax(scores, mask.unsqueeze(1).expand_as(scores)).unsqueeze(1)


@part
class AdditiveSelfAttention(Mixer):
    r"""Additive scores between the tokens of one sequence; the values are the tokens themselves, projected at the end.

    .. math::
        y_i = W_o \sum_j \mathrm{softmax}_j\!\left(w^\top \tanh(W_q x_i + W_k x_j)\right) x_j

    Shapes: x (b, t, dim) -> (b, t, dim); state: hidden + dim numbers for each token; memory grows with t^2 hidden.
    Book: D2L 11.3. Paper: Bahdanau et al., 2015; Cheng et al., 2016.

    >>> AdditiveSelfAttention(16)(torch.randn(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    weighs_unseen = True

    def __init__(self, dim: int, *, hidden: int | None = None, causal: bool = True):
        super().__init__()
        hidden = dim if hidden is None else hidden
        if min(dim, hidden) < 1:
            raise WonderlandError(
                f"AdditiveSelfAttention cannot be built with dim={dim}, hidden={hidden}: both are whole numbers from 1."
            )
        self.dim, self.hidden, self.causal = dim, hidden, causal
        self.query = nn.Linear(dim, hidden, bias=False)
        self.key = nn.Linear(dim, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        return (*super().laws(), laws.strict_causality if self.causal else laws.permutation_equivariance)

    def layout(self) -> Layout:
        return cache_layout(self.hidden + self.dim)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        entries, places = remember(state, torch.cat([self.key(x), x], -1), seen, mask, None)
        y = self.out(self._weights(x, entries, places, seen) @ entries[..., self.hidden :])
        return y, forget(entries, places, None) if self.causal else ()

    def maps(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "b 1 t t"]:
        """The attention weights; rows sum to 1, those of masked positions to 0."""
        self.check(x, mask)
        x = hide(x, mask)
        entries, places = remember(None, torch.cat([self.key(x), x], -1), None, mask, None)
        return hide(self._weights(x, entries, places, None), mask).unsqueeze(1)

    def _weights(self, x: Tensor, entries: Tensor, places: Tensor, seen: Tensor | None) -> Tensor:
        """The weights of each new token over the entries of the cache: (b, t, n)."""
        queries, keys = standing(entries, places, x.shape[1], seen, None)
        scores = additive_scores(self.query(x), entries[..., : self.hidden], self.score.weight[0])
        return scores.masked_fill(~visible(queries, keys, self.causal, None)[:, 0], -torch.inf).softmax(-1)


def additive_scores(
    queries: Float[Tensor, "b t hidden"], keys: Float[Tensor, "b m hidden"], weight: Float[Tensor, "hidden"]
) -> Float[Tensor, "b t m"]:
    """The score of every pair of a projected query and a projected key: w . tanh(q + k)."""
    return F.linear((queries.unsqueeze(2) + keys.unsqueeze(1)).tanh(), weight.unsqueeze(0)).squeeze(-1)
