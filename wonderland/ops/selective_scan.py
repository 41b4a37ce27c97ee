"""The selective scan: a diagonal state space whose step, input and output maps change with every token."""

import math
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native, shapes
from wonderland.ops.exported import exported_selective_scan
from wonderland.ops.over_time import is_exporting
from wonderland.ops.steps import apart, discretise

RULES = ("euler", "hold", "bilinear")
SEGMENT = 16  # steps between two states that the kernel keeps
PIECE = 32  # steps of a segment in plain PyTorch
CHUNK = 64
MOST_STATES = 1024

Row = Float[Tensor, "b t d"]
States = Float[Tensor, "b n d"]


def selective_scan(
    u: Row,
    delta: Row,
    a: Float[Tensor, "d n"],
    b: Float[Tensor, "b t n"],
    c: Float[Tensor, "b t n"],
    *,
    skip: Float[Tensor, " d"] | None = None,
    gate: Row | None = None,
    state: States | None = None,
    lengths: Int[Tensor, " b"] | None = None,
    rule: str = "euler",
) -> tuple[Row, States]:
    r"""Outputs at every position and the state after the last, in time and memory linear in t.

    .. math::
        s_i = \bar A_i \odot s_{i-1} + \bar w_i \odot (B_i u_i), \qquad y_i = (C_i^\top s_i + D \odot u_i) \odot \mathrm{silu}(z_i)

    with steps :math:`\Delta_i = \mathrm{softplus}(\delta_i)` and one of three rules that turn continuous time into steps:
    `euler`, the one of Mamba: :math:`\bar A = e^{\Delta A},\ \bar w = \Delta`;
    `hold` (zero-order hold): :math:`\bar A = e^{\Delta A},\ \bar w = (e^{\Delta A} - 1) / A`;
    `bilinear`: :math:`\bar A = (1 + \Delta A/2) / (1 - \Delta A/2),\ \bar w = \Delta / (1 - \Delta A/2)`.
    Beyond a row's length nothing is read, the output is 0 and the state stays.

    The kernel keeps one state in 16 and recomputes the others in the backward pass; without a kernel, `chunked` does the
    same in plain PyTorch. Book: Alice 13.4.3. Paper: Gu and Dao, 2023.
    """
    if rule not in RULES:
        raise WonderlandError(f"A selective scan has the rules {', '.join(RULES)}, not {rule!r}.")
    sizes = shapes.agree(
        "selective_scan", u=(u, "b t d"), delta=(delta, "b t d"), a=(a, "d n"), b=(b, "b t n"), c=(c, "b t n"),
        skip=(skip, "d ?"), gate=(gate, "b t d ?"), state=(state, "b n d ?"),
    )  # fmt: skip
    shapes.real("selective_scan", u=u, delta=delta, a=a, b=b, c=c, skip=skip, gate=gate, state=state)
    lengths = shapes.counted("selective_scan", lengths, sizes["b"], sizes["t"])
    u, delta, a, b, c, skip, gate, state = native.common_dtype(u, delta, a, b, c, skip, gate, state)
    if is_exporting():
        return exported_selective_scan(u, delta, a, b, c, skip, gate, state, lengths, rule)
    if native.is_transformed():
        return reference(u, delta, a, b, c, skip=skip, gate=gate, state=state, lengths=lengths, rule=rule)
    if a.shape[1] <= MOST_STATES and native.usable("selective_scan", u, delta, a, b, c, skip, gate, state):
        keep = native.needs_backward(u, delta, a, b, c, skip, gate, state)
        y, last, _ = native.call(_forward, u, delta, a.t(), b, c, skip, gate, state, lengths, RULES.index(rule), keep)
        return y, last
    return chunked(u, delta, a, b, c, skip=skip, gate=gate, state=state, lengths=lengths, rule=rule)


def reference(
    u: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    skip: Tensor | None = None,
    gate: Tensor | None = None,
    state: Tensor | None = None,
    lengths: Tensor | None = None,
    rule: str = "euler",
) -> tuple[Tensor, Tensor]:
    """The equation, one token after the other."""
    state = u.new_zeros(u.shape[0], a.shape[1], u.shape[2]) if state is None else state
    return _walk(u, F.softplus(delta), a, b, c, state, rule, skip, gate, lengths)


