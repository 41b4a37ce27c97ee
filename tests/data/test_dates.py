"""The format of dates is found, and doubt between day and month is told."""

import numpy as np
import pandas as pd

from wonderland.data.columns import read_column
from wonderland.data.dates import find_dates


def date_format(texts):
    return find_dates(texts)[:2]


def test_day_or_month_first():
    assert date_format(np.array(["31/12/2020", "01/02/2021"], dtype=object)) == ("%d/%m/%Y", False)
    assert date_format(np.array(["12/31/2020", "01/02/2021"], dtype=object)) == ("%m/%d/%Y", False)
    assert date_format(np.array(["11/12/2020", "01/02/2021"], dtype=object)) == ("%m/%d/%Y", True)
    assert read_column("d", pd.Series(["11/12/2020", "01/02/2021"])).note != ""


def test_date_values():
    column = read_column("d", pd.Series(["1970-01-02", "1970-01-01 12:00:00", None]))
    np.testing.assert_array_equal(column.values, [1.0, 0.5, np.nan])
    assert [column.cell(i) for i in range(3)] == ["1970-01-02", "1970-01-01 12:00:00", None]
