"""A residual attention block with pre-norm over short sequences in one kernel: norm, projections, heads and sum."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import fused_block, native, shapes
from wonderland.ops.fused_block import ROWS_AT_ONCE, Described
from wonderland.ops.short_attention import longest
from wonderland.ops.short_attention import reference as attention


def usable(x: Tensor, *weights: Tensor | None, causal: bool = True) -> bool:
    """Whether the kernel can be used: as `fused_block.usable` says, and for short sequences."""
    return fused_block.usable(x, *weights) and short(x, causal)


def short(x: Tensor, causal: bool) -> bool:
    """Whether sequences are short enough for the kernel, and there is one for each thread."""
    return longest(causal) >= x.shape[1] > 0 and x.shape[0] >= torch.get_num_threads()


def fused_attention_block(
    x: Float[Tensor, "b t d"],
    gain: Float[Tensor, " d"],
    shift: Float[Tensor, " d"] | None,
    project: Float[Tensor, "all d"],
    project_bias: Float[Tensor, " all"] | None,
    out: Float[Tensor, "d width"],
    out_bias: Float[Tensor, " d"] | None,
    frequencies: Float[Tensor, " rotated"] | None,
    *,
    heads: int,
    kv_heads: int,
    scale: float,
    causal: bool = True,
    half: bool = True,
    eps: float = 1e-5,
    centred: bool = True,
) -> Float[Tensor, "b t d"]:
    r"""Residual attention block with pre-norm.

    .. math:: y = x + W_o\, \mathrm{attention}(W_p\, \mathrm{norm}(x) + b_p) + b_o

    The norm is LayerNorm, or RMSNorm without `centred`. `project` gives queries, keys and values side by side, as in
    `ops.short_attention`. With `frequencies` (rotary positions; one for each rotated feature, of a pair that of its second
    member is used) queries and keys are rotated; pairs are (i, i + rotated / 2) with `half`, else neighbours. Each thread
    takes whole sequences through all of it. Book: Alice 10.3; D2L 11.7.

    >>> w = torch.randn(3 * 4, 4), None, torch.randn(4, 4), None, None
    >>> fused_attention_block(torch.zeros(2, 5, 4), torch.ones(4), None, *w, heads=2, kv_heads=2, scale=1.0).abs().max()
    tensor(0.)
    """
    sizes = shapes.agree(
        "fused_attention_block",
        x=(x, "b t d"),
        gain=(gain, "d"),
        shift=(shift, "d ?"),
        project=(project, "all d"),
        project_bias=(project_bias, "all ?"),
        out=(out, "d width"),
        out_bias=(out_bias, "d ?"),
    )
    each = shapes.groups("fused_attention_block", heads, kv_heads, sizes["all"], "project")
    shapes.agree("fused_attention_block", out=(out, f"d {heads * each}"))
    if frequencies is not None:
        rotated = shapes.agree("fused_attention_block", frequencies=(frequencies, "rotated"))["rotated"]
        if rotated % 2 or rotated > each:
            raise WonderlandError(
                f"fused_attention_block takes frequencies for an even number of features, at most the {each} of a head, not {rotated}."
            )
    weights = (gain, shift, project, project_bias, out, out_bias)
    settings = {"heads": heads, "kv_heads": kv_heads, "scale": scale, "causal": causal, "half": half}
    if not usable(x, *weights, frequencies, causal=causal):
        table = None if frequencies is None else rotary_table(frequencies, x.shape[1], half)
        return reference(x, *weights, table, **settings, eps=eps, centred=centred)
    return unchecked(x, weights, frequencies, **settings, eps=eps, centred=centred)


def unchecked(
    x: Tensor,
    weights: tuple[Tensor | None, ...],
    frequencies: Tensor | None,
    *,
    heads: int,
    kv_heads: int,
    scale: float,
    causal: bool,
    half: bool,
    eps: float,
    centred: bool,
) -> Tensor:
    """The kernel, for weights of the right shapes where `usable` says so."""
    table = None if frequencies is None else rotary_table(frequencies, x.shape[1], half)
    settings = (heads, kv_heads, float(scale), causal, half, float(eps), centred)
    return native.call_first(_forward, x, *weights, table, *settings, native.needs_backward(x, *weights))


def reference(
    x, gain, shift, project, project_bias, out, out_bias, table, heads, kv_heads, scale, causal, half, eps, centred
) -> Tensor:
    """The equation; `table` holds cosines and sines (t, 2, pairs)."""
    off = x - x.mean(-1, keepdim=True) if centred else x
    normed = off * torch.rsqrt(off.square().mean(-1, keepdim=True) + eps) * gain
    fused = F.linear(normed if shift is None else normed + shift, project, project_bias)
    if table is not None:
        d = out.shape[1] // heads
        queries_keys, values = fused.split(((heads + kv_heads) * d, kv_heads * d), -1)
        rotated = rotate(queries_keys.unflatten(-1, (-1, d)), table, half).flatten(-2)
        fused = torch.cat([rotated, values], -1)
    return x + F.linear(attention(fused, heads, kv_heads, scale, causal=causal), out, out_bias)


def rotate(x: Tensor, table: Tensor, half: bool) -> Tensor:
    """Queries or keys (b, t, heads, d) rotated by their positions."""
    cosine, sine = table.unsqueeze(1).unbind(2)
    width = 2 * cosine.shape[-1]
    parts = x[..., :width].unflatten(-1, (2, -1) if half else (-1, 2))
    first, second = parts.unbind(-2 if half else -1)
    pairs = [first * cosine - second * sine, second * cosine + first * sine]
    return torch.cat([torch.stack(pairs, -2 if half else -1).flatten(-2), x[..., width:]], -1)


def rotary_table(frequencies: Tensor, t: int, half: bool) -> Tensor:
    """Cosines and sines (t, 2, pairs) of all positions."""
    pairs = frequencies.shape[0] // 2
    second = frequencies[pairs:] if half else frequencies[1::2]
    angles = torch.outer(torch.arange(t, device=second.device, dtype=second.dtype), second)
    return torch.stack([angles.cos(), angles.sin()], 1)


@torch.library.custom_op("wonderland::fused_attention_block", mutates_args=(), device_types="cpu")
def _forward(
    x: Tensor,
    gain: Tensor,
    shift: Tensor | None,
    project: Tensor,
    project_bias: Tensor | None,
    out: Tensor,
    out_bias: Tensor | None,
    table: Tensor | None,
    heads: int,
    kv_heads: int,
    scale: float,
    causal: bool,
    half: bool,
    eps: float,
    centred: bool,
    keeps: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    weights = (gain, shift, project, project_bias, out, out_bias, table)
    (b, t, _), width, mixed, x = x.shape, project.shape[0], out.shape[1], x.contiguous()
    sizes = ((b, t, width), (b, t, mixed), (b, heads, t, 2), (b, t, 2))
    y = torch.empty(x.shape, dtype=x.dtype)
    fused, heads_out, sums, moments = (x.new_empty(size if keeps else 0) for size in sizes)
    filled = (y, *((fused, heads_out, sums, moments) if keeps else (None,) * 4), None)
    block = _describe(x, weights, filled, heads, kv_heads, scale, causal, half, eps, centred)
    fused_block.run_forward(block, x)
    return y, fused, heads_out, sums, moments


@_forward.register_fake
def _(
    x,
    gain,
    shift,
    project,
    project_bias,
    out,
    out_bias,
    table,
    heads,
    kv_heads,
    scale,
    causal,
    half,
    eps,
    centred,
    keeps,
):
    b, t, _ = x.shape
    if not keeps:
        return torch.empty(x.shape, dtype=x.dtype, device=x.device), *(x.new_empty(0) for _ in range(4))
    y, fused = torch.empty(x.shape, dtype=x.dtype, device=x.device), x.new_empty(b, t, project.shape[0])
    return y, fused, x.new_empty(b, t, out.shape[1]), x.new_empty(b, heads, t, 2), x.new_empty(b, t, 2)


@torch.library.custom_op("wonderland::fused_attention_block_backward", mutates_args=(), device_types="cpu")
def _backward(
    x: Tensor,
    gain: Tensor,
    shift: Tensor | None,
    project: Tensor,
    out: Tensor,
    table: Tensor | None,
    fused: Tensor,
    mixed: Tensor,
    sums: Tensor,
    moments: Tensor,
    dy: Tensor,
    heads: int,
    kv_heads: int,
    scale: float,
    causal: bool,
    half: bool,
    eps: float,
    centred: bool,
) -> tuple[Tensor, Tensor]:
    weights = (gain, shift, project, None, out, None, table)
    how = (heads, kv_heads, scale, causal, half, eps, centred)
    grads, kept = fused_block.empty_grads(project, out), native.contiguous(fused, mixed, sums, moments)
    block = _describe(x.contiguous(), weights, (None, *kept, grads), *how)
    return fused_block.run_backward(block, dy), grads


@_backward.register_fake
def _(x, gain, shift, project, out, table, fused, mixed, sums, moments, dy, *how):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), fused_block.empty_grads(project, out)


def _describe(
    x: Tensor, weights: Any, filled: Any, heads: int, kv_heads: int, scale: float, causal: bool, half: bool, eps: float,
    centred: bool,
) -> Described:  # fmt: skip
    return fused_block.describe(
        x, weights, filled, attends=True, heads=heads, kv=kv_heads, d=weights[4].shape[1] // heads, scale=scale,
        causal=causal, rotated=_rotated(weights[6]), half=half, eps=eps, centred=centred, width=weights[2].shape[0],
        at_once=max(1, ROWS_AT_ONCE // x.shape[1]),
    )  # fmt: skip


def _rotated(table: Tensor | None) -> int:
    return 0 if table is None else 2 * table.shape[2]


def _remember(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:8], *output[1:])
    ctx.how = inputs[8:-1]


def _differentiate(ctx, dy, *_):
    (x, *weights), kept = ctx.saved_tensors[:8], ctx.saved_tensors[8:]
    gain, shift, project, _, out, _, table = weights
    nothing = (None,) * (1 + len(ctx.how))
    if native.is_second_order():

        def equation(*given: Any) -> Tensor:
            return reference(*given, table, *ctx.how)  # pyright: ignore[reportCallIssue]

        return *native.differentiable_backward(equation, (x, *weights[:-1]), dy), None, *nothing
    dx, grads = native.call(_backward, x, gain, shift, project, out, table, *kept, dy, *ctx.how)
    return dx, *fused_block.split_grads(weights, grads), *nothing


_forward.register_autograd(_differentiate, setup_context=_remember)
