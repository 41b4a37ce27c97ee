"""Attention in memory linear in the sequence: keys come chunk after chunk, and partial results merge."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native, shapes
from wonderland.ops.softmax import masked_softmax


class Partial(NamedTuple):
    """Attention over some of the keys: what is needed to add the others later.

    Shapes: numerator (b, h, q, v), denominator (b, h, q), maximum (b, h, q); the maximum is -inf where no key was seen.
    """

    numerator: Tensor
    denominator: Tensor
    maximum: Tensor


def attention(
    q: Float[Tensor, "b h q k"],
    k: Float[Tensor, "b h n k"],
    v: Float[Tensor, "b h n v"],
    *,
    causal: bool = False,
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    chunk: int = 256,
) -> Float[Tensor, "b h q v"]:
    r"""Softmax attention, never holding more than `chunk` columns of the score matrix, forward and backward.

    For each chunk of keys with scores s, the running maximum, denominator and numerator become

    .. math::
        \mu' = \max(\mu, \max s), \quad c = e^{\mu - \mu'}, \quad
        D' = c D + \sum_j e^{s_j - \mu'}, \quad N' = c N + \sum_j e^{s_j - \mu'} v_j

    and the output is N / D. The backward pass computes the scores of each chunk again.

    `causal` aligns the last query with the last key. `mask` (True: may be seen) and `bias` (added to the scores) broadcast
    to (b, h, q, n). A query that sees no key gets 0. `scale` is 1 / sqrt(k) unless given.

    Book: Alice 11.2.2. Paper: Milakov and Gimelshein, 2018; Rabe and Staats, 2021; Dao et al., 2022.

    >>> q, k, v = torch.randn(3, 1, 2, 5, 4).unbind()
    >>> torch.allclose(attention(q, k, v, chunk=2), reference(q, k, v), atol=1e-6)
    True
    """
    shapes.real("attention", q=q, k=k, v=v)
    shapes.agree("attention", k=(k, "b h n k"), v=(v, "b h n v"), q=(q, "b h q k"))
    for name, extra, kind in (("mask", mask, "booleans"), ("bias", bias, "floating point numbers")):
        if extra is None:
            continue
        fits = isinstance(extra, Tensor) and (extra.dtype == torch.bool) == (name == "mask") and extra.dim() <= 4
        full = (*q.shape[:3], k.shape[2])
        if not fits or not all(
            own in (1, size) for own, size in zip(extra.shape, full[4 - extra.dim() :], strict=True)
        ):
            had = f"{extra.dtype} {tuple(extra.shape)}" if isinstance(extra, Tensor) else f"a {type(extra).__name__}"
            raise WonderlandError(f"attention takes a {name} of {kind} that broadcasts to {full}, not {had}.")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    q, k, v, bias = native.common_dtype(q, k, v, bias)
    if native.is_transformed():
        return reference(q, k, v, causal=causal, mask=mask, bias=bias, scale=scale)
    return _Attention.apply(q, k, v, bias, mask, causal, scale, max(1, chunk))


def reference(
    q: Float[Tensor, "b h q k"],
    k: Float[Tensor, "b h n k"],
    v: Float[Tensor, "b h n v"],
    *,
    causal: bool = False,
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "b h q v"]:
    """The equation, written for reading: the whole matrix of scores."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.transpose(-1, -2) * scale
    if bias is not None:
        scores = scores + bias
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device)
    if causal:
        seen = seen.tril(k.shape[2] - q.shape[2])
    return masked_softmax(scores, seen if mask is None else seen & mask) @ v


