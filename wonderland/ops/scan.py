"""Linear scans: h_i = a_i h_{i-1} + x_i for all i at once; and the work-efficient scan of any associative operation."""

from collections.abc import Callable
from typing import Any, cast

import torch
from jaxtyping import Inexact, Int
from torch import Tensor

from wonderland.ops import native, shapes
from wonderland.ops.exported import exported_linear_scan
from wonderland.ops.over_time import is_exporting

STEPS = 32

Row = Inexact[Tensor, "b t d"]


def linear_scan(
    a: Inexact[Tensor, "*batch d"],
    x: Row,
    state: Inexact[Tensor, "b d"] | None = None,
    *,
    lengths: Int[Tensor, " b"] | None = None,
) -> Row:
    r"""All states of a diagonal linear recurrence, real or complex.

    .. math::
        h_i = a_i \odot h_{i-1} + x_i, \qquad h_0 = \text{state}

    `a` is (d,), the same at every step, or (b, t, d), or broadcasts to it. Beyond a row's length the state stays what it was, so that `h[:, -1]`
    is always the state to go on from. Book: Alice 13.3.

    >>> linear_scan(torch.tensor([0.5]), torch.ones(1, 3, 1)).flatten()
    tensor([1.0000, 1.5000, 1.7500])
    """
    sizes = shapes.agree("linear_scan", x=(x, "b t d"), state=(state, "b d ?"))
    lengths = shapes.counted("linear_scan", lengths, sizes["b"], sizes["t"])
    a = _spread(a, x)
    a, x, state = native.common_dtype(a, x, state)
    if is_exporting():
        return exported_linear_scan(a, x, state, lengths)
    if native.is_transformed():
        return reference(a, x, state, lengths=lengths)
    if native.usable("scan", a, x, state):
        return native.call(_forward, a, x, state, lengths)
    return chunked(a, x, state, lengths=lengths)


def _spread(a: Any, x: Tensor) -> Tensor:
    """`a` as (d,) or (b, t, d), whichever way it was given."""
    if isinstance(a, Tensor) and a.shape not in (x.shape, x.shape[2:]) and a.dim() <= 3:
        wide = (1,) * (3 - a.dim()) + tuple(a.shape)
        if all(own in (1, size) for own, size in zip(wide, x.shape, strict=True)):
            a = a.expand(x.shape)
    shapes.agree("linear_scan", x=(x, "b t d"), a=(a, "d" if isinstance(a, Tensor) and a.dim() == 1 else "b t d"))
    return a


def reference(a: Tensor, x: Tensor, state: Tensor | None = None, *, lengths: Tensor | None = None) -> Tensor:
    """The equation, one step after the other."""
    h = torch.zeros_like(x[:, 0]) if state is None else state
    states = []
    for i in range(x.shape[1]):
        new = (a if a.dim() == 1 else a[:, i]) * h + x[:, i]
        h = new if lengths is None else torch.where((i < lengths).unsqueeze(1), new, h)
        states.append(h)
    return torch.stack(states, 1)


def chunked(a: Tensor, x: Tensor, state: Tensor | None = None, *, lengths: Tensor | None = None) -> Tensor:
    """The same in plain PyTorch, for any device: chunks of 32 steps advance side by side; the backward pass is a scan too."""
    a = a.expand(x.shape) if a.dim() == 1 else a
    if lengths is not None:
        real = (torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(1)).unsqueeze(2)
        a, x = torch.where(real, a, torch.ones_like(a)), torch.where(real, x, torch.zeros_like(x))
    state = torch.zeros_like(x[:, 0]) if state is None else state
    return cast("Tensor", _Chunked.apply(a, x, state))


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, x, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        h = _side_by_side(a, x, state)
        ctx.save_for_backward(a, state, h)
        return h

    @staticmethod
    def backward(ctx, dh):  # pyright: ignore[reportIncompatibleMethodOverride]
        a, state, h = ctx.saved_tensors
        a = a.conj().resolve_conj()
        # The adjoint obeys g_i = dh_i + a_{i+1} g_{i+1}: a scan over the reversed sequence.
        later = torch.cat([a[:, 1:], torch.zeros_like(a[:, :1])], 1)
        g = _side_by_side(later.flip(1), dh.flip(1), torch.zeros_like(state)).flip(1)
        before = torch.cat([state.unsqueeze(1), h[:, :-1]], 1)
        return g * before.conj(), g, a[:, 0] * g[:, 0]


