"""Cross-attention: queries from one sequence, keys and values from another."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.cross_mixer import CrossMixer, check_same_rows
from wonderland.nn.contract.mixer import hide
from wonderland.nn.contract.state import TIME, Layout, Slot, State
from wonderland.nn.mixers.attend import attend, head_sizes
from wonderland.ops.softmax import masked_softmax


@part
class CrossAttention(CrossMixer):
    r"""Multi-head attention with queries from x, keys and values from a context.

    .. math::
        \mathrm{CA}(X, Z) = \mathrm{softmax}\!\left(\frac{X W_q (Z W_k)^\top}{\sqrt{k}}\right) Z W_v W_o

    Permuting x permutes the output; permuting the context changes nothing. With the same weights, CA(X, X) is
    self-attention. Options are those of `Attention`; `context_dim` is the width of the context, dim unless given.

    Shapes: x (b, t, dim), context (b, m, context_dim) -> (b, t, dim); prepared context: kv_heads (key_dim + value_dim)
    numbers for each of its tokens, and its mask.
    Book: Alice 11.1; D2L 11.4. Paper: Bahdanau et al., 2015; Vaswani et al., 2017.

    >>> mixer = CrossAttention(16, heads=2, context_dim=6)
    >>> mixer(torch.randn(1, 5, 16), torch.randn(1, 9, 6)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        dim: int,
        *,
        context_dim: int | None = None,
        heads: int | None = None,
        kv_heads: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        scale: float | None = None,
        dropout: float | int = 0.0,
        bias: bool = False,
    ):
        super().__init__()
        self.dim, self.context_dim, self.dropout = dim, dim if context_dim is None else context_dim, dropout
        self.heads, self.kv_heads, self.key_dim, self.value_dim = head_sizes(
            type(self).__name__, dim, heads, kv_heads, key_dim, value_dim, dropout
        )
        if self.context_dim < 1:
            raise WonderlandError(
                f"CrossAttention cannot be built with context_dim={context_dim}: it is a whole number from 1."
            )
        self.scale = 1 / math.sqrt(self.key_dim) if scale is None else scale
        self.query = nn.Linear(dim, self.heads * self.key_dim, bias=bias)
        self.project = nn.Linear(self.context_dim, self.kv_heads * (self.key_dim + self.value_dim), bias=bias)
        self.out = nn.Linear(self.heads * self.value_dim, dim, bias=bias)

    @classmethod
    def from_torch(cls, module: Any) -> "CrossAttention":
        """Cross-attention with the weights of a torch.nn.MultiheadAttention, and its outputs where key and value are one."""
        if not isinstance(module, nn.MultiheadAttention):
            raise WonderlandError(
                f"CrossAttention.from_torch takes a torch.nn.MultiheadAttention, not a {type(module).__name__}."
            )
        if module.kdim != module.vdim or module.bias_k is not None or module.add_zero_attn:
            raise WonderlandError(
                "CrossAttention.from_torch takes keys and values of one context, so kdim is vdim, "
                "without bias_k, bias_v and add_zero_attn."
            )
        given, dim = module.in_proj_bias, module.embed_dim
        mixer = cls(
            dim, context_dim=module.kdim, heads=module.num_heads, dropout=module.dropout, bias=given is not None
        )
        if module.in_proj_weight is not None:
            query, rest = module.in_proj_weight.split((dim, 2 * dim))
        else:
            query, rest = module.q_proj_weight, torch.cat([module.k_proj_weight, module.v_proj_weight])
        mixer.to(query)
        pairs = [(mixer.query.weight, query), (mixer.project.weight, rest), (mixer.out.weight, module.out_proj.weight)]
        if given is not None:
            pairs += [
                (mixer.query.bias, given[:dim]), (mixer.project.bias, given[dim:]), (mixer.out.bias, module.out_proj.bias)
            ]  # fmt: skip
        with torch.no_grad():
            for own, theirs in pairs:
                own.copy_(theirs)
        return mixer.train(module.training)

    def state_layout(self) -> Layout:
        return (Slot((TIME, self.project.out_features)), Slot((TIME,), dtype=torch.bool))

    def read(self, context: Tensor, mask: Tensor | None) -> State:
        # A mask of width 0 says that there is none: its shape is known where its values are not.
        none = torch.empty((context.shape[0], 0), dtype=torch.bool, device=context.device)
        return self.project(context), none if mask is None else mask

    def answer(self, x: Tensor, state: State) -> Tensor:
        q, k, v = self._heads(x, state[0])
        mask = state[1][:, None, None] if state[1].shape[1] else None
        y = attend(q, k, v, mask, self.scale, dropout=self.dropout if self.training else 0.0)
        return self.out(y)

    def maps(self, x: Any, context: Any, mask: Any = None, context_mask: Any = None) -> Float[Tensor, "b heads t m"]:
        """The attention weights of every head; rows sum to 1, those of masked positions to 0."""
        self.check(x, mask)
        state = self.prepare(context, context_mask)
        check_same_rows(x, context)
        weights = self.weights(hide(x, mask), state)
        return weights if mask is None else weights.masked_fill(~mask[:, None, :, None], 0)

    def weights(self, x: Tensor, state: State) -> Float[Tensor, "b heads t m"]:
        """The attention weights over a prepared context."""
        q, k, _ = self._heads(x, state[0])
        scores = q @ k.repeat_interleave(self.heads // self.kv_heads, 1).transpose(-1, -2) * self.scale
        allowed = state[1][:, None, None] if state[1].shape[1] else torch.ones((), dtype=torch.bool, device=x.device)
        return masked_softmax(scores, allowed.expand_as(scores))

    def _heads(self, x: Tensor, entries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (b, t, _), m, cut = x.shape, entries.shape[1], self.kv_heads * self.key_dim
        q = self.query(x).view(b, t, self.heads, self.key_dim)
        k = entries[..., :cut].view(b, m, self.kv_heads, self.key_dim)
        v = entries[..., cut:].view(b, m, self.kv_heads, self.value_dim)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
