"""Attention as a branch of a residual block: norm, projections and heads over short sequences, in one kernel."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native, shapes
from wonderland.ops.chain import Link
from wonderland.ops.hidden import SOME, Weights
from wonderland.ops.hidden import usable as takes
from wonderland.ops.short_attention import longest
from wonderland.ops.short_attention import reference as short


def usable(x: Tensor, *weights: Tensor | None, causal: bool = True) -> bool:
    """Whether the kernel can take it: enough short sequences for all threads, and nobody who looks inside."""
    return longest(causal) >= x.shape[1] > 0 and takes(x, *weights) and x.shape[0] >= torch.get_num_threads()


def link(
    weights: Weights,
    frequencies: Tensor | None,
    t: int,
    *,
    heads: int,
    kv_heads: int,
    scale: float,
    causal: bool = True,
    half: bool = True,
    eps: float = 1e-5,
    centred: bool = True,
) -> Link:
    """`attending` over t tokens as one link of a chain; `weights` are its own, gain first."""
    table = None if frequencies is None else table_of(frequencies, t, half)
    how = (heads, kv_heads, float(scale), causal, half, float(eps), centred)
    return Link(_forward, (*weights, table), how, causal)


def attending(
    x: Float[Tensor, "b t d"],
    gain: Float[Tensor, " d"],
    shift: Float[Tensor, " d"] | None,
    project: Float[Tensor, "all d"],
    project_bias: Float[Tensor, " all"] | None,
    out: Float[Tensor, "d width"],
    out_bias: Float[Tensor, " d"] | None,
    frequencies: Float[Tensor, " turned"] | None,
    *,
    heads: int,
    kv_heads: int,
    scale: float,
    causal: bool = True,
    half: bool = True,
    eps: float = 1e-5,
    centred: bool = True,
) -> Float[Tensor, "b t d"]:
    r"""What a token is, plus what attention brings to its normed form.

    .. math:: y = x + W_o\, \mathrm{attention}(W_p\, \mathrm{norm}(x) + b_p) + b_o

    The norm is that of layers, or without `centred` that of mean squares. `project` gives queries, keys and values side by
    side, as in `ops.short_attention`; with `frequencies`, in the order of the features (of a pair, the second member's
    count), queries and keys turn with their position, pairs being `half` of the turned features apart or neighbours. Each
    thread takes whole sequences through all of it. Book: Alice 10.3; D2L 11.7.

    >>> w = torch.randn(3 * 4, 4), None, torch.randn(4, 4), None, None
    >>> attending(torch.zeros(2, 5, 4), torch.ones(4), None, *w, heads=2, kv_heads=2, scale=1.0).abs().max()
    tensor(0.)
    """
    sizes = shapes.agree(
        "attending",
        x=(x, "b t d"),
        gain=(gain, "d"),
        shift=(shift, "d"),
        project=(project, "all d"),
        project_bias=(project_bias, "all"),
        out=(out, "d width"),
        out_bias=(out_bias, "d"),
    )
    each = shapes.groups("attending", heads, kv_heads, sizes["all"], "project")
    shapes.agree("attending", out=(out, f"d {heads * each}"))
    if gain is None:
        raise WonderlandError("attending takes a tensor for gain, not a NoneType.")
    if frequencies is not None:
        turned = shapes.agree("attending", frequencies=(frequencies, "turned"))["turned"]
        if turned % 2 or turned > each:
            raise WonderlandError(
                f"attending takes frequencies for an even number of features, at most the {each} of a head, not {turned}."
            )
    given = (x, gain, shift, project, project_bias, out, out_bias)
    how = (heads, kv_heads, float(scale), causal, half, float(eps), centred)
    table = None if frequencies is None else table_of(frequencies, x.shape[1], half)
    if not usable(*given, table, causal=causal):
        return reference(*given, table, *how)
    return native.first(_forward, *given, table, *how, native.learns(*given))


def reference(
    x, gain, shift, project, project_bias, out, out_bias, table, heads, kv_heads, scale, causal, half, eps, centred
) -> Tensor:
    """The equation; `table` holds cosines and sines (t, 2, pairs)."""
    off = x - x.mean(-1, keepdim=True) if centred else x
    normed = off * torch.rsqrt(off.square().mean(-1, keepdim=True) + eps) * gain
    fused = F.linear(normed if shift is None else normed + shift, project, project_bias)
    if table is not None:
        d = out.shape[1] // heads
        turning, values = fused.split(((heads + kv_heads) * d, kv_heads * d), -1)
        turned = turn(turning.unflatten(-1, (-1, d)), table, half).flatten(-2)
        fused = torch.cat([turned, values], -1)
    return x + F.linear(short(fused, heads, kv_heads, scale, causal=causal), out, out_bias)


def turn(x: Tensor, table: Tensor, half: bool) -> Tensor:
    """Queries or keys (b, t, heads, d) turned by their positions."""
    cosine, sine = table.unsqueeze(1).unbind(2)
    width = 2 * cosine.shape[-1]
    parts = x[..., :width].unflatten(-1, (2, -1) if half else (-1, 2))
    one, two = parts.unbind(-2 if half else -1)
    turned = torch.stack([one * cosine - two * sine, two * cosine + one * sine], -2 if half else -1).flatten(-2)
    return torch.cat([turned, x[..., width:]], -1)


def table_of(frequencies: Tensor, t: int, half: bool) -> Tensor:
    """Cosines and sines (t, 2, pairs) of all positions."""
    pairs = frequencies.shape[0] // 2
    second = frequencies[pairs:] if half else frequencies[1::2]
    angles = torch.outer(torch.arange(t, device=second.device, dtype=second.dtype), second)
    return torch.stack([angles.cos(), angles.sin()], 1)


@torch.library.custom_op("wonderland::attending", mutates_args=(), device_types="cpu")
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
    (b, t, dim), wide, step = x.shape, project.shape[0], out.shape[1]
    y, fused, said = torch.empty(x.shape, dtype=x.dtype), x.new_empty(b, t, wide), x.new_empty(b, t, step)
    sums, facts = x.new_empty(b, heads, t, 2), x.new_empty(b, t, 2)
    native.function("attending", "forward", x.dtype)(
        native.gemm(x.dtype), x.contiguous(), *native.solid(gain, shift, project, project_bias, out, out_bias, table), y,
        fused, said, sums, facts, scale, b, t, dim, max(1, SOME // t), heads, kv_heads, step // heads, causal, eps, centred,
        _turned(table), half, torch.get_num_threads(),
    )  # fmt: skip
    if not keeps:
        fused, said, sums, facts = (x.new_empty(0) for _ in range(4))
    return y, fused, said, sums, facts


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


@torch.library.custom_op("wonderland::attending_backward", mutates_args=(), device_types="cpu")
def _backward(
    x: Tensor,
    gain: Tensor,
    shift: Tensor | None,
    project: Tensor,
    out: Tensor,
    table: Tensor | None,
    fused: Tensor,
    said: Tensor,
    sums: Tensor,
    facts: Tensor,
    dy: Tensor,
    heads: int,
    kv_heads: int,
    scale: float,
    causal: bool,
    half: bool,
    eps: float,
    centred: bool,
) -> tuple[Tensor, Tensor]:
    (b, t, dim), step, threads = x.shape, out.shape[1], torch.get_num_threads()
    dx, slopes = torch.empty(x.shape, dtype=x.dtype), x.new_empty(_slopes(project, out))
    native.function("attending", "backward", x.dtype)(
        native.gemm(x.dtype), x.contiguous(), *native.solid(gain, shift, project, out, table), fused, said, sums, facts,
        dy.contiguous(), dx, slopes, scale, b, t, dim, max(1, SOME // t), heads, kv_heads, step // heads, causal, eps, centred,
        _turned(table), half, threads,
    )  # fmt: skip
    return dx, slopes


@_backward.register_fake
def _(x, gain, shift, project, out, table, fused, said, sums, facts, dy, *how):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), x.new_empty(_slopes(project, out))


def _turned(table: Tensor | None) -> int:
    return 0 if table is None else 2 * table.shape[2]


def _slopes(project: Tensor, out: Tensor) -> int:
    """How many numbers the slopes of all weights are."""
    return 3 * project.shape[1] + project.numel() + project.shape[0] + out.numel()


def _remember(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:8], *output[1:])
    ctx.how = inputs[8:-1]


def _differentiate(ctx, dy, *_):
    *given, table, fused, said, sums, facts = ctx.saved_tensors
    x, gain, shift, project, _, out, _ = given
    nothing = (None,) * (2 + len(ctx.how))
    if native.graphed():

        def equation(*given: Any) -> Tensor:
            return reference(*given, table, *ctx.how)  # pyright: ignore[reportCallIssue]

        return *native.again(equation, given, dy), *nothing
    dx, slopes = native.call(_backward, x, gain, shift, project, out, table, fused, said, sums, facts, dy, *ctx.how)
    d, wide, step = x.shape[2], project.shape[0], out.shape[1]
    parts = slopes.split((d, d, d * wide, wide, d * step, d))
    found = [part.view(like.shape) if like is not None else None for part, like in zip(parts, given[1:], strict=True)]
    return dx, *found, *nothing


_forward.register_autograd(_differentiate, setup_context=_remember)