def _side_by_side(a: Tensor, x: Tensor, state: Tensor) -> Tensor:
    b, t, d = x.shape
    steps = min(STEPS, t)
    chunks = -(-t // steps)
    given = a, x
    if extra := chunks * steps - t:
        a, x = (torch.cat([y, y.new_zeros(b, extra, d)], 1) for y in (a, x))
    a, x = a.reshape(b, chunks, steps, d), x.reshape(b, chunks, steps, d)
    local, decay = [x[:, :, 0]], [a[:, :, 0]]
    for i in range(1, steps):
        local.append(torch.addcmul(x[:, :, i], a[:, :, i], local[-1]))
        decay.append(a[:, :, i] * decay[-1])
    # What a whole chunk multiplies with may be too large for a number where no state is: infinity times 0 would be NaN.
    # Compiled programs cannot look, and other devices would have to wait for the answer: there, nothing is passed on instead.
    blind = torch.compiler.is_compiling() or native.is_shapes_only() or not x.is_cpu
    if not blind and not decay[-1].isfinite().all():
        return reference(*given, state)

    def onward(local: Tensor, decay: Tensor, state: Tensor) -> Tensor:
        result = torch.addcmul(local, decay, state)
        return torch.where(state == 0, local, result) if blind else result

    starts = []
    for k in range(chunks):
        starts.append(state)
        state = onward(local[-1][:, k], decay[-1][:, k], state)
    h = onward(torch.stack(local, 2), torch.stack(decay, 2), torch.stack(starts, 1).unsqueeze(2))
    return h.reshape(b, chunks * steps, d)[:, :t]


def associative_scan(
    operation: Callable[[Any, Any], Any], elements: list[Any], *, reverse: bool = False
) -> tuple[list[Any], int]:
    """All prefixes of a list under an associative operation, by halving, and how often the operation was used.

    Neighbours are combined in pairs, the half as long list is scanned in the same way, and the odd places are filled in:
    2n - 2 - log2(n) operations for a power of two, in about 2 log2(n) rounds that could each run at once. The operation
    need not commute. For states, combine pairs (A, b) with `compose`. Book: Alice 13.3.2.

    >>> associative_scan(lambda a, b: a + b, ["a", "b", "c", "d", "e", "f"])
    (['a', 'ab', 'abc', 'abcd', 'abcde', 'abcdef'], 7)
    """
    if reverse:
        result, used = associative_scan(lambda a, b: operation(b, a), elements[::-1])
        return result[::-1], used
    if len(elements) < 2:
        return list(elements), 0
    pairs = [operation(first, second) for first, second in zip(elements[::2], elements[1::2], strict=False)]
    halves, used = associative_scan(operation, pairs)
    prefixes = [elements[0]]
    for i in range(1, len(elements)):
        prefixes.append(halves[i // 2] if i % 2 else operation(halves[i // 2 - 1], elements[i]))
    return prefixes, used + len(pairs) + (len(elements) - 1) // 2


def compose(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Two affine steps as one: (Z, z) then (V, v) is (V Z, V z + v); matrices, or diagonals as vectors."""
    (z_matrix, z), (v_matrix, v) = first, second
    if z_matrix.dim() > z.dim():
        return v_matrix @ z_matrix, (v_matrix @ z.unsqueeze(-1)).squeeze(-1) + v
    return v_matrix * z_matrix, v_matrix * z + v


@torch.library.custom_op("wonderland::linear_scan", mutates_args=(), device_types="cpu")
def _forward(a: Tensor, x: Tensor, state: Tensor | None, lengths: Tensor | None) -> Tensor:
    b, t, d = x.shape
    a, x, out = a.contiguous(), x.contiguous(), x.new_empty(x.shape)
    native.function("scan", "forward", x.dtype)(
        a,
        *_strides(a),
        x,
        None if state is None else state.contiguous(),
        lengths,
        out,
        b,
        t,
        d,
        torch.get_num_threads(),
    )
    return out


def _strides(a: Tensor) -> tuple[int, int]:
    return (0, 0) if a.dim() == 1 else (a.shape[1] * a.shape[2], a.shape[2])


@_forward.register_fake
def _(a, x, state, lengths):
    return x.new_empty(x.shape)


@torch.library.custom_op("wonderland::linear_scan_backward", mutates_args=(), device_types="cpu")
def _backward(
    a: Tensor, state: Tensor | None, lengths: Tensor | None, out: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    b, t, d = out.shape
    a, out, grad = a.contiguous(), out.contiguous(), grad.contiguous()
    dx, dstate = out.new_empty(out.shape), out.new_empty(b, d)
    da = out.new_empty((b, d) if a.dim() == 1 else out.shape)
    native.function("scan", "backward", out.dtype)(
        a, *_strides(a), None if state is None else state.contiguous(), lengths, out, grad, dx, da, dstate, b, t, d,
        torch.get_num_threads(),
    )  # fmt: skip
    return (da.sum(0) if a.dim() == 1 else da), dx, dstate


@_backward.register_fake
def _(a, state, lengths, out, grad):
    return a.new_empty(a.shape), out.new_empty(out.shape), out.new_empty(out.shape[0], out.shape[2])


def _remember(ctx, inputs, output):
    a, _, state, lengths = inputs
    ctx.save_for_backward(a, state, lengths, output)


def _differentiate(ctx, grad):
    a, state, lengths, out = ctx.saved_tensors
    backward = _adjoint if native.is_second_order() else _backward
    da, dx, dstate = backward(a, state, lengths, out, grad)
    return da, dx, None if state is None else dstate, None


def _adjoint(
    a: Tensor, state: Tensor | None, lengths: Tensor | None, out: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The backward pass as a scan over the reversed sequence, which can be differentiated again."""
    full = a.expand(out.shape)
    real = torch.ones_like(out[..., :1], dtype=torch.bool)
    if lengths is not None:
        real = (torch.arange(out.shape[1], device=out.device) < lengths.unsqueeze(1)).unsqueeze(2)
        full = torch.where(real, full, torch.ones_like(full))
    full = full.conj().resolve_conj()
    later = torch.cat([full[:, 1:], torch.zeros_like(full[:, :1])], 1)
    g = linear_scan(later.flip(1), grad.flip(1)).flip(1)
    first = torch.zeros_like(out[:, 0]) if state is None else state
    before = torch.cat([first.unsqueeze(1), out[:, :-1]], 1)
    zero = torch.zeros_like(g)
    da, dx = torch.where(real, g * before.conj(), zero), torch.where(real, g, zero)
    return (da.sum((0, 1)) if a.dim() == 1 else da), dx, full[:, 0] * g[:, 0]


_forward.register_autograd(_differentiate, setup_context=_remember)
