"""A test set of its own: read as the data to learn from was, so that its rows enter no decision about columns, classes or repairs."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.columns import Column
from wonderland.data.reading import Written
from wonderland.data.source import Contents, Glimpse
from wonderland.kinds.table.encoder import TableEncoder
from wonderland.kinds.table.table import Table, fingerprint_of

ROWS_TO_FIT = 50  # the encoder reads new data by the kinds of columns, which do not depend on its rows


def with_test_set(table: Table, test: Glimpse) -> Table:
    """The table with the rows of a test set after its own; they are marked in `test_rows`."""
    encoder = TableEncoder.fit(table, np.arange(min(len(table), ROWS_TO_FIT)))
    source: Any = Written(test.source, test.reading) if test.path is not None else test.source
    new = encoder.open(source, need_target=True)
    assert table.y is not None
    assert new.y is not None
    digest = hashlib.sha256(f"{table.fingerprint}{fingerprint_of(new.features)}".encode() + new.y.tobytes())
    joined = Table(
        table.name,
        [_joined(column, new.column(column.name)) for column in table.features],
        target=table.target,
        task=table.task,
        classes=table.classes,
        y=np.concatenate([table.y, new.y]),
        left_out=table.left_out,
        findings=[*table.findings, *(replace(one, text=f"Test set: {one.text}") for one in new.findings)],
        fingerprint=digest.hexdigest(),
        origin=table.origin | {"test": new.origin},
        groups=None if table.groups is None else np.append(table.groups, np.full(len(new), table.groups.max() + 1)),
        times=None if table.times is None else np.append(table.times, np.full(len(new), table.times.max())),
        time=table.time,
    )
    joined.group = table.group
    joined.assigned = table.assigned  # refused by whoever opens both: two test parts
    joined.test_rows = np.arange(len(joined)) >= len(table)
    return joined


def _joined(column: Column, new: Column) -> Column:
    """The cells of two columns of one kind, one after the other."""
    if column.levels is None or new.levels is None:
        return replace(column, values=np.concatenate([column.values, new.values]))
    codes, levels = pd.factorize(np.concatenate([column.levels, new.levels]))
    own, added = (np.append(part, -1) for part in np.split(codes, [len(column.levels)]))
    values = np.concatenate([own[column.values], added[new.values]]).astype(np.int64)
    return replace(column, values=values, levels=np.asarray(levels, dtype=object))


def join_test(contents: Contents, test: Contents) -> np.ndarray:
    """Add the rows of a test set to those of a source; returns the mask of the added rows."""
    if contents.frame is None or test.frame is None:
        raise WonderlandError("The test set is not a table, but the data to learn from is.")
    missing = [name for name in contents.frame.columns if name not in test.frame.columns]
    if missing:
        raise WonderlandError(
            f"The test set has no column {missing[0]!r}, which the data to learn from has."
            f"{nearest(missing[0], test.frame.columns)}"
        )
    rows = len(contents.frame)
    columns = list(contents.frame.columns)
    contents.frame = pd.concat([contents.frame, test.frame.loc[:, columns]], ignore_index=True)
    contents.origin["test"] = test.origin
    return np.arange(len(contents.frame)) >= rows
