"""Products of a sparse matrix with a dense one: gather along the entries and sum over rows, never an array of entries x width."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.pattern import Pattern
from wonderland.ops import native
from wonderland.ops.over_time import is_exporting
from wonderland.ops.segment import scattered


def sparse_product(pattern: Pattern, value: Tensor | None, x: Tensor) -> Tensor:
    r"""A sparse matrix times a dense one, for each head with its own values.

    .. math::
        y_{i h} = \sum_{e \in \mathrm{row}(i)} v_{e h}\, x_{\mathrm{column}(e)\, h}

    Shapes: x (columns, d) with value (m,) -> (rows, d); x (columns, heads, d) with value (m, heads) -> (rows, heads, d).
    `value` None stands for ones. Memory beside the output: none forward, m x heads numbers backward where values learn.

    >>> pattern, _ = Pattern.of(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2, 2)
    >>> sparse_product(pattern, torch.tensor([1.0, 2.0, 3.0]), torch.eye(2))
    tensor([[1., 2.],
            [0., 3.]])
    """
    if is_exporting():
        messages = x[pattern.column]
        return scattered(messages if value is None else messages * value[..., None].to(x), pattern.row, pattern.rows)
    if len(x) != pattern.columns:
        raise WonderlandError(
            f"A sparse matrix of {pattern.columns:,} columns cannot be multiplied by {len(x):,} rows."
        )
    if value is not None and value.shape != ((len(pattern),) if x.dim() == 2 else (len(pattern), x.shape[1])):
        raise WonderlandError(
            f"sparse_product takes a value for each of {len(pattern):,} entries, not {tuple(value.shape)}."
        )
    if value is not None and value.dtype != x.dtype:
        value = value.to(x.dtype)
    return _Product.apply(pattern, value, x)  # pyright: ignore[reportReturnType]


def reference(pattern: Pattern, value: Tensor | None, x: Tensor) -> Tensor:
    """The equation by a dense matrix for each head."""
    heads = x[:, None] if x.dim() == 2 else x
    given = x.new_ones(len(pattern)) if value is None else value
    given = given.reshape(len(pattern), -1).expand(-1, heads.shape[1])
    dense = x.new_zeros(pattern.rows, pattern.columns, heads.shape[1])
    dense = dense.index_put((pattern.row, pattern.column), given, accumulate=True)
    return torch.einsum("ijh,jhd->ihd", dense, heads).reshape(pattern.rows, *x.shape[1:])


class _Product(torch.autograd.Function):
    """Forward by rows; the gradient of x by columns, the one of the values entry by entry."""

    @staticmethod
    def forward(ctx: Any, pattern: Pattern, value: Tensor | None, x: Tensor) -> Tensor:  # pyright: ignore
        ctx.pattern = pattern
        ctx.save_for_backward(value, x if value is not None and value.requires_grad else None)
        return multiply(pattern, None, value, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:  # pyright: ignore
        (dy,), (value, x), pattern = grads, ctx.saved_tensors, ctx.pattern
        dvalue = dx = None
        if ctx.needs_input_grad[2]:
            flipped, place = pattern.transposed
            if torch.is_grad_enabled():  # differentiated once more
                dx = sparse_product(flipped, None if value is None else value[place], dy)
            else:
                dx = multiply(flipped, place, value, dy)
        if ctx.needs_input_grad[1]:
            dvalue = (dy[pattern.row] * x[pattern.column]).sum(-1) if torch.is_grad_enabled() else inner(pattern, dy, x)
        return None, dvalue, dx


def multiply(pattern: Pattern, place: Tensor | None, value: Tensor | None, x: Tensor) -> Tensor:
    """The product, where entry e has the value at place[e]; no gradients."""
    if native.usable("sparse", x, value):
        heads, wide = (1, x.shape[1]) if x.dim() == 2 else x.shape[1:]
        y = x.new_empty(pattern.rows, *x.shape[1:])
        value = None if value is None else value.contiguous()
        native.function("sparse", "product", x.dtype)(
            pattern.start, pattern.column, place, value, x.contiguous(), y,
            pattern.rows, heads, wide, torch.get_num_threads(),
        )  # fmt: skip
        return y
    messages = x[pattern.column]
    if value is not None:
        messages = messages * (value if place is None else value[place])[..., None]
    return x.new_zeros(pattern.rows, *x.shape[1:]).index_add_(0, pattern.row, messages)


def inner(pattern: Pattern, dy: Tensor, x: Tensor) -> Tensor:
    """The inner product of rows of dy and x at each entry: (m,), or (m, heads)."""
    if native.usable("sparse", x, dy):
        heads, wide = (1, x.shape[1]) if x.dim() == 2 else x.shape[1:]
        products = x.new_empty(len(pattern), *x.shape[1:-1])
        native.function("sparse", "entries", x.dtype)(
            pattern.start, pattern.column, dy.contiguous(), x.contiguous(), products,
            pattern.rows, heads, wide, torch.get_num_threads(),
        )  # fmt: skip
        return products
    return (dy[pattern.row] * x[pattern.column]).sum(-1)
