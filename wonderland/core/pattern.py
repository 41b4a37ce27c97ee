"""Pattern: where the entries of a sparse matrix are, by rows and by columns. Sorted once, used by every product."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wonderland.core.errors import WonderlandError


def derived(make: Callable[[Any], Any]) -> Any:
    """A property computed once and kept, as plain tensors even within `torch.inference_mode`: training may use it later."""

    def compute(self: Any) -> Any:
        with torch.inference_mode(False), torch.no_grad():
            return make(self)

    compute.__doc__, compute.__name__ = make.__doc__, make.__name__
    return functools.cached_property(compute)


class Pattern:
    """The places of the entries of a sparse matrix (rows, columns), row after row.

    `start` (rows + 1,) says where each row begins in `column` (m,), the column of each entry. Values are kept apart, so that
    many matrices share one pattern.

    >>> pattern, order = Pattern.of(torch.tensor([1, 0, 1]), torch.tensor([0, 2, 1]), 2, 3)
    >>> pattern.start.tolist(), pattern.column.tolist(), order.tolist()
    ([0, 1, 3], [2, 0, 1], [1, 0, 2])
    """

    def __init__(self, start: Tensor, column: Tensor, columns: int):
        self.start, self.column, self.columns = start, column, columns
        self.rows = len(start) - 1

    @staticmethod
    def of(row: Tensor, column: Tensor, rows: int, columns: int) -> tuple["Pattern", Tensor]:
        """The pattern of entries (row, column) in any order, and the order (m,) that sorts them; equal places stay apart."""
        order = torch.argsort(row * columns + column, stable=True)
        return Pattern(starts(row, rows), column[order].contiguous(), columns), order

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self.column)

    @derived
    def row(self) -> Tensor:
        """The row of each entry (m,)."""
        return torch.repeat_interleave(torch.arange(self.rows, device=self.start.device), self.count)

    @derived
    def count(self) -> Tensor:
        """How many entries each row has (rows,)."""
        return self.start.diff()

    @derived
    def transposed(self) -> tuple["Pattern", Tensor]:
        """The pattern of the transposed matrix, and for each of its entries the place of that entry here."""
        order = torch.argsort(self.column, stable=True)
        return Pattern(starts(self.column, self.columns), self.row[order].contiguous(), self.rows), order

    def to(self, device: Any) -> "Pattern":
        """The same pattern on a device."""
        if torch.device(device) == self.start.device:
            return self
        return Pattern(self.start.to(device), self.column.to(device), self.columns)


def starts(ids: Tensor, size: int) -> Tensor:
    """Where each of `size` segments begins once entries are sorted by their ids: (size + 1,)."""
    start = ids.new_zeros(size + 1)
    torch.cumsum(torch.bincount(ids, minlength=size), 0, out=start[1:])
    return start


def ranges(first: Tensor, count: Tensor) -> Tensor:
    """first[0] .. first[0] + count[0] - 1, then those of the next, ...

    >>> ranges(torch.tensor([5, 0]), torch.tensor([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    start = torch.repeat_interleave(first - (count.cumsum(0) - count), count)
    return start + torch.arange(len(start), device=first.device)


class SparseRows:
    """A matrix (rows, columns) with few entries that are not 0, such as words of documents.

    Layers of `nn.graph` take it where they take dense features; `drop` drops entries that are there, which costs as much as
    there are.

    >>> rows = SparseRows.of(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
    >>> rows.shape, len(rows.value), rows.dense().tolist()
    (torch.Size([2, 2]), 1, [[0.0, 2.0], [0.0, 0.0]])
    """

    def __init__(self, pattern: Pattern, value: Tensor):
        if len(pattern) != len(value):
            raise WonderlandError(f"A sparse matrix with {len(pattern)} places takes as many values, not {len(value)}.")
        self.pattern, self.value = pattern, value

    @staticmethod
    def of(dense: Tensor) -> "SparseRows":
        """From a dense matrix."""
        row, column = dense.nonzero(as_tuple=True)
        pattern, order = Pattern.of(row, column, *dense.shape)
        return SparseRows(pattern, dense[row, column][order])

    @property
    def shape(self) -> torch.Size:
        """(rows, columns)."""
        return torch.Size((self.pattern.rows, self.pattern.columns))

    @property
    def dtype(self) -> torch.dtype:
        """The type of its values."""
        return self.value.dtype

    def dense(self) -> Tensor:
        """As a dense matrix; entries at one place add up."""
        dense = self.value.new_zeros(self.shape)
        return dense.index_put((self.pattern.row, self.pattern.column), self.value, accumulate=True)

    def rows(self, index: Tensor) -> "SparseRows":
        """Some of the rows, in this order."""
        count = self.pattern.count[index]
        place = ranges(self.pattern.start[index], count)
        start = torch.cat([count.new_zeros(1), count.cumsum(0)])
        return SparseRows(Pattern(start, self.pattern.column[place], self.pattern.columns), self.value[place])

    def drop(self, p: float, training: bool) -> "SparseRows":
        """The same matrix after dropout: entries become 0 with probability p, the others are scaled by 1 / (1 - p)."""
        if not training or not p:
            return self
        return SparseRows(self.pattern, torch.nn.functional.dropout(self.value, p))

    def to(self, device: Any) -> "SparseRows":
        """The same matrix on a device."""
        return SparseRows(self.pattern.to(device), self.value.to(device))
