"""The selective scan: a diagonal state space whose step, input and output maps change with every token."""

from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native

RULES = ("euler", "hold", "bilinear")
SEGMENT = 16
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
    u, delta, a, b, c, skip, gate, state = native.alike(u, delta, a, b, c, skip, gate, state)
    if native.transformed():
        return reference(u, delta, a, b, c, skip=skip, gate=gate, state=state, lengths=lengths, rule=rule)
    if a.shape[1] <= MOST_STATES and native.usable(u, delta, a, b, c, skip, gate, state):
        keep = torch.is_grad_enabled() and any(
            tensor is not None and tensor.requires_grad for tensor in (u, delta, a, b, c, skip, gate, state)
        )
        y, last, _ = _forward(u, delta, a.t(), b, c, skip, gate, state, lengths, RULES.index(rule), keep)
        return y, last
    return chunked(u, delta, a, b, c, skip=skip, gate=gate, state=state, lengths=lengths, rule=rule)


def discretise(delta: Tensor, a: Tensor, rule: str) -> tuple[Tensor, Tensor]:
    """How one step of length `delta` changes the state, and how much of the input it takes in: (decay, weight).

    >>> discretise(torch.tensor(0.5), torch.tensor(-2.0), "bilinear")
    (tensor(0.3333), tensor(0.3333))
    """
    if rule == "bilinear":
        q = 1 / (1 - delta * a / 2)
        return (1 + delta * a / 2) * q, delta * q
    decay = torch.exp(delta * a)
    return decay, (delta.expand_as(decay) if rule == "euler" else torch.expm1(delta * a) / a)


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
    """The same in plain PyTorch, for any device: chunks advance side by side, and states are recomputed in the backward pass."""
    state = u.new_zeros(u.shape[0], a.shape[1], u.shape[2]) if state is None else state
    delta = F.softplus(delta)
    if lengths is not None:
        real = torch.arange(u.shape[1], device=u.device) < lengths.unsqueeze(1)
        # A step of length 0 leaves the state as it is, by every rule.
        u, delta, b, c = (x.masked_fill(~real.unsqueeze(2), 0) for x in (u, delta, b, c))
        gate = None if gate is None else gate.masked_fill(~real.unsqueeze(2), 0)
    y, last = cast("tuple[Tensor, Tensor]", _Chunked.apply(u, delta, a.t(), b, c, state, rule))
    y = y if skip is None else y + skip * u
    return (y if gate is None else y * F.silu(gate)), last


