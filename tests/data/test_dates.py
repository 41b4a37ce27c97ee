"""The format of dates is found, and doubt between day and month is told."""

import numpy as np
import pandas as pd

from wonderland.data.columns import read_as, read_column
from wonderland.data.dates import MIXED, detect_date_format


def date_format(texts):
    return detect_date_format(texts)[:2]


def test_day_or_month_first():
    assert date_format(np.array(["31/12/2020", "01/02/2021"], dtype=object)) == ("%d/%m/%Y", False)
    assert date_format(np.array(["12/31/2020", "01/02/2021"], dtype=object)) == ("%m/%d/%Y", False)
    assert date_format(np.array(["11/12/2020", "01/02/2021"], dtype=object)) == ("%m/%d/%Y", True)
    assert read_column("d", pd.Series(["11/12/2020", "01/02/2021"])).note != ""


def test_date_values():
    column = read_column("d", pd.Series(["1970-01-02", "1970-01-01 12:00:00", None]))
    np.testing.assert_array_equal(column.values, [1.0, 0.5, np.nan])
    assert [column.cell(i) for i in range(3)] == ["1970-01-02", "1970-01-01 12:00:00", None]


def test_several_formats_in_one_column():
    cells = ["2024-01-31", "31/01/2024", "02/03/2024", "Jan 31, 2024", "31.01.2024", "3 Feb 2024", "2024/01/31"]
    column = read_column("d", pd.Series([*cells, "17/02/2024", "2024-02-05", "2024-02-06", "soon"]))
    assert (column.kind, column.format, column.unread, column.unread_example) == ("date", MIXED[1], 1, "soon")
    assert column.cell(1) == column.cell(3) == column.cell(4) == "2024-01-31"
    assert column.cell(2) == "2024-03-02"
    assert column.note == (
        "holds dates in several formats; where day and month are in doubt, the day is first. Write dates in one format, "
        "such as 2024-01-31"
    )
    assert read_as(column, pd.Series(["02/03/2024", "2024-03-02"])).values.tolist() == [19784.0, 19784.0]
    assert read_column("d", pd.Series(["2024-01-31", "01/31/2024", "02/03/2024"])).format == MIXED[0]
    assert read_column("d", pd.Series([f"ab-{i}-2024x" for i in range(20)])).kind == "identifier"
