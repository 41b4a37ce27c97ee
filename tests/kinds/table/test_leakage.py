"""A column that gives the answer away is left out; a good column is not."""

import numpy as np
import pytest

from tests.data.tables import CLASSES, N, R, table, texts
from wonderland import kinds


def test_a_column_that_determines_the_target_is_left_out():
    codes = np.array(["N", "Y"])[np.arange(N) % 2]
    found = kinds.open(table(answer=codes, y=CLASSES))
    assert texts(found, "leakage") == [
        "Column 'answer' determines the target 'y' (each of its values goes with one class) and is left out; "
        "the option keep keeps it."
    ]
    assert "answer" not in [column.name for column in found.features]
    assert "answer" in [column.name for column in kinds.open(table(answer=codes, y=CLASSES), keep="answer").features]


def test_missing_cells_can_leak_the_target():
    found = kinds.open(table(paid=np.where(CLASSES == "yes", 1.0, np.nan), y=CLASSES))
    assert found.left_out["paid"] == "a leak of the target"


@pytest.mark.parametrize(
    "twin", [lambda y: 3 * y + 2, lambda y: -np.exp(y), lambda y: np.where(np.arange(N) < 2, np.nan, y)]
)
def test_a_column_that_determines_a_number_is_left_out(twin):
    y = R.normal(size=N)
    found = kinds.open(table(twin=twin(y), y=y))
    assert found.left_out == {"y": "the target", "twin": "a leak of the target"}


def test_a_category_that_names_each_value_is_a_leak():
    y = np.arange(N) % 12 * 1.7
    found = kinds.open(table(name=[f"v{int(i)}" for i in y], y=y), task="regression")
    assert found.left_out["name"] == "a leak of the target"


def test_good_columns_are_no_leak():
    y = R.normal(size=300)
    found = kinds.open({"near": y + 0.1 * R.normal(size=300), "many": [f"k{i // 2}" for i in range(300)], "y": y})
    assert not texts(found, "leakage")
    assert not texts(kinds.open("iris"), "leakage")
    assert not texts(kinds.open({"x": [0.5, 1.5] * 9, "y": ["a", "b"] * 9}), "leakage"), "too few rows to tell"


def test_a_threshold_is_only_noted():
    x = np.concatenate([R.uniform(0, 1, 100), R.uniform(2, 3, 100)])
    found = kinds.open({"x": x, "a": R.normal(size=200), "y": ["a"] * 100 + ["b"] * 100})
    assert texts(found, "separates") == [
        "One threshold on column 'x' separates the classes of 'y'. It is kept; make sure that it is known before the target is."
    ]
    assert [column.name for column in found.features] == ["x", "a"]