def partial(
    q: Float[Tensor, "b h q k"],
    k: Float[Tensor, "b h n k"],
    v: Float[Tensor, "b h n v"],
    *,
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> Partial:
    """Attention over these keys only, ready to be merged with that over others."""
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    return _reduce(_shaped(scores, bias, mask), v)


def merge(a: Partial, b: Partial) -> Partial:
    """Attention over the keys of both. Associative and commutative: chunks may come in any order, from anywhere."""
    maximum = torch.maximum(a.maximum, b.maximum)
    finite = _finite(maximum)
    left, right = (a.maximum - finite).exp(), (b.maximum - finite).exp()
    return Partial(
        a.numerator * left.unsqueeze(-1) + b.numerator * right.unsqueeze(-1),
        a.denominator * left + b.denominator * right,
        maximum,
    )


def finish(total: Partial) -> Tensor:
    """The attention output over the keys seen: (b, h, q, v); 0 where there were none."""
    return total.numerator / _positive(total.denominator).unsqueeze(-1)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q, k, v, bias, mask, causal, scale, chunk):
        total = None
        for start in range(0, k.shape[2], chunk):
            scores, span = _scores(q, k, bias, mask, causal, scale, start, chunk)
            piece = _reduce(scores, v[:, :, span])
            total = piece if total is None else merge(total, piece)
        assert total is not None
        y = finish(total)
        ctx.save_for_backward(q, k, v, bias, mask, y, _finite(total.maximum) + _positive(total.denominator).log())
        ctx.options = (causal, scale, chunk)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor):
        (grad,) = grads
        q, k, v, bias, mask, y, log_total = ctx.saved_tensors
        causal, scale, chunk = ctx.options
        if native.is_second_order():

            def equation(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
                scores, _ = _scores(q, k, bias, mask, causal, scale, 0, k.shape[2])
                return finish(_reduce(scores, v))

            return *native.differentiable_backward(equation, (q, k, v, bias), grad), None, None, None, None
        dq, dk, dv = torch.zeros_like(q), torch.empty_like(k), torch.empty_like(v)
        dbias = torch.zeros_like(bias) if bias is not None and ctx.needs_input_grad[3] else None
        # Each row of the softmax's derivative subtracts its mean, which is the output's product with its gradient.
        mean = (grad * y).sum(-1, keepdim=True)
        for start in range(0, k.shape[2], chunk):
            scores, span = _scores(q, k, bias, mask, causal, scale, start, chunk)
            weights = (scores - log_total.unsqueeze(-1)).exp()
            dv[:, :, span] = weights.transpose(-1, -2) @ grad
            dscores = weights * (grad @ v[:, :, span].transpose(-1, -2) - mean)
            dq += dscores @ k[:, :, span] * scale
            dk[:, :, span] = dscores.transpose(-1, -2) @ q * scale
            if dbias is not None:
                part = dbias if dbias.shape[-1] == 1 else dbias[..., span]
                part += dscores.sum_to_size(part.shape)
        return dq, dk, dv, dbias, None, None, None, None


def _scores(
    q: Tensor, k: Tensor, bias: Tensor | None, mask: Tensor | None, causal: bool, scale: float, start: int, chunk: int
) -> tuple[Tensor, slice]:
    """The scores of one chunk of keys, -inf where they may not be seen, and which chunk it is."""
    span = slice(start, min(start + chunk, k.shape[2]))
    scores = q @ k[:, :, span].transpose(-1, -2) * scale
    if causal:
        rows = torch.arange(q.shape[2], device=q.device).unsqueeze(1) + (k.shape[2] - q.shape[2])
        columns = torch.arange(span.start, span.stop, device=q.device)
        scores = scores.masked_fill(columns > rows, -math.inf)
    return _shaped(scores, _cut(bias, span), _cut(mask, span)), span


def _shaped(scores: Tensor, bias: Tensor | None, mask: Tensor | None) -> Tensor:
    scores = scores if bias is None else scores + bias
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def _reduce(scores: Tensor, v: Tensor) -> Partial:
    maximum = scores.amax(-1)
    weights = (scores - _finite(maximum).unsqueeze(-1)).exp()
    return Partial(weights @ v, weights.sum(-1), maximum)


def _finite(maximum: Tensor) -> Tensor:
    """A maximum to subtract: 0 where nothing was seen, since -inf minus -inf is NaN."""
    return maximum.masked_fill(maximum == -math.inf, 0)


def _positive(denominator: Tensor) -> Tensor:
    return torch.where(denominator > 0, denominator, 1.0)


def _cut(tensor: Tensor | None, span: slice) -> Tensor | None:
    return tensor if tensor is None or tensor.shape[-1] == 1 else tensor[..., span]
