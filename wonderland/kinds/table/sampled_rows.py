"""Rows as vectors that a generative model learns, and back: numbers by their quantiles, categories by a place for each."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.data.columns import Column
from wonderland.data.dataset import GENERATE
from wonderland.data.encoder import Field, RowEncoder
from wonderland.kinds.table.column_encoding import ColumnEncoding, require
from wonderland.kinds.table.encoder import TableEncoder
from wonderland.kinds.table.table import Table

KNOTS = 513  # quantiles of a column that are kept
DECIMALS = 6


class SampledRows(RowEncoder):
    r"""Each number by its rank among the training values, as a quantile of the normal distribution; booleans and the places of
    categories as -1 and 1. `frame` turns vectors back into rows: a number is the training quantile of its rank, rounded to the decimals
    that were seen, a category the largest of its places.

    `knots` (numbers and dates, KNOTS) are the quantiles of each column, and `decimals` how it was written.
    """

    kind = "table"
    classes = None
    reads_tables = True

    def __init__(self, plain: TableEncoder, knots: np.ndarray, decimals: list[int]):
        self.plain, self.knots, self.decimals = plain, knots, decimals
        self.noticed = []
        self.ranked = [e.name for e in plain.encodings if e.kind in ("number", "date")]
        self.width = sum(places(encoding) for encoding in plain.encodings)

    @classmethod
    def fit(cls, table: Table, rows: np.ndarray) -> "SampledRows":
        """The quantiles and categories of these rows."""
        plain = TableEncoder.fit(table, rows)
        ranked = [table.column(e.name).take(rows) for e in plain.encodings if e.kind in ("number", "date")]
        present = [column.values[~column.is_missing] for column in ranked]
        knots = [
            np.quantile(values, np.linspace(0, 1, KNOTS)) if len(values) else np.zeros(KNOTS) for values in present
        ]
        return cls(plain, np.array(knots).reshape(len(ranked), KNOTS), [decimals_of(values) for values in present])

    def encode(self, dataset: Table, rows: np.ndarray | None = None) -> Tensor:
        pieces = []
        for encoding in self.plain.encodings:
            column = dataset.column(encoding.name)
            pieces.append(self._vectors(encoding, column if rows is None else column.take(rows)))
        self.noticed = []
        return torch.from_numpy(np.concatenate(pieces, 1).astype(np.float32))

    def _vectors(self, encoding: ColumnEncoding, column: Column) -> np.ndarray:
        if encoding.kind == "category":
            return 2.0 * (encoding.codes(column)[:, None] == np.arange(encoding.code_count)) - 1
        missing = column.is_missing
        if encoding.kind == "boolean":
            values = np.where(missing, 0.0, 2 * column.values - 1)
        else:
            values = np.where(missing, 0.0, normal_ranks(column.values, self.knots[self.ranked.index(encoding.name)]))
        flags = [2.0 * missing - 1] if encoding.flagged else []
        return np.stack([values, *flags], 1)

    def frame(self, vectors: Tensor) -> pd.DataFrame:
        """Rows with the columns of the training data."""
        values = vectors.double().numpy().reshape(len(vectors), -1)
        columns, first = {}, 0
        for encoding in self.plain.encodings:
            block = values[:, first : first + places(encoding)]
            columns[encoding.name], first = self._cells(encoding, block), first + places(encoding)
        return pd.DataFrame(columns)

    def decode(self, samples: Tensor) -> pd.DataFrame:
        """Samples as rows."""
        return self.frame(samples)

    def _cells(self, encoding: ColumnEncoding, block: np.ndarray) -> Any:
        if encoding.kind == "category":
            named = block[:, 1:] if encoding.levels else block  # the first place is that of every rare category
            return pd.Series([encoding.levels[code] for code in named.argmax(1)], dtype=object)
        missing = block[:, 1] > 0 if encoding.flagged else np.zeros(len(block), bool)
        if encoding.kind == "boolean":
            no, yes = encoding.pair or ("0", "1")
            cells = pd.Series(np.where(block[:, 0] > 0, yes, no), dtype=object)
            return cells.mask(missing, None)
        place = self.ranked.index(encoding.name)
        numbers = from_ranks(block[:, 0], self.knots[place])
        if encoding.kind == "date":
            seconds = np.round(numbers * 86400) if self.decimals[place] else np.round(numbers) * 86400
            near = np.clip(seconds, -6e10, 2.5e11).astype("datetime64[s]")  # the years 0 to 9900
            return pd.Series(near).mask(missing)
        numbers = np.round(numbers, self.decimals[place])
        if self.decimals[place] == 0 and not encoding.flagged and np.abs(numbers).max(initial=0) < 2**53:
            return pd.Series(numbers.astype(np.int64))
        return pd.Series(numbers).mask(missing)

    def open(self, source: Any, *, need_target: bool = False) -> Table:
        return self.plain.open(source, need_target=False)

    def schema(self) -> list[Field]:
        return self.plain.schema()

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> Table:
        return self.plain.collect(rows)

    def samples(self, count: int, seed: int = 0) -> pd.DataFrame:
        return self.plain.samples(count, seed)

    def traits(self, dataset: Table, rows: np.ndarray) -> dict[str, np.ndarray]:
        return self.plain.traits(dataset, rows)

    def arguments(self) -> dict[str, Any]:
        return {"shape": [self.width], "features": self.width}

    def to_json(self) -> dict[str, Any]:
        return self.plain.to_json() | {"task": GENERATE, "decimals": self.decimals}

    def tensors(self) -> dict[str, Tensor]:
        return self.plain.tensors() | {"knots": torch.from_numpy(self.knots.copy())}

    @classmethod
    def from_json(cls, saved: Any, tensors: dict[str, Tensor]) -> "SampledRows":
        """Rebuild a saved encoder; every value is checked."""
        plain = TableEncoder.from_json({**saved, "task": None}, tensors)
        ranked = [e for e in plain.encodings if e.kind in ("number", "date")]
        knots, decimals = tensors.get("knots"), saved.get("decimals")
        fits = isinstance(knots, Tensor) and knots.dtype == torch.float64 and tuple(knots.shape) == (len(ranked), KNOTS)
        require(fits, "the tensor 'knots' does not fit its columns")
        assert isinstance(knots, Tensor)
        ordered = bool(torch.isfinite(knots).all()) and bool((knots.diff(dim=1) >= 0).all())
        require(ordered, "the tensor 'knots' does not hold quantiles in order")
        known = isinstance(decimals, list) and len(decimals) == len(ranked)
        known = known and all(isinstance(d, int) and not isinstance(d, bool) and 0 <= d <= 17 for d in decimals or ())
        require(known, "the decimals are not known")
        require(all(e.kind != "text" and not e.shared for e in plain.encodings), "a column cannot be generated")
        return cls(plain, knots.numpy().copy(), list(decimals or ()))


def places(encoding: ColumnEncoding) -> int:
    """How many numbers of the vector a column takes."""
    return encoding.code_count if encoding.kind == "category" else 1 + encoding.flagged


def normal_ranks(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """The rank of each value among quantiles, as a quantile of the normal distribution; equal values share the middle of their ranks.

    >>> normal_ranks(np.array([0.0, 5.0, 10.0]), np.linspace(0, 10, 101)).round(2).tolist()
    [-2.58, 0.0, 2.58]
    """
    values = np.nan_to_num(values)
    low, high = (np.searchsorted(knots, values, side) for side in ("left", "right"))
    before, after = knots[np.clip(low - 1, 0, None)], knots[np.clip(low, None, len(knots) - 1)]
    inside = low - 1 + np.divide(values - before, after - before, out=np.zeros_like(values), where=after > before)
    rank = np.where(high > low, (low + high - 1) / 2, inside).clip(0, len(knots) - 1)
    share = (rank / (len(knots) - 1)).clip(0.5 / (len(knots) - 1), 1 - 0.5 / (len(knots) - 1))
    return torch.special.ndtri(torch.from_numpy(share)).numpy()


def from_ranks(ranks: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """The quantile of each rank: the inverse of `normal_ranks`."""
    share = torch.special.ndtr(torch.from_numpy(np.ascontiguousarray(ranks))).numpy()
    return np.interp(share * (len(knots) - 1), np.arange(len(knots)), knots)


def decimals_of(values: np.ndarray) -> int:
    """How many decimals the values have, at most 6; 17 where they have more."""
    for count in range(DECIMALS + 1):
        if np.array_equal(np.round(values, count), values):
            return count
    return 17
