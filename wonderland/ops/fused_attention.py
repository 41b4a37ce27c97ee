"""Torch's fused attention, which can be differentiated twice here: a backward pass in a graph goes through the equation."""

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

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

    `bias` is added to the scores; one of booleans says what may be seen. Torch's kernel for the CPU has one derivative; where
    it would be taken, this gives it a second one.
    Book: Alice 10.1; D2L 11.5.

    >>> q, k = torch.randn(1, 4, 5, 8), torch.randn(1, 2, 7, 8)
    >>> fused_attention(q, k, k, None, 0.5).shape
    torch.Size([1, 4, 5, 8])
    """
    if native.learns(q, k, v) and not dropout and _once(q, k, v, bias, scale, causal):
        return _Twice.apply(q, k, v, bias, scale, causal)
    # The fused kernel knows neither forward mode nor vmap; the plain one is made of operations that do.
    with sdpa_kernel(SDPBackend.MATH) if native.transformed() else nullcontext():
        return F.scaled_dot_product_attention(
            q, k, v, bias, dropout, causal, scale=scale, enable_gqa=k.shape[1] != q.shape[1]
        )


def equation(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, causal: bool) -> Tensor:
    """The same by operations that have all derivatives."""
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(
            q, k, v, bias, 0.0, causal, scale=scale, enable_gqa=k.shape[1] != q.shape[1]
        )


def _once(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, causal: bool) -> bool:
    """Whether torch would take its kernel for the CPU, and nobody listens to the dispatcher."""
    if not q.is_cpu or native.transformed() or not native.unheard(q, k, v, bias) or torch.is_autocast_enabled("cpu"):
        return False
    grouped = k.shape[1] != q.shape[1]
    choice = torch._fused_sdp_choice(q, k, v, bias, 0.0, causal, scale=scale, enable_gqa=grouped)
    return choice == SDPBackend.FLASH_ATTENTION.value


class _Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, causal: bool) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        if bias is not None and bias.dtype == torch.bool:
            bias = torch.zeros_like(bias, dtype=q.dtype).masked_fill_(~bias, -torch.inf)
        out, sums = _aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=bias, scale=scale)
        ctx.save_for_backward(q, k, v, bias, out, sums)
        ctx.scale, ctx.causal = scale, causal
        return out

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        (slope,) = slopes
        q, k, v, bias, out, sums = ctx.saved_tensors
        if native.graphed():
            found = native.again(lambda q, k, v: equation(q, k, v, bias, ctx.scale, ctx.causal), (q, k, v), slope)
        else:
            found = _aten._scaled_dot_product_flash_attention_for_cpu_backward(
                slope, q, k, v, out, sums, 0.0, ctx.causal, attn_mask=bias, scale=ctx.scale
            )
        return *found, None, None, None
