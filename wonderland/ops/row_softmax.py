"""The softmax over the entries of each row of a sparse matrix, and the one of additive attention, whose scores are never stored."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core.pattern import Pattern
from wonderland.ops import native
from wonderland.ops.segment import segment_softmax, segment_sum

MOST_HEADS = 64  # as in the kernel


def row_softmax(pattern: Pattern, score: Tensor) -> Tensor:
    r"""The softmax over each row, for each head: :math:`p_{e h} = e^{s_{e h}} / \sum_{f \in \mathrm{row}(e)} e^{s_{f h}}`.

    Shapes: score (m, heads), in the order of the pattern -> (m, heads).

    >>> pattern, _ = Pattern.of(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2, 2)
    >>> row_softmax(pattern, torch.zeros(3, 1)).flatten()
    tensor([0.5000, 0.5000, 1.0000])
    """
    if native.usable("sparse", score):
        return _Softmax.apply(pattern, score)  # pyright: ignore[reportReturnType]
    return segment_softmax(score, pattern.row, pattern.rows)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, score: Tensor) -> Tensor:  # pyright: ignore
        share = torch.empty_like(score, memory_format=torch.contiguous_format)
        native.function("sparse", "softmax", score.dtype)(
            pattern.start, score.contiguous(), share, pattern.rows, score.shape[1], torch.get_num_threads()
        )
        ctx.pattern = pattern
        ctx.save_for_backward(share)
        return share

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:  # pyright: ignore
        (dshare,), (share,), pattern = grads, ctx.saved_tensors, ctx.pattern
        if torch.is_grad_enabled():
            inner = share * dshare
            return None, inner - share * segment_sum(inner, pattern.row, pattern.rows)[pattern.row]
        dscore = torch.empty_like(share)
        native.function("sparse", "softmax_grad", share.dtype)(
            pattern.start, share, dshare.contiguous(), dscore, pattern.rows, share.shape[1], torch.get_num_threads()
        )
        return None, dscore


def additive_attention(pattern: Pattern, source: Tensor, target: Tensor, slope: float = 0.2) -> Tensor:
    r"""Attention shares from a score for each end of an entry, as in GAT.

    .. math::
        p_{e h} = \mathrm{softmax}_{e \in \mathrm{row}(i)}\; \mathrm{LeakyReLU}(a_{\mathrm{column}(e)\, h} + b_{i h})

    Shapes: source a (columns, heads), target b (rows, heads) -> (m, heads). Kept for the backward pass: the shares alone.

    >>> pattern, _ = Pattern.of(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2, 2)
    >>> additive_attention(pattern, torch.zeros(2, 1), torch.ones(2, 1)).flatten()
    tensor([0.5000, 0.5000, 1.0000])
    """
    if source.shape[1] <= MOST_HEADS and native.usable("sparse", source, target):
        return _Additive.apply(pattern, source, target, slope)  # pyright: ignore[reportReturnType]
    return reference(pattern, source, target, slope)


def reference(pattern: Pattern, source: Tensor, target: Tensor, slope: float = 0.2) -> Tensor:
    """The equation in plain PyTorch."""
    score = F.leaky_relu(source[pattern.column] + target[pattern.row], slope)
    return segment_softmax(score, pattern.row, pattern.rows)


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, source: Tensor, target: Tensor, slope: float) -> Tensor:  # pyright: ignore
        share = source.new_empty(len(pattern), source.shape[1])
        native.function("sparse", "scores", source.dtype)(
            pattern.start, pattern.column, source.contiguous(), target.contiguous(), share, slope,
            pattern.rows, source.shape[1], torch.get_num_threads(),
        )  # fmt: skip
        ctx.pattern, ctx.slope = pattern, slope
        ctx.save_for_backward(source, target, share)
        return share

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:  # pyright: ignore
        (dshare,), (source, target, share), pattern = grads, ctx.saved_tensors, ctx.pattern
        if torch.is_grad_enabled():
            return None, *native.differentiable_backward(
                lambda a, b: reference(pattern, a, b, ctx.slope), (source, target), dshare
            ), None  # fmt: skip
        dscore, dtarget = dshare.clone(memory_format=torch.contiguous_format), target.new_empty(target.shape)
        native.function("sparse", "scores_grad", share.dtype)(
            pattern.start, pattern.column, source.contiguous(), target.contiguous(), share, dscore, dtarget, ctx.slope,
            pattern.rows, share.shape[1], torch.get_num_threads(),
        )  # fmt: skip
        flipped, place = pattern.transposed
        dsource = source.new_empty(source.shape)
        native.function("sparse", "gather", share.dtype)(
            flipped.start, place, dscore, dsource, flipped.rows, share.shape[1], torch.get_num_threads()
        )
        return None, dsource, dtarget, None
