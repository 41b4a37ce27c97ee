"""Token shift: each token mixed with the one before it, by two or three vectors of shares in one pass."""

import torch
from jaxtyping import Float
from torch import Tensor

from wonderland.ops import native

STRETCH = 64  # tokens of one task of the kernel


def blend(
    x: Float[Tensor, "b t d"],
    last: Float[Tensor, "b 1 d"] | None,
    one: Float[Tensor, " d"],
    two: Float[Tensor, " d"],
    three: Float[Tensor, " d"] | None = None,
) -> tuple[Tensor, ...]:
    r"""Tokens mixed with their predecessors, once for each of two or three vectors of shares.

    .. math:: z^k_i = \mu^k \odot x_i + (1 - \mu^k) \odot x_{i-1}

    `last` stands before the first token, or 0. One pass over memory forward, and one backward. Book: Alice 13.4.2.

    >>> half = torch.full((1,), 0.5)
    >>> blend(torch.tensor([[[2.0], [4.0]]]), None, half, torch.ones(1))[0].flatten()
    tensor([1., 3.])
    """
    given = (x, last, one, two, three)
    known = native.is_recording() or torch.compiler.is_compiling()
    if known or not x.numel() or x.dtype not in (torch.float32, torch.float64) or not native.usable(*given):
        return reference(*given)
    return native.call(_forward, *given)[: 2 if three is None else 3]


def reference(x: Tensor, last: Tensor | None, *shares: Tensor | None) -> tuple[Tensor, ...]:
    """The equation; what neighbours differ by is computed once."""
    before = torch.zeros_like(x[:, :1]) if last is None else last
    before = before if x.shape[1] == 1 else torch.cat([before, x[:, :-1]], 1)
    change = x - before
    return tuple(torch.addcmul(before, change, share) for share in shares if share is not None)


@torch.library.custom_op("wonderland::blend", mutates_args=(), device_types="cpu")
def _forward(
    x: Tensor, last: Tensor | None, one: Tensor, two: Tensor, three: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    b, t, d = x.shape
    a, e = torch.empty(x.shape, dtype=x.dtype), torch.empty(x.shape, dtype=x.dtype)
    o = x.new_empty(0) if three is None else torch.empty(x.shape, dtype=x.dtype)
    native.function("blend", "forward", x.dtype)(
        x.contiguous(), *native.contiguous(last, one, two, three), a, e, None if three is None else o, b, t, d,
        torch.get_num_threads(),
    )  # fmt: skip
    return a, e, o


@_forward.register_fake
def _(x, last, one, two, three):
    made = [torch.empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(3)]
    return (*made[:2], x.new_empty(0) if three is None else made[2])


@torch.library.custom_op("wonderland::blend_backward", mutates_args=(), device_types="cpu")
def _backward(
    x: Tensor,
    last: Tensor | None,
    one: Tensor,
    two: Tensor,
    three: Tensor | None,
    da: Tensor,
    de: Tensor,
    do: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    b, t, d = x.shape
    dx, dlast = torch.empty(x.shape, dtype=x.dtype), x.new_empty(b if last is not None else 0, 1, d)
    dshares = x.new_empty(b * -(-t // STRETCH), 3, d)
    native.function("blend", "backward", x.dtype)(
        x.contiguous(), *native.contiguous(last, one, two, three, da, de), None if three is None else do.contiguous(), dx,
        None if last is None else dlast, dshares, b, t, d, torch.get_num_threads(),
    )  # fmt: skip
    return dx, dlast, dshares.sum(0)


@_backward.register_fake
def _(x, last, one, two, three, da, de, do):
    dlast = x.new_empty(x.shape[0] if last is not None else 0, 1, x.shape[2])
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), dlast, x.new_empty(3, x.shape[2])


def _remember(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _differentiate(ctx, *grads):
    x, last, *shares = ctx.saved_tensors
    if native.is_second_order():
        return tuple(
            native.differentiable_backward(
                reference, (x, last, *shares), grads[: sum(share is not None for share in shares)]
            )
        )
    dx, dlast, dshares = native.call(_backward, x, last, *shares, *grads)
    three = None if shares[2] is None else dshares[2]
    return dx, None if last is None else dlast, dshares[0], dshares[1], three


_forward.register_autograd(_differentiate, setup_context=_remember)
