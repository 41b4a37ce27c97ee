"""The weighted average of RWKV: each channel averages earlier values with decaying weights, and a bonus for the current one."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native, shapes
from wonderland.ops.exported import exported_wkv
from wonderland.ops.over_time import is_exporting
from wonderland.ops.steps import empty, no_tokens, weighted_step

SEGMENT = 16


Row = Float[Tensor, "b t d"]
Channels = Float[Tensor, " d"]
Sums = Float[Tensor, "b 2 d"]
Top = Float[Tensor, "b d"]


def wkv(
    k: Row,
    v: Row,
    decay: Channels,
    bonus: Channels,
    *,
    state: tuple[Sums, Top] | None = None,
    lengths: Int[Tensor, " b"] | None = None,
) -> tuple[Row, tuple[Sums, Top]]:
    r"""Averages at every position, and the state after the last.

    .. math::
        y_i = \frac{\sum_{j<i} e^{k_j + (i-1-j)\, w} v_j + e^{k_i + u} v_i}{\sum_{j<i} e^{k_j + (i-1-j)\, w} + e^{k_i + u}}

    with `decay` :math:`w \le 0` and `bonus` :math:`u` per channel. The book counts one decay more, :math:`(i-j) w`: the same
    with :math:`u - w` for :math:`u`. The state holds numerator and denominator (b, 2, d) below the exponent `top` (b, d); no
    gradient goes through `top`, since it only names a scale. Beyond a row's length the output is 0 and the state stays.

    Book: Alice 13.4.2. Paper: Peng et al., 2023.
    """
    if state is not None and (not isinstance(state, tuple) or len(state) != 2):
        raise WonderlandError("wkv takes a state of two tensors, the sums (b, 2, d) and their exponent (b, d).")
    sums, top = (None, None) if state is None else state
    shapes.real("wkv", k=k, v=v, decay=decay, bonus=bonus)
    sizes = shapes.agree(
        "wkv",
        k=(k, "b t d"),
        v=(v, "b t d"),
        decay=(decay, "d"),
        bonus=(bonus, "d"),
        sums=(sums, "b 2 d ?"),
        top=(top, "b d ?"),
    )
    lengths = shapes.counted("wkv", lengths, sizes["b"], sizes["t"])
    k, v, decay, bonus, sums, top = native.common_dtype(k, v, decay, bonus, sums, top)
    state = None if state is None else (sums, top)
    if is_exporting():
        return exported_wkv(k, v, decay, bonus, state, lengths)
    if native.is_transformed():
        return reference(k, v, decay, bonus, state=state, lengths=lengths)
    if native.usable("wkv", k, v, decay, bonus, sums, top):
        keep = native.needs_backward(k, v, decay, bonus, sums)
        y, sums, top, _ = native.call(
            _forward, k, v, decay, bonus, sums, None if top is None else top.detach(), lengths, keep
        )
        return y, (sums, top)
    return chunked(k, v, decay, bonus, state=state, lengths=lengths)


def reference(
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    bonus: Tensor,
    *,
    state: tuple[Tensor, Tensor] | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The equation, one token after the other, with a running maximum."""
    (a, b), o = no_tokens(k) if state is None else (state[0].unbind(1), state[1])
    outputs = []
    for i in range(k.shape[1]):
        new, y = weighted_step((a, b, o), k[:, i], v[:, i], decay, bonus)
        if lengths is not None:
            real = (i < lengths).unsqueeze(1)
            new = tuple(torch.where(real, fresh, old) for fresh, old in zip(new, (a, b, o), strict=True))
            y = torch.where(real, y, torch.zeros_like(y))
        a, b, o = new
        outputs.append(y)
    if (
        len(outputs) == 1
    ):  # one token does not depend on the decay: its gradient is 0 and, as in the other forms, not None
        outputs = [outputs[0] + decay[:0].sum()]
    return torch.stack(outputs, 1), (torch.stack((a, b), 1), o)


