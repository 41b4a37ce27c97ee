"""Attention over short sequences in one kernel, with queries, keys and values side by side as one projection writes them."""

import torch
from jaxtyping import Float
from torch import Tensor

from wonderland.ops import native, shapes
from wonderland.ops.fused_attention import fused_attention


def longest(causal: bool) -> int:
    """The number of tokens up to which the kernel is faster than torch's own, which computes more of what a mask hides."""
    return 512 if causal and native.WIDE else 256


def short_attention(
    fused: Float[Tensor, "b t all"], heads: int, kv_heads: int, scale: float, *, causal: bool = True
) -> Float[Tensor, "b t width"]:
    r"""Heads of attention from one projection (b, t, (heads + 2 kv_heads) d), side by side: (b, t, heads d).

    .. math:: y_i = \sum_j \mathrm{softmax}_j\left(s\, q_i^\top k_j\right) v_j

    The kernel keeps the largest score and the sum of each softmax and recomputes the rest in the backward pass; gradients come out
    side by side, as the projection wants them. Longer sequences and other devices take torch's kernel.
    Book: Alice 10.1; D2L 11.5.

    >>> short_attention(torch.randn(2, 5, 3 * 8), 2, 2, 0.5).shape
    torch.Size([2, 5, 8])
    """
    sizes = shapes.agree("short_attention", fused=(fused, "b t width"))
    shapes.real("short_attention", fused=fused)
    shapes.groups("short_attention", heads, kv_heads, sizes["width"], "fused")
    # Recordings and compilers get torch's own operator.
    known = native.is_recording() or torch.compiler.is_compiling() or fused.dtype not in (torch.float32, torch.float64)
    if not known and fused.shape[1] <= longest(causal) and native.usable("short_attention", fused):
        return native.call_first(_forward, fused, heads, kv_heads, float(scale), causal)
    return plain(fused, heads, kv_heads, scale, causal=causal)


def reference(fused: Tensor, heads: int, kv_heads: int, scale: float, *, causal: bool = True) -> Tensor:
    """The equation."""
    q, k, v = _heads(fused, heads, kv_heads)
    k, v = (part.repeat_interleave(heads // kv_heads, 1) for part in (k, v))
    scores = q @ k.transpose(-1, -2) * scale
    if causal:
        t = fused.shape[1]
        later = torch.ones(t, t, dtype=torch.bool, device=fused.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def plain(fused: Tensor, heads: int, kv_heads: int, scale: float, *, causal: bool = True) -> Tensor:
    """The same by torch's fused kernel, for any length and device."""
    q, k, v = _heads(fused, heads, kv_heads)
    return fused_attention(q, k, v, None, scale, causal=causal).transpose(1, 2).flatten(2)


def _heads(fused: Tensor, heads: int, kv_heads: int) -> list[Tensor]:
    b, t, wide = fused.shape
    d = wide // (heads + 2 * kv_heads)
    parts = fused.split((heads * d, kv_heads * d, kv_heads * d), -1)
    return [part.view(b, t, -1, d).transpose(1, 2) for part in parts]


@torch.library.custom_op("wonderland::short_attention", mutates_args=(), device_types="cpu")
def _forward(fused: Tensor, heads: int, kv_heads: int, scale: float, causal: bool) -> tuple[Tensor, Tensor]:
    b, t, wide = fused.shape
    d = wide // (heads + 2 * kv_heads)
    out, sums = fused.new_empty(b, t, heads * d), fused.new_empty(b, heads, t, 2)
    native.function("short_attention", "forward", fused.dtype)(
        fused.contiguous(), out, sums, b, t, heads, kv_heads, d, scale, int(causal), torch.get_num_threads()
    )
    return out, sums


@_forward.register_fake
def _(fused, heads, kv_heads, scale, causal):
    b, t, wide = fused.shape
    return fused.new_empty(b, t, wide // (heads + 2 * kv_heads) * heads), fused.new_empty(b, heads, t, 2)


@torch.library.custom_op("wonderland::short_attention_backward", mutates_args=(), device_types="cpu")
def _backward(
    fused: Tensor, out: Tensor, sums: Tensor, dout: Tensor, heads: int, kv_heads: int, scale: float, causal: bool
) -> Tensor:
    b, t, wide = fused.shape
    dfused = torch.empty(fused.shape, dtype=fused.dtype)
    native.function("short_attention", "backward", fused.dtype)(
        fused.contiguous(), out, sums, dout.contiguous(), dfused, b, t, heads, kv_heads, wide // (heads + 2 * kv_heads),
        scale, int(causal), torch.get_num_threads(),
    )  # fmt: skip
    return dfused


@_backward.register_fake
def _(fused, out, sums, dout, heads, kv_heads, scale, causal):
    return torch.empty(fused.shape, dtype=fused.dtype, device=fused.device)


def _remember(ctx, inputs, output):
    fused, *ctx.rest = inputs
    ctx.save_for_backward(fused, *output)


def _differentiate(ctx, dout, _):
    fused, out, sums = ctx.saved_tensors
    heads, kv_heads, scale, causal = ctx.rest
    if native.is_second_order():

        def equation(fused):
            return reference(fused, heads, kv_heads, scale, causal=causal)

        return *native.differentiable_backward(equation, (fused,), dout), None, None, None, None
    return native.call(_backward, fused, out, sums, dout, *ctx.rest), None, None, None, None


_forward.register_autograd(_differentiate, setup_context=_remember)
