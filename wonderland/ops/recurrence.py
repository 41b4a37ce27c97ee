"""Nonlinear recurrences: RNN, GRU and LSTM cells, whose tokens have to be computed one after another."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.ops import native, shapes
from wonderland.ops.cells import CELLS
from wonderland.ops.exported import exported_recurrence
from wonderland.ops.over_time import is_exporting


def recurrence(
    cell: str,
    x: Float[Tensor, "b t d"],
    weight_input: Float[Tensor, "g d"],
    weight_state: Float[Tensor, "g e"],
    bias: Float[Tensor, " g"] | None,
    state: tuple[Float[Tensor, "b e"], ...],
    *,
    extra: Float[Tensor, " e"] | None = None,
    lengths: Int[Tensor, " b"] | None = None,
    leak: float = 1.0,
) -> tuple[Float[Tensor, "b t e"], tuple[Float[Tensor, "b e"], ...]]:
    r"""The states of a recurrent layer after each token, and the last one.

    With :math:`u_i = W x_i + b` and :math:`v_i = V s_{i-1}`, each in as many blocks as the cell has gates:

    .. math::
        \text{rnn:} \quad & s_i = (1-\lambda)\, s_{i-1} + \lambda\, \phi(u_i + v_i) \\
        \text{lstm:} \quad & c_i = \sigma(f_i) \odot c_{i-1} + \sigma(\iota_i) \odot \tanh(g_i), \quad
        s_i = \sigma(o_i) \odot \tanh(c_i) \\
        \text{gru after:} \quad & n_i = \tanh(u^n_i + r_i \odot (v^n_i + b^n)), \quad
        s_i = (1 - z_i) \odot n_i + z_i \odot s_{i-1} \\
        \text{gru before:} \quad & n_i = \tanh(u^n_i + V^n (r_i \odot s_{i-1})), \quad \text{then the same} \\
        \text{ligru:} \quad & s_i = \gamma_i \odot \phi(u^s_i + v^s_i) + (1 - \gamma_i) \odot s_{i-1}

    Shapes: x (b, t, d), weight_input (g e, d), weight_state (g e, e), bias (g e), each of state (b, e), extra (e, the
    candidate's recurrent bias :math:`b^n`), lengths (b,): row r ends after that many tokens, its later states are 0.
    Cells: lstm (gates in the order i, f, g, o), gru_after and gru_before (r, z, n), rnn_tanh, rnn_relu, rnn_identity
    (`leak` is :math:`\lambda`), ligru_tanh, ligru_relu, ligru_identity (gate, candidate).

    A compiled kernel does the steps where there is one; its backward pass is written out, a second derivative goes
    through `reference`. One step alone is faster in plain PyTorch.

    >>> states, (last,) = recurrence("rnn_tanh", torch.ones(1, 3, 2), torch.eye(2), torch.zeros(2, 2), None, (torch.zeros(1, 2),))
    >>> bool((states[:, -1] == last).all())
    True
    """
    if cell not in CELLS:
        raise WonderlandError(f"There is no recurrence called {cell!r}.{nearest(cell, CELLS)}")
    kind, (h, *more) = CELLS[cell], (*state, None)
    if len(state) != kind.states:
        raise WonderlandError(f"{cell} takes a state of {kind.states} tensors, not of {len(state)}.")
    sizes = shapes.agree(cell, x=(x, "b t d"), weight_input=(weight_input, "g d"), bias=(bias, "g ?"), state=(h, "b e"))
    shapes.real(cell, x=x, weight_input=weight_input, weight_state=weight_state, bias=bias, state=h)
    wide = sizes["e"] * kind.gates
    shapes.agree(
        cell, state=(h, "b e"), weight_state=(weight_state, f"{wide} e"), cell=(more[0], "b e ?"), extra=(extra, "e ?")
    )
    shapes.agree(cell, x=(x, "b t d"), weight_input=(weight_input, f"{wide} d"))
    if cell == "gru_after" and extra is None:
        extra = x.new_zeros(sizes["e"])
    lengths = shapes.counted(cell, lengths, sizes["b"], sizes["t"])
    x, weight_input, weight_state, bias, extra, *held = native.common_dtype(
        x, weight_input, weight_state, bias, extra, *state
    )
    state = tuple(held)
    tensors = (x, weight_input, weight_state, bias, extra, *state)
    if is_exporting():
        return exported_recurrence(kind, x, weight_input, weight_state, bias, state, extra, lengths, leak)
    if x.shape[1] == 1 or x.is_complex() or not native.usable(kind.kernel, *tensors):
        with torch.autocast("cpu", enabled=False):  # half of a recurrence in half precision is no recurrence
            return reference(cell, x, weight_input, weight_state, bias, state, extra=extra, lengths=lengths, leak=leak)
    keep = native.needs_backward(*tensors)
    c = state[1] if len(state) == 2 else None
    y, h, c, _, _ = native.call(
        _forward, cell, x, weight_input, weight_state, bias, extra, state[0], c, lengths, leak, keep
    )
    return y, (h, c)[: len(state)]


def reference(
    cell: str,
    x: Float[Tensor, "b t d"],
    weight_input: Float[Tensor, "g d"],
    weight_state: Float[Tensor, "g e"],
    bias: Float[Tensor, " g"] | None,
    state: tuple[Float[Tensor, "b e"], ...],
    *,
    extra: Float[Tensor, " e"] | None = None,
    lengths: Int[Tensor, " b"] | None = None,
    leak: float = 1.0,
) -> tuple[Float[Tensor, "b t e"], tuple[Float[Tensor, "b e"], ...]]:
    """The same, one token after the other, for reading and wherever there is no kernel."""
    step = CELLS[cell].step
    outputs = []
    for s, u in enumerate(F.linear(x, weight_input, bias).unbind(1)):
        new = step(u, state, weight_state, extra, leak)
        if lengths is None:
            state = new
            outputs.append(new[0])
        else:
            real = (lengths > s).unsqueeze(1)
            state = tuple(torch.where(real, n, old) for n, old in zip(new, state, strict=True))
            outputs.append(new[0].masked_fill(~real, 0))
    return torch.stack(outputs, 1), state


@torch.library.custom_op("wonderland::recurrence", mutates_args=())
def _forward(
    cell: str,
    x: Tensor,
    weight_input: Tensor,
    weight_state: Tensor,
    bias: Tensor | None,
    extra: Tensor | None,
    h: Tensor,
    c: Tensor | None,
    lengths: Tensor | None,
    leak: float,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """States (b, t, e), the last state, the last cell, and for the backward pass the gates and what the cell keeps."""
    kind = CELLS[cell]
    (b, t, _), e = x.shape, h.shape[1]
    with torch.autocast("cpu", enabled=False):  # the kernel reads what it was given, not half of it
        gates = F.linear(x, weight_input, bias).contiguous()
    y, last = x.new_empty(b, t, e), x.new_empty(b, e)
    now = x.new_empty(0) if c is None else c.clone(memory_format=torch.contiguous_format)
    kept = x.new_empty((b, t, e) if keep and kind.keeps else 0)
    lanes = 64 // x.element_size()
    packed = x.new_empty(-(-e // lanes) * lanes * e * kind.gates)
    native.function(kind.kernel, f"{kind.kernel}_forward", x.dtype)(
        *(kind.kind, b, t, e, *_threads(b, t, e, kind.gates), _leak(leak, x)),
        *(gates, weight_state.contiguous(), _lined(extra), h.contiguous(), _lined(lengths)),
        *(y, last, now, kept if kept.numel() else None, packed, torch.empty_like(last)),
    )
    return y, last, now, gates if keep else x.new_empty(0), kept


@_forward.register_fake
def _(cell, x, weight_input, weight_state, bias, extra, h, c, lengths, leak, keep):
    kind, (b, t, _), e = CELLS[cell], x.shape, h.shape[1]
    return (
        x.new_empty(b, t, e),
        x.new_empty(b, e),
        x.new_empty(0) if c is None else x.new_empty(b, e),
        x.new_empty((b, t, kind.gates * e) if keep else 0),
        x.new_empty((b, t, e) if keep and kind.keeps else 0),
    )


@torch.library.custom_op("wonderland::recurrence_backward", mutates_args=())
def _backward(
    cell: str,
    dy: Tensor | None,
    dh: Tensor | None,
    dc: Tensor | None,
    x: Tensor,
    weight_input: Tensor,
    weight_state: Tensor,
    h: Tensor,
    c: Tensor | None,
    lengths: Tensor | None,
    leak: float,
    y: Tensor,
    gates: Tensor,
    kept: Tensor,
    need_x: bool,
    need_weights: bool,
) -> list[Tensor]:
    """The gradients that `_names` lists."""
    kind = CELLS[cell]
    (b, t, _), e = x.shape, h.shape[1]
    h = h.contiguous()
    dh = torch.zeros_like(h) if dh is None else dh.clone(memory_format=torch.contiguous_format)
    if c is not None:
        dc = torch.zeros_like(h) if dc is None else dc.clone(memory_format=torch.contiguous_format)
    d = x.new_empty(b, t, kind.gradients * e)
    width = 256 // x.element_size()
    packed = x.new_empty(-(-e // width) * width * e * kind.gates)
    native.function(kind.kernel, f"{kind.kernel}_backward", x.dtype)(
        *(kind.kind, b, t, e, *_threads(b, t, e, kind.gates), _leak(leak, x)),
        *(gates, weight_state.contiguous(), h, _lined(c), _lined(lengths)),
        *(y, kept if kept.numel() else None, _lined(dy), d, dh, dc, packed),
    )
    d = d.flatten(0, 1)
    grads = [dh] if c is None or dc is None else [dh, dc]
    with torch.autocast("cpu", enabled=False):
        if need_x:
            grads.append(_into_tokens(d, weight_input, cell).unflatten(0, (b, t)))
        if need_weights:
            before = torch.cat([h.unsqueeze(1), y[:, :-1]], 1).flatten(0, 1)
            grads += _into_weights(d, x.flatten(0, 1), before, gates.flatten(0, 1), cell)
    return grads


def _into_tokens(d: Tensor, weight: Tensor, cell: str) -> Tensor:
    """The gradient of the inputs; in the GRU that resets after, the third block of columns does not reach them."""
    if cell != "gru_after":
        return d @ weight
    e = d.shape[1] // 4
    dx = d[:, : 2 * e] @ weight[: 2 * e]
    return torch.addmm(dx, d[:, 3 * e :], weight[2 * e :], out=dx)


def _into_weights(d: Tensor, x: Tensor, before: Tensor, gates: Tensor, cell: str) -> list[Tensor]:
    """The gradients of both weights and of the biases."""
    sums, e = d.sum(0), before.shape[1]
    if cell == "gru_after":
        weight = x.new_empty(3 * e, x.shape[1])
        torch.mm(d[:, : 2 * e].T, x, out=weight[: 2 * e])
        torch.mm(d[:, 3 * e :].T, x, out=weight[2 * e :])
        bias = torch.cat([sums[: 2 * e], sums[3 * e :]])
        return [weight, d[:, : 3 * e].T @ before, bias, sums[2 * e : 3 * e].clone()]
    if cell == "gru_before":
        weight = x.new_empty(3 * e, e)
        torch.mm(d[:, : 2 * e].T, before, out=weight[: 2 * e])
        torch.mm(d[:, 2 * e :].T, before * gates[:, :e], out=weight[2 * e :])
        return [d.T @ x, weight, sums]
    return [d.T @ x, d.T @ before, sums]


def _names(cell: str, need_x: bool, need_weights: bool) -> list[str]:
    """What the backward pass returns, in order."""
    weights = ["weight_input", "weight_state", "bias", *(["extra"] if cell == "gru_after" else [])]
    states = ["h", "c"][: CELLS[cell].states]
    return [*states, *(["x"] if need_x else []), *(weights if need_weights else [])]


@_backward.register_fake
def _(cell, dy, dh, dc, x, weight_input, weight_state, h, c, lengths, leak, y, gates, kept, need_x, need_weights):
    e = h.shape[1]
    like = {"h": h, "c": h, "x": x, "weight_input": weight_input, "weight_state": weight_state}
    sizes = {"bias": (weight_input.shape[0],), "extra": (e,)}
    names = _names(cell, need_x, need_weights)
    return [x.new_empty(like[name].shape if name in like else sizes[name]) for name in names]


def _save(ctx, inputs, output):
    cell, x, weight_input, weight_state, bias, extra, h, c, lengths, leak, _ = inputs
    y, _, _, gates, kept = output
    ctx.cell, ctx.leak = cell, leak
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight_input, weight_state, bias, extra, h, c, lengths, y, gates, kept)


_INPUTS = ("cell", "x", "weight_input", "weight_state", "bias", "extra", "h", "c", "lengths", "leak", "keep")


def _differentiate(ctx, dy, dh, dc, *_):
    if native.is_second_order():
        return _differentiate_twice(ctx, dy, dh, dc)
    x, weight_input, weight_state, _, _, h, c, lengths, y, gates, kept = ctx.saved_tensors
    need = dict(zip(_INPUTS, ctx.needs_input_grad, strict=True))
    needs = need["x"], any(need[name] for name in ("weight_input", "weight_state", "bias", "extra"))
    grads = native.call(
        _backward, ctx.cell, dy, dh, dc, x, weight_input, weight_state, h, c, lengths, ctx.leak, y, gates, kept, *needs
    )
    named = dict(zip(_names(ctx.cell, *needs), grads, strict=True))
    return tuple(named[name] if wanted else None for name, wanted in need.items())


def _differentiate_twice(ctx, dy, dh, dc):
    """Gradients that can be differentiated again, through the reference."""
    *given, h, c, lengths, _, _, _ = ctx.saved_tensors

    def equation(x, weight_input, weight_state, bias, extra, h, c):
        state = (h,) if c is None else (h, c)
        how = {"extra": extra, "lengths": lengths, "leak": ctx.leak}
        y, last = reference(ctx.cell, x, weight_input, weight_state, bias, state, **how)
        return y, *last

    grads = (dy, dh) if c is None else (dy, dh, dc)
    return None, *native.differentiable_backward(equation, (*given, h, c), grads), None, None, None


_forward.register_autograd(_differentiate, setup_context=_save)


def _threads(b: int, t: int, e: int, gates: int) -> tuple[int, int]:
    """How many threads share the work, and whether they share the units of one row instead of rows."""
    threads, weights = torch.get_num_threads(), gates * e * e
    if threads == 1 or weights * b * t < 1 << 17:
        return 1, 0
    if b >= threads:
        return threads, 0
    return (threads, 1) if weights >= 3 << 14 else (1, 0)


def _leak(leak: float, like: Tensor) -> Tensor | None:
    return None if leak == 1 else like.new_tensor([leak])


def _lined(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()