def chunked(
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    bonus: Tensor,
    *,
    state: tuple[Tensor, Tensor] | None = None,
    lengths: Tensor | None = None,
    steps: int = 16,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The same in plain PyTorch, for any device: all pairs within chunks of 16 at once, and one carry from chunk to chunk."""
    batch, t, d = k.shape
    real = None
    if lengths is not None:
        real = (torch.arange(t, device=k.device) < lengths.unsqueeze(1)).unsqueeze(2)
    steps = min(steps, t)
    chunks = -(-t // steps)
    (a, b), o = no_tokens(k) if state is None else (state[0].unbind(1), state[1])

    def fold(x: Tensor, value: float) -> Tensor:
        x = x if real is None else x.masked_fill(~real, value)
        return F.pad(x, (0, 0, 0, chunks * steps - t), value=value).view(batch, chunks, steps, d)

    # Tokens that are not real weigh nothing, and time stands still for them: distances count real steps only.
    keys, values = fold(k, empty(k.dtype)), fold(v, 0.0)
    live = fold(torch.ones_like(k[..., :1]).expand_as(k), 0.0)
    clock = live.cumsum(2)
    total = clock[:, :, -1] * decay
    order = torch.arange(steps, device=k.device)
    earlier = (order.unsqueeze(1) > order).unsqueeze(2)
    pair = keys.unsqueeze(2) + (clock.unsqueeze(3) - 1 - clock.unsqueeze(2)) * decay
    pair = torch.where(earlier, pair, pair.new_tensor(empty(k.dtype)))
    present = keys + bonus
    ahead = keys + (clock[:, :, -1:] - clock) * decay
    # What each chunk adds to the sums after it, below its own maximum.
    tops = ahead.detach().amax(2)
    weights = torch.exp(ahead - tops.unsqueeze(2)) * live
    adds = (weights * values).sum(2), weights.sum(2)
    starts = []
    for index in range(chunks):
        starts.append((a, b, o))
        top = torch.maximum(o + total[:, index], tops[:, index]).detach()
        past, new = torch.exp(o + total[:, index] - top), torch.exp(tops[:, index] - top)
        a, b, o = past * a + new * adds[0][:, index], past * b + new * adds[1][:, index], top
    before = [torch.stack(parts, 1).unsqueeze(2) for parts in zip(*starts, strict=True)]
    past = before[2] + (clock - 1) * decay
    top = torch.maximum(torch.maximum(pair.amax(3), present), past).detach()
    pair, present, past = torch.exp(pair - top.unsqueeze(3)), torch.exp(present - top), torch.exp(past - top)
    over = (pair * values.unsqueeze(2)).sum(3) + present * values + past * before[0]
    y = (over / (pair.sum(3) + present + past * before[1])).reshape(batch, -1, d)[:, :t]
    return (y if real is None else y.masked_fill(~real, 0)), (torch.stack((a, b), 1), o)


@torch.library.custom_op("wonderland::wkv", mutates_args=(), device_types="cpu")
def _forward(
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    bonus: Tensor,
    sums: Tensor | None,
    top: Tensor | None,
    lengths: Tensor | None,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, t, d = k.shape
    y, last, highest, saved = _empties(k, keep)
    native.function("wkv", "forward", k.dtype)(
        k.contiguous(), v.contiguous(), decay.contiguous(), bonus.contiguous(),
        None if sums is None else sums.contiguous(), None if top is None else top.contiguous(), lengths,
        y, last, highest, saved if keep else None, batch, t, d, torch.get_num_threads(),
    )  # fmt: skip
    return y, last, highest, saved


def _empties(k: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, t, d = k.shape
    saved = (batch, -(-t // SEGMENT), 3, d) if keep else (0,)
    return k.new_empty(k.shape), k.new_empty(batch, 2, d), k.new_empty(batch, d), k.new_empty(saved)


@_forward.register_fake
def _(k, v, decay, bonus, sums, top, lengths, keep):
    return _empties(k, keep)


@torch.library.custom_op("wonderland::wkv_backward", mutates_args=(), device_types="cpu")
def _backward(
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    bonus: Tensor,
    lengths: Tensor | None,
    saved: Tensor,
    dy: Tensor,
    dlast: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    batch, t, d = k.shape
    dk, dv, dsums = k.new_empty(k.shape), k.new_empty(k.shape), k.new_empty(batch, 2, d)
    ddecay, dbonus = k.new_empty(batch, d), k.new_empty(batch, d)
    native.function("wkv", "backward", k.dtype)(
        k.contiguous(), v.contiguous(), decay.contiguous(), bonus.contiguous(), lengths, saved, dy.contiguous(),
        dlast.contiguous(), dk, dv, ddecay, dbonus, dsums, batch, t, d, torch.get_num_threads(),
    )  # fmt: skip
    return dk, dv, ddecay.sum(0), dbonus.sum(0), dsums


@_backward.register_fake
def _(k, v, decay, bonus, lengths, saved, dy, dlast):
    new = k.new_empty
    return new(k.shape), new(k.shape), new(decay.shape), new(bonus.shape), new(k.shape[0], 2, k.shape[2])


def _remember(ctx, inputs, output):
    k, v, decay, bonus, sums, top, lengths, _ = inputs
    ctx.save_for_backward(k, v, decay, bonus, sums, top, lengths, output[3])


def _differentiate(ctx, dy, dlast, dtop, dsaved):
    k, v, decay, bonus, sums, top, lengths, saved = ctx.saved_tensors
    if native.is_second_order():

        def equation(k, v, decay, bonus, sums):
            y, (last, _) = reference(k, v, decay, bonus, state=None if sums is None else (sums, top), lengths=lengths)
            return y, last

        return *native.differentiable_backward(equation, (k, v, decay, bonus, sums), (dy, dlast)), None, None, None
    dk, dv, ddecay, dbonus, dsums = native.call(_backward, k, v, decay, bonus, lengths, saved, dy, dlast)
    return dk, dv, ddecay, dbonus, None if sums is None else dsums, None, None, None


_forward.register_autograd(_differentiate, setup_context=_remember)
