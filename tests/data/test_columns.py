"""Kinds are read from the cells."""

import datetime
import re
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.core import WonderlandError
from wonderland.data.columns import COLUMN_KINDS, read_as, read_column


def kind(cells, name="x"):
    return read_column(name, pd.Series(cells)).kind


MANY = list(range(100, 140))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1.5, 2.5, None], "number"),
        ([3, 1, 2, 2], "number"),
        (["1,234", "5", "NA"], "number"),
        (["12%", "15 %", "?"], "number"),
        (["$3.50", "€4", "-"], "number"),
        (["1.234,50", "2,5"], "number"),
        ([" 1 ", "2", "n/a"], "number"),
        (["1e5", "2E-3", "+4"], "number"),
        ([True, False, True], "boolean"),
        ([True, None, False], "boolean"),
        (["yes", "No", ""], "boolean"),
        (["T", "F", "t"], "boolean"),
        ([0, 1, 1], "boolean"),
        ([0.0, 1.0, np.nan], "boolean"),
        (["2020-01-05", "2021-11-30", None], "date"),
        (["2020-01-05T10:00:00Z", "2021-11-30T11:30:00Z"], "date"),
        (["2020-01-05 10:00", "2021-11-30 11:30"], "date"),
        (["31/12/2020", "01/02/2021"], "date"),
        (["12/31/2020", "02/01/2021"], "date"),
        (["31.12.2020", "01.02.2021"], "date"),
        (["5 Jan 2020", "17 Mar 2021"], "date"),
        (["Jan 5, 2020", "Mar 17, 2021"], "date"),
        ([datetime.date(2020, 1, 5), datetime.date(2021, 1, 5)], "date"),
        (["red", "blue", "red", None], "category"),
        (["red", None, "red"], "category"),
        (pd.Categorical([1, 2, 1]), "category"),
        ([f"a long sentence number {i} about things" for i in range(40)], "text"),
        ([str(uuid.UUID(int=i * 10**30)) for i in range(40)], "identifier"),
        ([f"user{i}" for i in range(40)], "identifier"),
        (list(range(1, 41)), "identifier"),
        (list(range(1990, 2030)), "number"),
        ([5, 5, 5], "constant"),
        (["a", "a"], "constant"),
        ([None, None], "constant"),
        (["", "NA", "?"], "constant"),
        ([np.nan, np.nan], "constant"),
    ],
)
def test_kinds(cells, expected):
    assert kind(cells) == expected
    assert expected in COLUMN_KINDS


@pytest.mark.parametrize("name", ["id", "ID", "userId", "user_id", "customer id", "key"])
def test_names_of_identifiers(name):
    assert kind(MANY, name) == "identifier"


@pytest.mark.parametrize("name", ["humid", "paid", "value", "monkey"])
def test_names_of_other_things(name):
    assert kind(MANY, name) == "number"


def test_a_few_words_among_numbers_count_as_missing():
    column = read_column("x", pd.Series([str(i) for i in range(50)] + ["unknown", "broken"]))
    assert (column.kind, column.unread, column.missing) == ("number", 2, 2)


def test_cells_and_examples():
    column = read_column("x", pd.Series([3, 3, 4, 9]))
    assert [column.cell(0), column.examples()] == [3, [3, 4, 9]]
    assert read_column("x", pd.Series(["yes", "no"])).cell(0) == "yes"
    assert read_column("x", pd.Series(["b", None, "a", "b"])).examples() == ["b", "a"]


def test_other_types_of_cells():
    assert read_column("x", pd.Series(pd.to_timedelta([1, 36], unit="h"))).values.tolist() == [1 / 24, 1.5]
    assert read_column("x", pd.Series(pd.period_range("2020-01", periods=3, freq="M"))).kind == "date"
    assert read_column("x", pd.Series([1, None, 3], dtype="Int64")).missing == 1
    assert read_column("x", pd.Series([b"a", b"b", b"a"])).cell(0) == "a"
    assert read_column("x", pd.Series(pd.date_range("2020", periods=3, tz="Europe/Paris"))).kind == "date"
    with pytest.raises(WonderlandError, match=r"^Column 'x' holds complex numbers\. Give their real and imaginary"):
        read_column("x", pd.Series([1j, 2j]))
    nested = re.escape("Column 'x' holds nested values (lists or objects). Unpack it into plain columns.")
    with pytest.raises(WonderlandError, match=f"^{nested}$"):
        read_column("x", pd.Series([[1], [2]]))


def test_read_as():
    number = read_column("x", pd.Series([1.5, 2.0]))
    again = read_as(number, pd.Series(["3", "many", "NA", "1,000"]))
    np.testing.assert_array_equal(again.values, [3, np.nan, np.nan, 1000])
    assert again.unread == 1
    truth = read_column("x", pd.Series(["yes", "no"]))
    again = read_as(truth, pd.Series(["no", "YES", "perhaps", "true"]))
    np.testing.assert_array_equal(again.values, [0, 1, np.nan, 1])
    assert again.unread == 1
    np.testing.assert_array_equal(read_as(truth, pd.Series([0, 1, 2])).values, [0, 1, np.nan])
    date = read_column("x", pd.Series(["31/12/2020", "01/02/2021"]))
    again = read_as(date, pd.Series(["02/03/2021", "2021-02-03", "02-03-2021"]))
    assert [again.cell(i) for i in range(3)] == ["2021-03-02", "2021-02-03", None]
    assert (again.unread, again.unread_example) == (1, "02-03-2021")
    assert read_as(date, pd.Series([1, 2])).unread == 2
    assert read_as(number, pd.Series(pd.date_range("2020", periods=2))).unread == 2
    assert read_as(date, pd.Series(pd.date_range("2020", periods=2))).unread == 0
    words = read_as(read_column("x", pd.Series(["a", "b"])), pd.Series([7, 8]))
    assert words.cell(0) == "7"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.text(max_size=12), st.sampled_from(["1", "yes", "2020-01-01", "NA"])), max_size=30)
)
def test_any_text_is_read(cells):
    column = read_column("x", pd.Series(cells, dtype=object))
    assert column.kind in COLUMN_KINDS
    assert len(column) == len(cells)
    for i in range(len(cells)):
        column.cell(i)
