"""Self-attention: each token takes a mean of the values of all tokens, weighted by the softmax of query-key products."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.contract.mixer import Mixer, Pointwise, hide, positions
from wonderland.nn.contract.state import Layout, State
from wonderland.nn.mixers.attend import attend, head_sizes
from wonderland.nn.mixers.cache import cache_layout, forget, remember, standing, visible
from wonderland.nn.positions import Position
from wonderland.ops.short_attention import short_attention
from wonderland.ops.softmax import masked_softmax


@part
class Attention(Mixer):
    r"""Multi-head self-attention: causal or not, with grouped keys and values, sliding windows, and any positions.

    .. math::
        q_i = W_q x_i, \quad k_j = W_k x_j, \quad v_j = W_v x_j, \qquad
        h_i = \sum_j \mathrm{softmax}_j\!\left(\frac{q_i^\top k_j}{\sqrt{k}} + B_{ij}\right) v_j, \qquad
        y_i = W_o [h_i^1 \Vert \dots \Vert h_i^H]

    - `heads`: 4, or the largest smaller number that divides dim, unless given.
    - `kv_heads`: heads for keys and values; `heads` of them is plain attention, 1 is multi-query, between is grouped-query.
    - `key_dim`, `value_dim`: width of one head, dim / heads unless given.
    - `causal`: a token sees itself and those before it; else all of them.
    - `window`: a token sees only those less than `window` places away (itself included).
    - `position`: a spec of a `Position` that rotates or biases: `Rotary.spec()`, `Alibi.spec()`, `RelativeBias.spec()`.
    - `scale`: what scores are multiplied with, 1 / sqrt(key_dim) unless given.
    - `dropout`: the chance that a weight is left out in training. `bias`: whether projections have one; `out_bias` is for
      the last of them, W_o, where it differs.
    - `qk_norm`: the spec of a norm of queries and keys, before they are rotated: :math:`q_i = \mathrm{norm}(W_q x_i)`. With
      `qk_norm_over="head"` each head is normalised alone (Qwen3), with "all" all heads together (OLMo 2).
    - `softcap`: the bound c of scores, :math:`s \leftarrow c \tanh(s / c)`, None for no bound (Gemma 2).

    Projections are fused: `project` holds the rows of queries, keys and values, in this order, head after head.

    Shapes: x (b, t, dim) -> (b, t, dim); state: the cache of keys and values, kv_heads (key_dim + value_dim) numbers for
    each token (with a window, for the last window - 1), and the places of its entries.
    Cost: t^2 heads (key_dim + value_dim) multiply-adds; with a causal window, at most 2 t window heads (key_dim + value_dim).
    Book: Alice 10.1, 11.1, 11.2; D2L 11.5. Paper: Vaswani et al., 2017; Shazeer, 2019; Ainslie et al., 2023; Beltagy et
    al., 2020.

    >>> mixer = Attention(16, heads=2, kv_heads=1)
    >>> x = torch.randn(1, 5, 16)
    >>> head, state = mixer.stream(x[:, :3])
    >>> tail, state = mixer.stream(x[:, 3:], state)
    >>> torch.allclose(torch.cat([head, tail], 1), mixer(x), atol=1e-6)
    True
    """

    takes_specs = True
    weighs_unseen = True
    position_kinds: tuple[str, ...] = ("rotate", "bias")
    position_width: int | None = None  # that of a head, unless a subclass has another

    def __init__(
        self,
        dim: int,
        *,
        heads: int | None = None,
        kv_heads: int | None = None,
        causal: bool = True,
        window: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        position: Spec | None = None,
        scale: float | None = None,
        dropout: float | int = 0.0,
        bias: bool = False,
        out_bias: bool | None = None,
        qk_norm: Spec | None = None,
        qk_norm_over: str = "head",
        softcap: float | int | None = None,
    ):
        super().__init__()
        self.dim, self.causal, self.window, self.dropout = dim, causal, window, dropout
        self.heads, self.kv_heads, self.key_dim, self.value_dim = head_sizes(
            type(self).__name__, dim, heads, kv_heads, key_dim, value_dim, dropout
        )
        if window is not None and window < 1:
            raise WonderlandError(
                f"Attention cannot be built with window={window}: a token sees itself, so it is 1 or more."
            )
        if softcap is not None and not softcap > 0:
            raise WonderlandError(f"Attention bounds its scores by a softcap above 0, not {softcap}.")
        self.softcap = None if softcap is None else float(softcap)
        self.scale = 1 / math.sqrt(self.key_dim) if scale is None else scale
        self.position: Position | None
        self.register_module("position", self.built_position(position))
        self._set_kind(self.position)
        self._query_width, self._key_width = self.heads * self.key_dim, self.kv_heads * self.key_dim
        self._value_width = self.kv_heads * self.value_dim
        self.project = nn.Linear(dim, self._query_width + self._key_width + self._value_width, bias=bias)
        self.out = nn.Linear(self.heads * self.value_dim, dim, bias=bias if out_bias is None else out_bias)
        if qk_norm_over not in ("head", "all"):
            raise WonderlandError(f'Attention normalises queries and keys over "head" or "all", not {qk_norm_over!r}.')
        self._norms_heads = qk_norm_over == "head"
        self.query_norm = self.key_norm = None
        if qk_norm is not None:
            self.query_norm = _built_norm(qk_norm, self.key_dim if self._norms_heads else self._query_width)
            self.key_norm = _built_norm(qk_norm, self.key_dim if self._norms_heads else self._key_width)

    def _set_kind(self, position: Position | None) -> None:
        self._rotates = position is not None and position.kind == "rotate"
        self._biases = position is not None and position.kind == "bias"

    def share(self, spec: Spec, position: Position | None) -> Position:
        """Use a position that several layers share and a parent module owns; None builds it from its spec, for the parent to own."""
        if self.position is not None:
            raise WonderlandError(
                f"An Attention has one position: leave {type(self.position).__name__} out of its spec, "
                f"or do not share {spec.name} among the blocks."
            )
        position = self.built_position(spec) if position is None else position
        assert position is not None
        if position.kind == "rotate":
            raise WonderlandError(
                f"{spec.name} has nothing to learn, so it is not shared: put it into the mixer's spec."
            )
        # Not registered as a submodule: the parent has its weights, and they are saved once.
        self.__dict__["position"] = position
        self._set_kind(position)
        return position

    def built_position(self, position: Spec | None) -> Position | None:
        """The position of a spec, if it is of a kind that this attention uses."""
        if position is None:
            return None
        width = self.key_dim if self.position_width is None else self.position_width
        built = position.build(dim=width, heads=self.heads) if _is_position(position) else None
        if not isinstance(built, Position) or built.kind not in self.position_kinds:
            raise WonderlandError(_unusable(type(self).__name__, self.position_kinds, position.name))
        return built

    @classmethod
    def from_torch(cls, module: Any, *, causal: bool = False) -> "Attention":
        """Self-attention with the weights of a torch.nn.MultiheadAttention, and its outputs: `module(x, x, x)`.

        `causal` is for one that was trained with a causal mask, which torch takes at each call.
        """
        if not isinstance(module, nn.MultiheadAttention):
            raise WonderlandError(
                f"Attention.from_torch takes a torch.nn.MultiheadAttention, not a {type(module).__name__}."
            )
        if module.in_proj_weight is None:
            raise WonderlandError(
                f"This torch.nn.MultiheadAttention reads keys of width {module.kdim} and values of width {module.vdim} into "
                f"{module.embed_dim}, so it is no self-attention: take CrossAttention.from_torch."
            )
        if module.bias_k is not None or module.add_zero_attn:
            raise WonderlandError(
                "Attention.from_torch takes attention without bias_k, bias_v and add_zero_attn: "
                "a key that is no token has no place in a stream."
            )
        bias = module.in_proj_bias is not None
        mixer = cls(module.embed_dim, heads=module.num_heads, causal=causal, dropout=module.dropout, bias=bias)
        mixer.to(module.in_proj_weight)
        pairs = [(mixer.project.weight, module.in_proj_weight), (mixer.out.weight, module.out_proj.weight)]
        if bias:
            pairs += [(mixer.project.bias, module.in_proj_bias), (mixer.out.bias, module.out_proj.bias)]
        with torch.no_grad():
            for own, given in pairs:
                own.copy_(given)
        return mixer.train(module.training)

    @property
    def receptive_field(self) -> tuple[int | None, int | None]:
        """How many tokens before and after itself a position sees; None for no limit."""
        reach = None if self.window is None else self.window - 1
        return (reach, 0 if self.causal else reach)

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        own = [laws.strict_causality] if self.causal else []
        if self.window is not None:
            own += [laws.locality]
            # Without a window, the zeros put before a sequence are tokens that the others see.
            own += [laws.shift_equivariance] if self.position is None or self.position.relative else []
            own += [laws.permutation_equivariance] if self.window == 1 else []
        elif not self.causal:
            # With a scale of 0 all scores are equal, and positions do not matter.
            even = self.scale == 0 and not self._biases
            own += [laws.permutation_equivariance] if even or self.position is None else []
            own += [laws.permutation_invariance] if even else []
        return (*super().laws(), *own)

    def signature(self) -> str:
        return type(self).__name__ + ("" if self.window is None else f" with a window of {self.window}")

    def layout(self) -> Layout:
        return cache_layout(self._key_width + self._value_width)

    def state_numbers(self, t: int) -> int:
        return super().state_numbers(t if self.window is None else min(t, self.window - 1))

    def whole(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.mix_finite(x, mask, None, lambda x: (self._whole(self._project(x, None), mask), ()))[0]

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        fused = self._project(x, seen)
        if not self.causal:
            return self._whole(fused, mask), ()
        entries, places = remember(state, fused[..., self._query_width :], seen, mask, self.window)
        if state is None:
            y = self._whole(fused, mask)
        else:
            queries, keys = standing(entries, places, x.shape[1], seen, self.window)
            # A single token sees all that is in its cache.
            alone = x.shape[1] == 1 and places.shape[1] == 0
            bias = self._bias(queries, keys, None if alone else visible(queries, keys, True, self.window))
            k, v = entries.split((self._key_width, self._value_width), -1)
            y = self._attend(fused[..., : self._query_width], k, v, bias)
        return y, forget(entries, places, self.window)

    def maps(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "b heads t t"]:
        """The attention weights of every head; rows sum to 1, those of masked positions to 0."""
        self.check(x, mask)
        return self._maps(hide(x, mask), mask)[0]

    def contributions(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "b heads t dim"]:
        """The contribution of each head; the sum over heads is the output, less the bias of `out` where there is one."""
        self.check(x, mask)
        weights, v = self._maps(hide(x, mask), mask)
        heads = v.view(*v.shape[:2], self.kv_heads, self.value_dim).transpose(1, 2)
        read = weights @ heads.repeat_interleave(self.heads // self.kv_heads, 1)
        return torch.einsum("bhtv,dhv->bhtd", read, self.out.weight.view(self.dim, self.heads, self.value_dim))

    def _project(self, x: Tensor, seen: Tensor | None) -> Tensor:
        """Queries, keys and values side by side (b, t, all), queries and keys rotated where the position does that."""
        fused = self.project(x)
        if not self._rotates and self.query_norm is None:
            return fused
        queries_keys, v = fused.split((self._query_width + self._key_width, self._value_width), -1)
        if self.query_norm is not None:
            queries_keys = self._normed(queries_keys)
        if not self._rotates:
            return torch.cat([queries_keys, v], -1)
        assert self.position is not None
        queries_keys = queries_keys.view(*x.shape[:2], -1, self.key_dim)
        return torch.cat([self.position.rotate(queries_keys, positions(x, seen)).flatten(2), v], -1)

    def _normed(self, queries_keys: Tensor) -> Tensor:
        """Queries and keys side by side (b, t, width), normalised in each head or over all heads."""
        assert self.query_norm is not None
        assert self.key_norm is not None
        q, k = queries_keys.split((self._query_width, self._key_width), -1)
        if self._norms_heads:
            q, k = q.unflatten(-1, (self.heads, self.key_dim)), k.unflatten(-1, (self.kv_heads, self.key_dim))
        return torch.cat([self.query_norm.apply_to(q).flatten(2), self.key_norm.apply_to(k).flatten(2)], -1)

    def _parts(self, fused: Tensor) -> tuple[Tensor, ...]:
        # One split, whose backward is one concatenation: slices would each fill a tensor of the whole width.
        return fused.split((self._query_width, self._key_width, self._value_width), -1)

    def _whole(self, fused: Tensor, mask: Tensor | None) -> Tensor:
        """All positions from the beginning. Padding at the right end is hidden from the rest by causality."""
        t = fused.shape[1]
        window = None if self.window is None or self.window >= t else self.window
        dropped = self.training and self.dropout
        unmasked = window is None and not self._biases and (self.causal or mask is None)
        plain = unmasked and not dropped and self.softcap is None
        if plain and self.key_dim == self.value_dim and self.scale > 0:
            return self.out(short_attention(fused, self.heads, self.kv_heads, self.scale, causal=self.causal))
        q, k, v = self._parts(fused)
        if unmasked:
            return self._attend(q, k, v, None, self.causal)
        if window is None and not self._biases and mask is not None:
            # A row without a real token sees its padding: its output is not used, and must not be NaN.
            return self._attend(q, k, v, (mask | ~mask[:, :1])[:, None, None])
        if window is not None and self.causal and 2 * window < t:
            return self._in_blocks(q, k, v, window)
        places = torch.arange(t, device=q.device).unsqueeze(0)
        keys = places if self.causal or mask is None else places.masked_fill(~mask, -1)
        return self._attend(q, k, v, self._bias(places, keys, visible(places, keys, self.causal, window)))

    def _in_blocks(self, q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
        """A causal window, in time linear in the sequence: each block of `window` queries sees its own keys and one before."""
        b, t, _ = q.shape
        count = -(-t // window)
        missing = count * window - t
        q = F.pad(q, (0, 0, 0, missing)).view(b * count, window, -1)
        k, v = (
            F.pad(keys, (0, 0, window, missing)).unfold(1, 2 * window, window).transpose(2, 3).flatten(0, 1)
            for keys in (k, v)
        )
        queries = torch.arange(count * window, device=q.device).view(count, window)
        keys = queries[:, :1] + torch.arange(-window, window, device=q.device)
        queries, keys = queries.clamp_max(t - 1), keys.masked_fill(keys >= t, -1)
        bias = self._bias(queries, keys, visible(queries, keys, True, window))
        assert bias is not None
        y = self._attend(q, k, v, bias.expand(b, *([-1] * 4)).flatten(0, 1) if b > 1 else bias)
        return y.view(b, count * window, -1)[:, :t]

    def _bias(self, queries: Tensor, keys: Tensor, allowed: Tensor | None) -> Tensor | None:
        """The bias of the scores, or a boolean mask where there is none: (b, heads, q, k), or broadcastable to it."""
        if not self._biases:
            return allowed
        assert self.position is not None
        bias = self.position.bias(queries, keys.clamp_min(0)).to(self.project.weight.dtype)
        return bias if allowed is None else bias.masked_fill(~allowed, -math.inf)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool = False) -> Tensor:
        if self.softcap is not None:
            return self.out(self._attend_capped(q, k, v, bias, causal))
        y = attend(
            self._split(q, self.heads, self.key_dim),
            self._split(k, self.kv_heads, self.key_dim),
            self._split(v, self.kv_heads, self.value_dim),
            bias,
            self.scale,
            causal=causal,
            dropout=self.dropout if self.training else 0.0,
        )
        return self.out(y)

    def _attend_capped(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool) -> Tensor:
        """Attention with bounded scores, for which there is no fused form: the matrix of scores is made."""
        scores = self._capped(self._scores(q, k))
        if causal:
            places = torch.arange(q.shape[1], device=q.device).unsqueeze(0)
            bias = visible(places, places, True, None)
        if bias is not None:
            scores = scores.masked_fill(~bias, -math.inf) if bias.dtype == torch.bool else scores + bias
        weights = scores.softmax(-1)
        if self.training and self.dropout:
            weights = F.dropout(weights, self.dropout)
        values = self._split(v, self.kv_heads, self.value_dim).repeat_interleave(self.heads // self.kv_heads, 1)
        return (weights @ values).transpose(1, 2).flatten(2)

    def _scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Products of queries and keys, scaled: (b, heads, q, k)."""
        q, k = self._split(q, self.heads, self.key_dim), self._split(k, self.kv_heads, self.key_dim)
        return q @ k.repeat_interleave(self.heads // self.kv_heads, 1).transpose(-1, -2) * self.scale

    def _capped(self, scores: Tensor) -> Tensor:
        return scores if self.softcap is None else self.softcap * torch.tanh(scores / self.softcap)

    def _split(self, x: Tensor, heads: int, width: int) -> Tensor:
        return x.view(x.shape[0], x.shape[1], heads, width).transpose(1, 2)

    def _maps(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        q, k, v = self._parts(self._project(x, None))
        scores = self._capped(self._scores(q, k))
        places = torch.arange(x.shape[1], device=x.device).unsqueeze(0)
        allowed = visible(places, places, self.causal, self.window)
        if self._biases:
            assert self.position is not None
            scores = scores + self.position.bias(places, places)
        if mask is not None:
            allowed = allowed & mask[:, None, None] & mask[:, None, :, None]
        return masked_softmax(scores, allowed), v


def _built_norm(spec: Spec, width: int) -> Pointwise:
    built = spec.build(dim=width)
    if not isinstance(built, Pointwise):
        raise WonderlandError(
            f"{spec.name} is no norm of features: give qk_norm nn.RMSNorm.spec() or nn.LayerNorm.spec()."
        )
    return built


def _is_position(spec: Spec) -> bool:
    kind = spec.part
    return isinstance(kind, type) and issubclass(kind, Position)


def _unusable(name: str, kinds: tuple[str, ...], position: str) -> str:
    """The sentence for a position that an attention has no use for."""
    if kinds == ("table",):
        return f"{name} cannot use {position} as its position: it takes nn.RelativeTable.spec()."
    return (
        f"{name} cannot use {position} as its position: it takes one that rotates or biases "
        "(Rotary, Alibi, RelativeBias); one that embeds is added to the embeddings, by the model."
    )
