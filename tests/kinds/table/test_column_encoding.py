"""One column becomes numbers or a code by a encoding."""

import numpy as np
import pandas as pd
import pytest

from wonderland.data.columns import read_column
from wonderland.kinds.table.column_encoding import ColumnEncoding


def test_categories():
    cells = ["b"] * 10 + ["a"] * 10 + ["rare"] * 3 + [None] * 4
    encoding = ColumnEncoding.fit(read_column("x", pd.Series(cells)))
    assert encoding.levels == ("a", "b", None)
    new = read_column("x", pd.Series(["a", "b", "rare", "unseen", None, "a", "b"]))
    assert encoding.codes(new).tolist() == [1, 2, 0, 0, 3, 1, 2]


def test_too_many_categories_are_cut_by_frequency():
    cells = [f"c{i}" for i in range(300) for _ in range(5 + (i < 50))]
    encoding = ColumnEncoding.fit(read_column("x", pd.Series(cells)))
    assert len(encoding.levels) == 254
    assert {f"c{i}" for i in range(50)} <= set(encoding.levels)


def test_texts_are_hashed_the_same_everywhere():
    column = read_column("x", pd.Series([f"the number {i} is here, here" for i in range(40)] + [None]))
    values = ColumnEncoding.fit(column).values(column)
    assert values.shape == (41, 35)
    assert values[-1].tolist() == [0.0] * 34 + [1.0]
    assert values[0, 0] == np.log1p(len("the number 0 is here, here"))
    assert np.expm1(values[0, 2:34]).sum() == pytest.approx(6)
    assert (
        np.flatnonzero(values[0, 2:34]).tolist()
        == np.flatnonzero(ColumnEncoding.fit(column).values(column)[0, 2:34]).tolist()
    )
