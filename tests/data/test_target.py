"""The target is chosen, the task is inferred, and what cannot be learned is refused."""

import numpy as np
import pytest

from tests.data.tables import CLASSES, N, R, refused, table, texts
from wonderland import kinds


@pytest.mark.parametrize(
    ("cells", "task", "classes"),
    [
        (np.arange(N) % 3, "multiclass", ["0", "1", "2"]),
        (np.arange(N) % 2 == 0, "binary", ["False", "True"]),
        (np.array(["10", "9", "b"])[np.arange(N) % 3], "multiclass", ["9", "10", "b"]),
        (R.normal(size=N), "regression", None),
        (np.arange(N) * 7, "regression", None),
        (np.array([1.5, 2.5])[np.arange(N) % 2], "binary", ["1.5", "2.5"]),
        (np.where(np.arange(N) == 3, np.nan, np.arange(N) % 2), "binary", ["0", "1"]),
        (["1,200", "1,300", "900"] * 20, "multiclass", ["900", "1200", "1300"]),
    ],
)
def test_tasks_are_inferred(cells, task, classes):
    found = kinds.open(table(end=cells))
    assert (found.task, found.classes, found.target) == (task, classes, "end")
    assert found.y.dtype == (np.float64 if task == "regression" else np.int64)


def test_letters_are_classes_and_ages_are_numbers():
    rows = 20_000
    assert kinds.open({"a": R.normal(size=rows), "y": np.arange(rows) % 26}).task == "multiclass"
    assert kinds.open({"a": R.normal(size=4000), "y": np.arange(4000) % 29}).task == "regression"
    visits = np.rint(R.exponential(5, rows))
    assert kinds.open({"a": R.normal(size=rows), "y": visits}).task == "regression", "a long tail is a count"


def test_tasks_are_overridden():
    assert kinds.open(table(y=np.arange(N) % 3), task="regression").task == "regression"
    assert kinds.open(table(y=np.arange(N) % 12), task="multiclass").task == "multiclass"
    assert kinds.open(table(y=CLASSES), task="classification").task == "binary"


def test_a_class_with_a_single_row():
    found = kinds.open(table(y=["c", *CLASSES[1:]]))
    assert texts(found, "single row") == [
        "Class 'c' has a single row: it can be in the training or the test part, not both."
    ]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"y": ["yes"] * N},
            {},
            "The target 'y' has one class only ('yes'), so there is nothing to learn. Choose another target.",
        ),
        (
            {"y": [True] * N},
            {},
            "The target 'y' has one class only ('True'), so there is nothing to learn. Choose another target.",
        ),
        (
            {"y": [1.5] * N},
            {"task": "regression"},
            "The target 'y' is always 1.5, so there is nothing to learn. Choose another target.",
        ),
        ({"y": [None] * N}, {}, "The target 'y' has no values. Fill it in, or choose another target."),
        (
            {"y": CLASSES},
            {"task": "regresion"},
            "There is no task 'regresion'. Did you mean 'regression'? Known are binary, multiclass, classification, regression, generate.",
        ),
        (
            {"y": ["red", "blue", "green"] * 20},
            {"task": "regression"},
            "The target 'y' is category, not a number (for instance 'red'), so regression is not possible. "
            "Leave task out, or choose another target.",
        ),
        (
            {"y": np.arange(N) % 3},
            {"task": "binary"},
            "The target 'y' has 3 classes, so the task is not binary. Choose multiclass (option task).",
        ),
        (
            {"y": [f"n{i}" for i in range(N)]},
            {},
            "The target 'y' has 60 classes in 60 rows; is it an identifier? Choose another target.",
        ),
        (
            {"y": np.arange(N) * 3},
            {"task": "multiclass"},
            "The target 'y' has 60 classes in 60 rows. Choose regression (option task), or another target.",
        ),
        (
            {"y": np.where(np.arange(N) == 2, np.inf, R.normal(size=N))},
            {},
            "The target 'y' is infinite in row 3. Correct it, or leave the cell empty.",
        ),
        (
            {"y": CLASSES},
            {"target": "y", "drop": ["y"]},
            "Column 'y' is the target, so it cannot be dropped, the group or the time as well.",
        ),
    ],
)
def test_errors_to_the_word(columns, options, message):
    with refused(message):
        kinds.open(table(**columns), **options)


def test_the_finding_offers_the_other_task():
    assert texts(kinds.open(table(y=np.arange(N) % 3)), "task") == [
        "The target 'y' holds 3 classes: the task is multiclass. If that is wrong, choose regression (option task)."
    ]
