"""Segment ops: rows that carry the id of a segment are reduced to one row a segment, in memory linear in the rows."""

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.over_time import is_exporting


def segment_sum(values: Tensor, ids: Tensor, size: int) -> Tensor:
    r"""The sum of each segment: :math:`y_s = \sum_{j: ids_j = s} v_j`; an empty segment gives 0.

    Shapes: values (m, ...), ids (m,) in any order -> (size, ...).

    >>> segment_sum(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1, 0, 1]), 3)
    tensor([2., 5., 0.])
    """
    if is_exporting():
        return scattered(values, ids, size)
    _check("segment_sum", values, ids)
    return values.new_zeros(size, *values.shape[1:]).index_add(0, ids, values)


def segment_mean(values: Tensor, ids: Tensor, size: int) -> Tensor:
    """The mean of each segment, 0 for an empty one.

    >>> segment_mean(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1, 0, 1]), 3)
    tensor([2.0000, 2.5000, 0.0000])
    """
    if is_exporting():
        counts = scattered(torch.ones_like(values), ids, size)
        return scattered(values, ids, size) / counts.clamp(min=1)
    count = torch.bincount(ids, minlength=size).clamp(min=1).to(values.dtype)
    return segment_sum(values, ids, size) / count.reshape(-1, *[1] * (values.dim() - 1))


def segment_max(values: Tensor, ids: Tensor, size: int) -> Tensor:
    """The largest value of each segment, 0 for an empty one; equal values share the gradient.

    >>> segment_max(torch.tensor([-1.0, -2.0, -4.0]), torch.tensor([1, 0, 1]), 3)
    tensor([-2., -1.,  0.])
    """
    if is_exporting():
        return scattered(values, ids, size, "amax")
    _check("segment_max", values, ids)
    index = ids.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
    zeros = values.new_zeros(size, *values.shape[1:])
    return zeros.scatter_reduce(0, index, values, "amax", include_self=False)


def segment_min(values: Tensor, ids: Tensor, size: int) -> Tensor:
    """The smallest value of each segment, 0 for an empty one.

    >>> segment_min(torch.tensor([-1.0, -2.0, -4.0]), torch.tensor([1, 0, 1]), 3)
    tensor([-2., -4.,  0.])
    """
    if is_exporting():
        return scattered(values, ids, size, "amin")
    _check("segment_min", values, ids)
    index = ids.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
    zeros = values.new_zeros(size, *values.shape[1:])
    return zeros.scatter_reduce(0, index, values, "amin", include_self=False)


def segment_softmax(values: Tensor, ids: Tensor, size: int) -> Tensor:
    r"""The softmax within each segment: :math:`p_j = e^{v_j} / \sum_{k: ids_k = ids_j} e^{v_k}`, safe for large values.

    Shapes: values (m, ...), ids (m,) -> (m, ...).

    >>> segment_softmax(torch.zeros(3), torch.tensor([1, 0, 1]), 2)
    tensor([0.5000, 1.0000, 0.5000])
    """
    top = segment_max(values.detach(), ids, size)
    powers = (values - top[ids]).exp()
    return powers / segment_sum(powers, ids, size)[ids]


def scattered(values: Tensor, ids: Tensor, size: int, reduce: str = "sum") -> Tensor:
    """Segments reduced by "sum", "amax" or "amin" (0 for an empty one) with operators that exported programs have, of any number of rows."""
    index = ids.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
    if reduce == "sum":
        return values.new_zeros(size, *values.shape[1:]).scatter_add(0, index, values)
    empty = -torch.inf if reduce == "amax" else torch.inf
    reduced = values.new_full((size, *values.shape[1:]), empty).scatter_reduce(
        0, index, values, reduce, include_self=True
    )
    return torch.where(reduced == empty, torch.zeros_like(reduced), reduced)


def reference_sum(values: Tensor, ids: Tensor, size: int) -> Tensor:
    """`segment_sum` as a product with a dense matrix of zeros and ones (size, m)."""
    chosen = (ids[None] == torch.arange(size, device=ids.device)[:, None]).to(values.dtype)
    return (chosen @ values.flatten(1)).reshape(size, *values.shape[1:]) if values.dim() > 1 else chosen @ values


def _check(name: str, values: Tensor, ids: Tensor) -> None:
    if ids.dim() != 1 or len(ids) != len(values):
        raise WonderlandError(f"{name} takes one id for each of the {len(values):,} rows, not {tuple(ids.shape)}.")
