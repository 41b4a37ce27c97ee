"""Attention as a branch of a residual block: norm, projections and heads over short sequences, in one kernel."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import branches, native, shapes
from wonderland.ops.branches import SOME, Branch, Kind
from wonderland.ops.chain import Link
from wonderland.ops.hidden import Weights
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
    return Link(KIND, (*weights, table), how, causal)


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
        shift=(shift, "d ?"),
        project=(project, "all d"),
        project_bias=(project_bias, "all ?"),
        out=(out, "d width"),
        out_bias=(out_bias, "d ?"),
    )
    each = shapes.groups("attending", heads, kv_heads, sizes["all"], "project")
    shapes.agree("attending", out=(out, f"d {heads * each}"))
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
    weights = (gain, shift, project, project_bias, out, out_bias, table)
    return branches.alone(_there, x, *weights, heads, kv_heads, scale, causal, half, eps, centred, keeps)


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
    weights = (gain, shift, project, None, out, None, table)
    how = (heads, kv_heads, scale, causal, half, eps, centred)
    branch, slopes = _back(x.contiguous(), weights, (fused, said, sums, facts), how)
    return branches.backward([branch], dy), slopes


@_backward.register_fake
def _(x, gain, shift, project, out, table, fused, said, sums, facts, dy, *how):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), branches.slopes_for(project, out)


def _there(y: Tensor, x: Tensor, *given: Any) -> tuple[Branch, tuple[Tensor, ...]]:
    *weights, heads, kv_heads, scale, causal, half, eps, centred, keeps = given
    (b, t, _), wide, step = x.shape, weights[2].shape[0], weights[4].shape[1]
    shapes = ((b, t, wide), (b, t, step), (b, heads, t, 2), (b, t, 2))
    kept = tuple(x.new_empty(shape if keeps else 0) for shape in shapes)
    into = kept if keeps else (None,) * 4
    return _describe(x, weights, (y, *into, None), heads, kv_heads, scale, causal, half, eps, centred), kept


def _back(x: Tensor, weights: Sequence[Any], kept: Any, how: Any) -> tuple[Branch, Tensor]:
    slopes = branches.slopes_for(weights[2], weights[4])
    return _describe(x, weights, (None, *native.solid(*kept), slopes), *how), slopes


def _describe(
    x: Tensor, weights: Any, filled: Any, heads: int, kv_heads: int, scale: float, causal: bool, half: bool, eps: float,
    centred: bool,
) -> Branch:  # fmt: skip
    return branches.describe(
        x, weights, filled, attends=True, heads=heads, kv=kv_heads, d=weights[4].shape[1] // heads, scale=scale,
        causal=causal, turned=_turned(weights[6]), half=half, eps=eps, centred=centred, width=weights[2].shape[0],
        some=max(1, SOME // x.shape[1]),
    )  # fmt: skip


def _turned(table: Tensor | None) -> int:
    return 0 if table is None else 2 * table.shape[2]


def _remember(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:8], *output[1:])
    ctx.how = inputs[8:-1]


def _differentiate(ctx, dy, *_):
    (x, *weights), kept = ctx.saved_tensors[:8], ctx.saved_tensors[8:]
    gain, shift, project, _, out, _, table = weights
    nothing = (None,) * (1 + len(ctx.how))
    if native.graphed():

        def equation(*given: Any) -> Tensor:
            return reference(*given, table, *ctx.how)  # pyright: ignore[reportCallIssue]

        return *native.again(equation, (x, *weights[:-1]), dy), None, *nothing
    dx, slopes = native.call(_backward, x, gain, shift, project, out, table, *kept, dy, *ctx.how)
    return dx, *branches.slopes_of(weights, slopes), *nothing


_forward.register_autograd(_differentiate, setup_context=_remember)
KIND = Kind(_forward, _there, _back)