def _walk(
    u: Tensor, steps: Tensor, a: Tensor, b: Tensor, c: Tensor, s: Tensor, rule: str,
    skip: Tensor | None = None, gate: Tensor | None = None, lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    outputs = []
    for i in range(u.shape[1]):
        decay, weight = discretise(steps[:, i, None], a.t(), rule)
        new = decay * s + weight * u[:, i, None] * b[:, i, :, None]
        y = (new * c[:, i, :, None]).sum(1)
        y = y if skip is None else y + skip * u[:, i]
        y = y if gate is None else y * F.silu(gate[:, i])
        if lengths is None:
            s = new
        else:
            real = (i < lengths).unsqueeze(1)
            s, y = torch.where(real.unsqueeze(2), new, s), torch.where(real, y, torch.zeros_like(y))
        outputs.append(y)
    return torch.stack(outputs, 1), s


def chunked(
    u: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    skip: Tensor | None = None,
    gate: Tensor | None = None,
    state: Tensor | None = None,
    lengths: Tensor | None = None,
    rule: str = "euler",
) -> tuple[Tensor, Tensor]:
    """The same in plain PyTorch, for any device: by segments, whose states are recomputed in the backward pass."""
    state = u.new_zeros(u.shape[0], a.shape[1], u.shape[2]) if state is None else state
    if lengths is None:
        delta = F.softplus(delta)
    else:
        real = torch.arange(u.shape[1], device=u.device) < lengths.unsqueeze(1)
        u, delta, b, c = (x.masked_fill(~real.unsqueeze(2), 0) for x in (u, delta, b, c))
        # A step of length 0 leaves the state as it is, by every rule.
        delta = F.softplus(delta).masked_fill(~real.unsqueeze(2), 0)
        gate = None if gate is None else gate.masked_fill(~real.unsqueeze(2), 0)
    y, last = cast("tuple[Tensor, Tensor]", _Chunked.apply(u, delta, a.t(), b, c, state, rule))
    y = y if skip is None else y + skip * u
    return (y if gate is None else y * F.silu(gate)), last


def _derivatives(
    delta: Tensor, a: Tensor, decay: Tensor, weight: Tensor, rule: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Derivatives of decay and weight: decay by delta, decay by a, weight by delta, weight by a."""
    if rule == "bilinear":
        q = (1 / (1 - delta * a / 2)).square()
        return a * q, delta * q, q, delta.square() * q / 2
    z, small, _ = apart(delta * a)
    series = delta.square() * (1 / 2 + z * (1 / 3 + z * (1 / 8 + z * (1 / 30))))
    exact = (delta * decay - weight) / torch.where(small, torch.ones_like(a), a)
    return decay * a, decay * delta, decay, torch.where(small, series, exact)


class _Chunked(torch.autograd.Function):
    """Segments of 32 steps: all that does not wait for the state is done for a segment at once, in buffers used again."""

    @staticmethod
    def forward(ctx, u, delta, a, b, c, state, rule):  # pyright: ignore[reportIncompatibleMethodOverride]
        segment, y = _Segment(u, a, rule), torch.empty(u.shape, dtype=u.dtype, device=u.device)
        us, ds, ys = (x.transpose(0, 1) for x in (u, delta, y))
        bs, cs = _steps_first(b), _steps_first(c)
        starts, last = [], state
        for low in range(0, len(us), PIECE):
            piece = slice(low, low + PIECE)
            starts.append(last)
            states = segment.run(us[piece], ds[piece], bs[piece], last)
            ys[piece] = torch.matmul(cs[piece].unsqueeze(-2), states[1:]).squeeze(-2)
            last = states[-1].clone()
        ctx.save_for_backward(u, delta, a, b, c, *starts)
        ctx.rule = rule
        return y, last

    @staticmethod
    def backward(ctx, dy, dlast):  # pyright: ignore[reportIncompatibleMethodOverride]
        u, delta, a, b, c, *starts = ctx.saved_tensors
        if native.is_second_order():

            def equation(u, delta, a, b, c, state):
                return _walk(u, delta, a.t(), b, c, state, ctx.rule)

            return *native.differentiable_backward(equation, (u, delta, a, b, c, starts[0]), (dy, dlast)), None
        segment, carry = _Segment(u, a, ctx.rule), dlast
        total = torch.zeros_like(segment.decays)
        du, ddelta = (torch.empty(u.shape, dtype=u.dtype, device=u.device) for _ in range(2))
        bs, cs = _steps_first(b), _steps_first(c)
        db, dc = torch.empty_like(bs), torch.empty_like(cs)
        rows = [u.transpose(0, 1), delta.transpose(0, 1), bs, cs, dy.transpose(0, 1)]
        grads = [du.transpose(0, 1), ddelta.transpose(0, 1), db, dc]
        for index in reversed(range(len(starts))):
            piece = slice(index * PIECE, (index + 1) * PIECE)
            carry = segment.reverse([x[piece] for x in rows], starts[index], carry, [x[piece] for x in grads], total)
        return du, ddelta, total.sum((0, 1)), _steps_first(db), _steps_first(dc), carry, None


def _steps_first(x: Tensor) -> Tensor:
    """(b, t, n) as (t, b, n) and back, laid out so: a segment is then one piece of memory."""
    return x.transpose(0, 1).contiguous()


def _sum_channels(x: Tensor, weights: Tensor, out: Tensor) -> None:
    """Sums of (s, b, n, d) over channels, weighted by (s, b, d). A row times columns takes an eighth of rows times a column."""
    torch.matmul(weights.unsqueeze(-2), x.transpose(-1, -2), out=out.unsqueeze(-2))


class _Segment:
    """The buffers of a segment, steps first (32, b, n, d), and what is computed in them."""

    def __init__(self, u: Tensor, a: Tensor, rule: str):
        shape = (min(PIECE, u.shape[1]), u.shape[0], *a.shape)
        self.a, self.rule = a.contiguous(), rule
        self.binary = self.a * math.log2(math.e)  # powers of 2 are made in half the time of powers of e
        self.states = u.new_empty((shape[0] + 1, *shape[1:]))
        self.decays, self.adjoints, self.work = u.new_empty(shape), u.new_empty(shape), u.new_empty(shape)
        self.weights = None
        # Views of single steps are made once: made anew they would cost half as much as what is done with them.
        self.each = [list(buffer.unbind(0)) for buffer in (self.states, self.decays, self.adjoints)]

    def run(self, u: Tensor, delta: Tensor, b: Tensor, state: Tensor) -> Tensor:
        """The states of a segment, the one before it first: (steps + 1, b, n, d)."""
        steps = len(u)
        decays, drives = self.decays[:steps], self.states[1 : steps + 1]
        if self.rule == "euler":
            torch.mul(delta.unsqueeze(-2), self.binary, out=decays).exp2_()
            torch.mul((delta * u).unsqueeze(-2), b.unsqueeze(-1), out=drives)
        else:
            decay, self.weights = discretise(delta.unsqueeze(-2), self.a, self.rule)
            decays.copy_(decay)
            torch.mul(self.weights * u.unsqueeze(-2), b.unsqueeze(-1), out=drives)
        states, each_decay, _ = self.each
        states[0].copy_(state)
        # What comes in at a step stands where its state will be.
        for i in range(steps):
            states[i + 1].addcmul_(each_decay[i], states[i])
        return self.states[: steps + 1]

    def reverse(self, rows: list[Tensor], state: Tensor, carry: Tensor, grads: list[Tensor], total: Tensor) -> Tensor:
        """Write the gradients of u, delta, b, c of a segment, add those of a at each step to `total`, and return that of the
        state before it."""
        u, delta, b, c, dy = rows
        du, ddelta, db, dc = grads
        states, steps = self.run(u, delta, b, state), len(u)
        # The adjoint of each state: what its own output asks for, and what the state after it does.
        adjoints, work, decays = self.adjoints[:steps], self.work[:steps], self.decays[:steps]
        torch.mul(c.unsqueeze(-1), dy.unsqueeze(-2), out=adjoints)
        _, each_decay, each = self.each
        each[steps - 1].add_(carry)
        for i in range(steps - 1, 0, -1):
            each[i - 1].addcmul_(each_decay[i], each[i])
        _sum_channels(states[1:], dy, dc)
        if self.rule == "euler":
            _sum_channels(adjoints, delta * u, db)
            taken = torch.matmul(b.unsqueeze(-2), adjoints).squeeze(-2)
            torch.mul(taken, delta, out=du)
            adjoints.mul_(decays)
            before = each[0].clone()
            torch.mul(adjoints, states[:-1], out=work)
            total[:steps].addcmul_(work, delta.unsqueeze(-2))
            torch.sum(work.mul_(self.a), -2, out=ddelta).addcmul_(taken, u)
            return before
        assert self.weights is not None
        step = delta.unsqueeze(-2)
        decay_delta, decay_a, weight_delta, weight_a = _derivatives(step, self.a, decays, self.weights, self.rule)
        taken = adjoints * self.weights
        du.copy_(torch.matmul(b.unsqueeze(-2), taken).squeeze(-2))
        _sum_channels(taken, u, db)
        by_decay, by_weight = adjoints * states[:-1], adjoints * u.unsqueeze(-2) * b.unsqueeze(-1)
        torch.sum(by_decay * decay_delta + by_weight * weight_delta, -2, out=ddelta)
        total[:steps] += by_decay * decay_a + by_weight * weight_a
        return adjoints[0] * decays[0]


@torch.library.custom_op("wonderland::selective_scan", mutates_args=(), device_types="cpu")
def _forward(
    u: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    skip: Tensor | None,
    gate: Tensor | None,
    state: Tensor | None,
    lengths: Tensor | None,
    rule: int,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    batch, t, d = u.shape
    n = a.shape[0]
    u, gate = native.evenly_spaced(u), None if gate is None else native.evenly_spaced(gate)
    delta, a, b, c = delta.contiguous(), a.contiguous(), b.contiguous(), c.contiguous()
    skip = None if skip is None else skip.contiguous()
    y, last = u.new_empty(u.shape), u.new_empty(batch, n, d)
    saved = u.new_empty((batch, -(-t // SEGMENT), n, d) if keep else 0)
    native.function("selective_scan", "forward", u.dtype)(
        u, u.stride(1), delta, a, b, c, skip, gate, gate.stride(1) if gate is not None else 0,
        None if state is None else state.contiguous(), lengths, y, last, saved if keep else None,
        batch, t, d, n, CHUNK, rule, torch.get_num_threads(),
    )  # fmt: skip
    return y, last, saved


@_forward.register_fake
def _(u, delta, a, b, c, skip, gate, state, lengths, rule, keep):
    batch, t, d = u.shape
    n = a.shape[0]
    saved = u.new_empty((batch, -(-t // SEGMENT), n, d) if keep else 0)
    return u.new_empty(u.shape), u.new_empty(batch, n, d), saved


@torch.library.custom_op("wonderland::selective_scan_backward", mutates_args=(), device_types="cpu")
def _backward(
    u: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    skip: Tensor | None,
    gate: Tensor | None,
    lengths: Tensor | None,
    saved: Tensor,
    dy: Tensor,
    dlast: Tensor,
    rule: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    batch, t, d = u.shape
    n = a.shape[0]
    u, gate = native.evenly_spaced(u), None if gate is None else native.evenly_spaced(gate)
    delta, a, b, c = delta.contiguous(), a.contiguous(), b.contiguous(), c.contiguous()
    skip = None if skip is None else skip.contiguous()
    du, ddelta = u.new_empty(u.shape), u.new_empty(u.shape)
    dgate = u.new_empty(u.shape if gate is not None else 0)
    chunks = -(-d // CHUNK)
    da, dskip, dfirst = u.new_empty(batch, n, d), u.new_empty(batch, d), u.new_empty(batch, n, d)
    db, dc = u.new_empty(chunks, batch, t, n), u.new_empty(chunks, batch, t, n)
    native.function("selective_scan", "backward", u.dtype)(
        u, u.stride(1), delta, a, b, c, skip, gate, gate.stride(1) if gate is not None else 0, lengths, saved,
        dy.contiguous(), dlast.contiguous(), du, ddelta, da, db, dc, dskip, dgate if gate is not None else None, dfirst,
        batch, t, d, n, CHUNK, rule, torch.get_num_threads(),
    )  # fmt: skip
    return du, ddelta, da.sum(0), db.sum(0), dc.sum(0), dskip.sum(0), dgate, dfirst


@_backward.register_fake
def _(u, delta, a, b, c, skip, gate, lengths, saved, dy, dlast, rule):
    new = u.new_empty
    first = (u.shape[0], *a.shape)
    dgate = new(u.shape if gate is not None else 0)
    return new(u.shape), new(u.shape), new(a.shape), new(b.shape), new(c.shape), new(u.shape[2]), dgate, new(first)


def _remember(ctx, inputs, output):
    *tensors, lengths, rule, _ = inputs
    u, delta, a, b, c, skip, gate, state = tensors
    ctx.save_for_backward(u, delta, a, b, c, skip, gate, state, lengths, output[2])
    ctx.rule, ctx.given = rule, (skip is not None, gate is not None, state is not None)


def _differentiate(ctx, dy, dlast, dsaved):
    *tensors, state, lengths, saved = ctx.saved_tensors
    if native.is_second_order():

        def equation(u, delta, a, b, c, skip, gate, state):
            more = {"skip": skip, "gate": gate, "state": state, "lengths": lengths, "rule": RULES[ctx.rule]}
            return reference(u, delta, a.t(), b, c, **more)

        return *native.differentiable_backward(equation, (*tensors, state), (dy, dlast)), None, None, None
    du, ddelta, da, db, dc, dskip, dgate, dfirst = native.call(_backward, *tensors, lengths, saved, dy, dlast, ctx.rule)
    skip, gate, state = ctx.given
    optional = (dskip if skip else None, dgate if gate else None, dfirst if state else None)
    return du, ddelta, da, db, dc, *optional, None, None, None


_forward.register_autograd(_differentiate, setup_context=_remember)
