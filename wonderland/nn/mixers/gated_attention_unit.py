"""The gated attention unit: one head of attention without a softmax, inside a gated linear unit."""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.channel.activations import Activation, activation
from wonderland.nn.contract.mixer import Mixer, hide, positions
from wonderland.nn.contract.state import Layout, State
from wonderland.nn.mixers.cache import cache_layout, forget, remember, standing, visible
from wonderland.nn.positions import Position


@part
class GatedAttentionUnit(Mixer):
    r"""Attention and the MLP of a transformer in one layer, with a single weak head.

    .. math::
        U = \phi(X W_u), \quad V = \phi(X W_v), \quad Z = \phi(X W_z), \qquad
        q_i = \gamma_q \odot z_i + \beta_q, \quad k_i = \gamma_k \odot z_i + \beta_k

    .. math::
        A_{ij} = \frac{1}{n_i} \mathrm{relu}\!\left( \frac{q_i^\top k_j}{\sqrt{s}} + B_{ij} \right)^2, \qquad
        Y = (U \odot A V)\, W_o

    Queries and keys are two cheap images of one vector of `key_dim` = s numbers, the gate U takes the place of further heads,
    and a squared ReLU that of the softmax; :math:`n_i` is the number of tokens that i sees. `expand` times dim is the width
    of U and V. `position` is the spec of a `Position` that rotates or biases. A `Block` with it needs no channel mixer: two of
    these units have about the parameters of an attention and an MLP.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the cache of keys and values, key_dim + expand dim numbers for each token.
    Cost: t^2 (key_dim + expand dim) multiply-adds. Book: Alice 11.3. Paper: Hua et al., 2022 (FLASH).

    >>> mixer = GatedAttentionUnit(16, key_dim=8)
    >>> x = torch.randn(1, 5, 16)
    >>> head, state = mixer.stream(x[:, :3])
    >>> tail, state = mixer.stream(x[:, 3:], state)
    >>> torch.allclose(torch.cat([head, tail], 1), mixer(x), atol=1e-6)
    True
    """

    takes_specs = True
    alone = True
    weighs_unseen = True
    no_decay = frozenset({"gain", "shift"})

    def __init__(
        self,
        dim: int,
        *,
        key_dim: int = 128,
        expand: int = 2,
        causal: bool = True,
        gate: str | Activation = "silu",
        position: Spec | None = None,
        bias: bool = False,
    ):
        super().__init__()
        if min(key_dim, expand) < 1:
            raise WonderlandError(
                f"GatedAttentionUnit cannot be built with key_dim={key_dim}, expand={expand}: both are whole numbers from 1."
            )
        self.dim, self.key_dim, self.inner, self.causal = dim, key_dim, expand * dim, causal
        self.gate = activation(gate)
        self.position = None if position is None else _position(position, key_dim)
        self.inward = nn.Linear(dim, 2 * self.inner + key_dim, bias=bias)
        # Rows: queries, keys.
        self.gain = nn.Parameter(1 + 0.02 * torch.randn(2, key_dim))
        self.shift = nn.Parameter(torch.zeros(2, key_dim))
        self.outward = nn.Linear(self.inner, dim, bias=bias)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        whole = () if self.position is not None else (laws.permutation_equivariance,)
        return (*super().laws(), *((laws.strict_causality,) if self.causal else whole))

    def layout(self) -> Layout:
        return cache_layout(self.key_dim + self.inner)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        u, v, q, k = self._project(x, seen)
        entries, places = remember(state, torch.cat([k, v], -1), seen, mask, None)
        queries, keys = standing(entries, places, x.shape[1], seen, None)
        k, v = entries.split((self.key_dim, self.inner), -1)
        y = self.outward(u * (self._weights(q, k, queries, keys) @ v))
        return y, forget(entries, places, None) if self.causal else ()

    def maps(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "b 1 t t"]:
        """The attention weights, 0 or more; those of masked positions are 0. Rows do not sum to 1."""
        self.check(x, mask)
        _, _, q, k = self._project(hide(x, mask), None)
        places = torch.arange(x.shape[1], device=x.device).unsqueeze(0)
        keys = places if mask is None else places.masked_fill(~mask, -1)
        return hide(self._weights(q, k, places, keys), mask).unsqueeze(1)

    def _project(self, x: Tensor, seen: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The gate and the values, and queries and keys, rotated where the position does that."""
        u, v, z = self.gate(self.inward(x)).split((self.inner, self.inner, self.key_dim), -1)
        both = z.unsqueeze(2) * self.gain + self.shift
        if self.position is not None and self.position.kind == "rotate":
            both = self.position.rotate(both, positions(x, seen))
        return u, v, both[:, :, 0], both[:, :, 1]

    def _weights(self, q: Tensor, k: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """The weights of all pairs (b, q, k), of positions (b, q) and (b, k), -1 for what is not seen."""
        scores = q @ k.mT / math.sqrt(self.key_dim)
        if self.position is not None and self.position.kind == "bias":
            scores = scores + self.position.bias(queries, keys.clamp_min(0))[:, 0].to(scores.dtype)
        allowed = visible(queries, keys, self.causal, None)[:, 0]
        count = allowed.expand(*allowed.shape[:2], keys.shape[1]).sum(-1, keepdim=True)
        return torch.relu(scores).square().masked_fill(~allowed, 0) / count


def _position(spec: Spec, width: int) -> Position:
    built = spec.build(dim=width, heads=1) if isinstance(spec.part, type) and issubclass(spec.part, Position) else None
    if not isinstance(built, Position) or built.kind not in ("rotate", "bias"):
        raise WonderlandError(
            f"GatedAttentionUnit cannot use {spec.name} as its position: it takes one that rotates or biases "
            "(Rotary, Alibi, RelativeBias, RelativeBuckets)."
        )
    return built