def _slopes(
    delta: Tensor, a: Tensor, decay: Tensor, weight: Tensor, rule: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Derivatives of decay and weight: decay by delta, decay by a, weight by delta, weight by a."""
    if rule == "bilinear":
        q = (1 / (1 - delta * a / 2)).square()
        return a * q, delta * q, q, delta.square() * q / 2
    return decay * a, decay * delta, decay, (delta * decay - weight) / a


class _Chunked(torch.autograd.Function):
    """Chunks of 32 steps advance side by side: a first round finds the state at the start of each, a second the outputs."""

    STEPS = 32
    SPAN = 512  # tokens whose states are held at once in the backward pass

    @staticmethod
    def forward(ctx, u, delta, a, b, c, state, rule):  # pyright: ignore[reportIncompatibleMethodOverride]
        t = u.shape[1]
        outputs, starts = [], []
        last = state
        for low in range(0, t, _Chunked.SPAN):
            piece = slice(low, low + _Chunked.SPAN)
            us, ds, bs, cs = (_fold(x[:, piece]) for x in (u, delta, b, c))
            first, last = _starts(us, ds, a, bs, last, rule)
            states = first.clone()
            ys = torch.empty_like(us)
            for i in range(us.shape[0]):
                _advance(states, us[i], ds[i], a, bs[i], rule)
                torch.matmul(cs[i].unsqueeze(-2), states, out=ys[i].unsqueeze(-2))
            outputs.append(_unfold(ys, u[:, piece].shape[1]))
            starts.append(first)
        ctx.save_for_backward(u, delta, a, b, c, state, *starts)
        ctx.rule = rule
        return torch.cat(outputs, 1), last

    @staticmethod
    def backward(ctx, dy, dlast):  # pyright: ignore[reportIncompatibleMethodOverride]
        u, delta, a, b, c, state, *starts = ctx.saved_tensors
        if torch.is_grad_enabled():

            def equation(u, delta, a, b, c, state):
                return _walk(u, delta, a.t(), b, c, state, ctx.rule)

            return *native.again(equation, (u, delta, a, b, c, state), (dy, dlast)), None
        carry = dlast.clone()
        da = torch.zeros_like(a)
        pieces = []
        for index in reversed(range(len(starts))):
            piece = slice(index * _Chunked.SPAN, (index + 1) * _Chunked.SPAN)
            length = u[:, piece].shape[1]
            rows = [_fold(x[:, piece]) for x in (u, delta, b, c, dy)]
            grads, carry = _reverse(rows, a, starts[index], carry, da, ctx.rule)
            pieces.append([_unfold(grad, length) for grad in grads])
        du, ddelta, db, dc = (torch.cat(grads[::-1], 1) for grads in zip(*pieces, strict=True))
        return du, ddelta, da, db, dc, carry, None


def _fold(x: Tensor) -> Tensor:
    """(b, t, d) as steps within chunks, steps first: (32, b, chunks, d). What is added at the end is 0 and does nothing."""
    steps = min(_Chunked.STEPS, x.shape[1])
    chunks = -(-x.shape[1] // steps)
    x = F.pad(x, (0, 0, 0, chunks * steps - x.shape[1])) if chunks * steps != x.shape[1] else x
    return x.reshape(x.shape[0], chunks, steps, x.shape[2]).permute(2, 0, 1, 3).contiguous()


def _unfold(x: Tensor, length: int) -> Tensor:
    return x.permute(1, 2, 0, 3).reshape(x.shape[1], -1, x.shape[3])[:, :length]


def _advance(states: Tensor, u: Tensor, delta: Tensor, a: Tensor, b: Tensor, rule: str) -> tuple[Tensor, Tensor]:
    """One step of all chunks, in place; returns the decay and the weight of the step."""
    decay, weight = discretise(delta.unsqueeze(-2), a, rule)
    states.mul_(decay)
    if rule == "euler":
        states.addcmul_((delta * u).unsqueeze(-2), b.unsqueeze(-1))
    else:
        states.addcmul_(weight * u.unsqueeze(-2), b.unsqueeze(-1))
    return decay, weight


def _starts(u: Tensor, delta: Tensor, a: Tensor, b: Tensor, state: Tensor, rule: str) -> tuple[Tensor, Tensor]:
    """The state at the start of each chunk (b, chunks, n, d), and the one after the last."""
    shape = (*u.shape[1:3], *a.shape)
    ends, whole = u.new_zeros(shape), None
    for i in range(u.shape[0]):
        decay, _ = _advance(ends, u[i], delta[i], a, b[i], rule)
        if rule == "bilinear":
            whole = decay if whole is None else whole.mul_(decay)
    if whole is None:
        whole = torch.exp(delta.sum(0).unsqueeze(-2) * a)
    first = u.new_empty(shape)
    for k in range(shape[1]):
        first[:, k] = state
        state = whole[:, k] * state + ends[:, k]
    return first, state


def _reverse(rows: list[Tensor], a: Tensor, first: Tensor, carry: Tensor, da: Tensor, rule: str):
    """Gradients of u, delta, b, c over one span, and of the state before it; adds to da."""
    u, delta, b, c, dy = rows
    steps = u.shape[0]
    states = u.new_empty((steps + 1, *first.shape))
    decays = u.new_empty((steps, *first.shape))
    states[0] = first
    for i in range(steps):
        states[i + 1] = states[i]
        decays[i] = _advance(states[i + 1], u[i], delta[i], a, b[i], rule)[0]
    # The adjoint state runs backwards with the same two rounds.
    ends, whole = torch.zeros_like(first), None
    for i in reversed(range(steps)):
        ends.addcmul_(c[i].unsqueeze(-1), dy[i].unsqueeze(-2)).mul_(decays[i])
        whole = decays[i].clone() if whole is None else whole.mul_(decays[i])
    assert whole is not None
    g = torch.empty_like(first)
    for k in reversed(range(first.shape[1])):
        g[:, k] = carry
        carry = whole[:, k] * carry + ends[:, k]
    du, ddelta, db, dc = (torch.empty_like(x) for x in (u, delta, b, c))
    for i in reversed(range(steps)):
        g.addcmul_(c[i].unsqueeze(-1), dy[i].unsqueeze(-2))
        torch.matmul(states[i + 1], dy[i].unsqueeze(-1), out=dc[i].unsqueeze(-1))
        if rule == "euler":
            q = torch.matmul(b[i].unsqueeze(-2), g).squeeze(-2)
            torch.mul(q, delta[i], out=du[i])
            torch.matmul(g, (delta[i] * u[i]).unsqueeze(-1), out=db[i].unsqueeze(-1))
            g.mul_(decays[i])
            moved = g * states[i]
            torch.sum(moved * a, -2, out=ddelta[i]).addcmul_(q, u[i])
            da += torch.einsum("bknd,bkd->nd", moved, delta[i])
        else:
            step = delta[i].unsqueeze(-2)
            weight = discretise(step, a, rule)[1]
            decay_delta, decay_a, weight_delta, weight_a = _slopes(step, a, decays[i], weight, rule)
            taken = g * weight
            torch.matmul(b[i].unsqueeze(-2), taken, out=du[i].unsqueeze(-2))
            torch.matmul(taken, u[i].unsqueeze(-1), out=db[i].unsqueeze(-1))
            ddecay, dweight = g * states[i], g * u[i].unsqueeze(-2) * b[i].unsqueeze(-1)
            torch.sum(ddecay * decay_delta + dweight * weight_delta, -2, out=ddelta[i])
            da += (ddecay * decay_a + dweight * weight_a).sum((0, 1))
            g.mul_(decays[i])
    return (du, ddelta, db, dc), carry


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
    u, gate = native.lined(u), None if gate is None else native.lined(gate)
    delta, a, b, c = delta.contiguous(), a.contiguous(), b.contiguous(), c.contiguous()
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
    u, gate = native.lined(u), None if gate is None else native.lined(gate)
    delta, a, b, c = delta.contiguous(), a.contiguous(), b.contiguous(), c.contiguous()
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
    if torch.is_grad_enabled():

        def equation(u, delta, a, b, c, skip, gate, state):
            more = {"skip": skip, "gate": gate, "state": state, "lengths": lengths, "rule": RULES[ctx.rule]}
            return reference(u, delta, a.t(), b, c, **more)

        return *native.again(equation, (*tensors, state), (dy, dlast)), None, None, None
    du, ddelta, da, db, dc, dskip, dgate, dfirst = _backward(*tensors, lengths, saved, dy, dlast, ctx.rule)
    skip, gate, state = ctx.given
    optional = (dskip if skip else None, dgate if gate else None, dfirst if state else None)
    return du, ddelta, da, db, dc, *optional, None, None, None


_forward.register_autograd(_differentiate, setup_context=_remember)
