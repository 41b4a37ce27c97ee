"""`F.scaled_dot_product_attention` with a second derivative, which torch's CPU kernel does not have."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn.attention import SDPBackend

from wonderland.ops import native

_aten = torch.ops.aten


def fused_attention(
    q: Float[Tensor, "b heads t d"],
    k: Float[Tensor, "b kv n d"],
    v: Float[Tensor, "b kv n d"],
    bias: Shaped[Tensor, "#b #heads #t n"] | None,
    scale: float,
    *,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "b heads t d"]:
    r"""Heads of attention by `F.scaled_dot_product_attention`, where keys and values may be shared by groups of heads.

    .. math:: y_i = \sum_j \mathrm{softmax}_j\left(s\, q_i^\top k_j + B_{ij}\right) v_j

    `bias` is added to the scores; a boolean one is True where a key may be seen. Torch's kernel for the CPU has a first
    derivative only; where torch would take it, a second one goes through the equation.
    Book: Alice 10.1; D2L 11.5.

    >>> q, k = torch.randn(1, 4, 5, 8), torch.randn(1, 2, 7, 8)
    >>> fused_attention(q, k, k, None, 0.5).shape
    torch.Size([1, 4, 5, 8])
    """
    if native.is_transformed():
        # The fused kernel has neither forward mode nor vmap; the operators of the equation have both.
        return reference(q, k, v, bias, scale, causal=causal, dropout=dropout)
    if native.needs_backward(q, k, v) and not dropout and native.no_dispatch_mode(q, k, v, bias):
        q, k, v, bias = _narrowed(q, k, v, bias)
        if _by_kernel(q, k, v, bias, scale, causal):
            return _Twice.apply(q, k, v, bias, scale, causal)
    return F.scaled_dot_product_attention(q, k, v, bias, dropout, causal, scale=scale, enable_gqa=_grouped(q, k))


def reference(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, *, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """The equation, by operators that have all derivatives. `sdpa_kernel` is not used: it switches for all threads of a process."""
    bias = _added(q, bias)
    with torch.autocast("cpu", enabled=False):
        return torch._scaled_dot_product_attention_math(
            q, k, v, bias, dropout, causal, scale=scale, enable_gqa=_grouped(q, k)
        )[0]


def _added(q: Tensor, bias: Tensor | None) -> Tensor | None:
    """The bias as numbers: of a boolean one, 0 where True and -inf where False."""
    if bias is None or bias.dtype != torch.bool:
        return bias
    return torch.zeros_like(bias, dtype=q.dtype).masked_fill(~bias, -torch.inf)


def _grouped(q: Tensor, k: Tensor) -> bool:
    return k.shape[1] != q.shape[1]


def _narrowed(*tensors: Tensor | None) -> list[Any]:
    """Tensors in the dtype that autocast uses for attention, where it is active."""
    if not torch.is_autocast_enabled("cpu"):
        return list(tensors)
    kind, kinds = torch.get_autocast_dtype("cpu"), (torch.float32, torch.bfloat16, torch.float16)
    return [None if x is None else x.to(kind) if x.is_cpu and x.dtype in kinds else x for x in tensors]


def _by_kernel(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, causal: bool) -> bool:
    """Whether torch would use its fused kernel for the CPU."""
    if not q.is_cpu:
        return False
    choice = torch._fused_sdp_choice(q, k, v, bias, 0.0, causal, scale=scale, enable_gqa=_grouped(q, k))
    return choice == SDPBackend.FLASH_ATTENTION.value


class _Twice(torch.autograd.Function):
    """The kernel and its backward pass; where that has to be differentiated once more, the equation's."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        q, k, v, bias, scale, causal = given
        bias = _added(q, bias)
        out, sums = _aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=bias, scale=scale)
        # In the order of torch's own node: activation checkpointing compares saved tensors of both passes.
        ctx.save_for_backward(bias, k, q, v, sums, out)
        ctx.scale, ctx.causal = scale, causal
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        bias, k, q, v, sums, out = ctx.saved_tensors
        if native.is_second_order():
            results = native.differentiable_backward(
                lambda q, k, v: reference(q, k, v, bias, ctx.scale, causal=ctx.causal), (q, k, v), grads[0]
            )
        else:
            results = _aten._scaled_dot_product_flash_attention_for_cpu_backward(
                grads[0], q, k, v, out, sums, 0.0, ctx.causal, attn_mask=bias, scale=ctx.scale
            )
        return *results, None, None, None
