"""A column that gives the answer away is left out; a good column is not."""

import numpy as np
import pytest

from tests.data.tables import CLASSES, N, R, table, texts
from wonderland import kinds


def test_the_target_in_disguise_is_left_out():
    codes = np.array(["N", "Y"])[np.arange(N) % 2]
    found = kinds.open(table(answer=codes, y=CLASSES))
    assert texts(found, "disguise") == [
        "Column 'answer' is the target 'y' in disguise (each of its values goes with one class) and is left out; "
        "the option keep keeps it."
    ]
    assert "answer" not in [column.name for column in found.features]
    assert "answer" in [column.name for column in kinds.open(table(answer=codes, y=CLASSES), keep="answer").features]


def test_missing_cells_can_be_the_disguise():
    found = kinds.open(table(paid=np.where(CLASSES == "yes", 1.0, np.nan), y=CLASSES))
    assert found.left_out["paid"] == "the target in disguise"


@pytest.mark.parametrize(
    "twin", [lambda y: 3 * y + 2, lambda y: -np.exp(y), lambda y: np.where(np.arange(N) < 2, np.nan, y)]
)
def test_the_target_in_disguise_of_regression(twin):
    y = R.normal(size=N)
    found = kinds.open(table(twin=twin(y), y=y))
    assert found.left_out == {"y": "the target", "twin": "the target in disguise"}


def test_a_category_that_names_each_value_is_a_disguise():
    y = np.arange(N) % 12 * 1.7
    found = kinds.open(table(name=[f"v{int(i)}" for i in y], y=y), task="regression")
    assert found.left_out["name"] == "the target in disguise"


def test_good_columns_are_no_disguise():
    y = R.normal(size=300)
    found = kinds.open({"near": y + 0.1 * R.normal(size=300), "many": [f"k{i // 2}" for i in range(300)], "y": y})
    assert not texts(found, "disguise")
    assert not texts(kinds.open("iris"), "disguise")
    assert not texts(kinds.open({"x": [0.5, 1.5] * 9, "y": ["a", "b"] * 9}), "disguise"), "too few rows to tell"


def test_a_threshold_is_only_noted():
    x = np.concatenate([R.uniform(0, 1, 100), R.uniform(2, 3, 100)])
    found = kinds.open({"x": x, "a": R.normal(size=200), "y": ["a"] * 100 + ["b"] * 100})
    assert texts(found, "separates") == [
        "One threshold on column 'x' separates the classes of 'y'. It is kept; make sure that it is known before the target is."
    ]
    assert [column.name for column in found.features] == ["x", "a"]
