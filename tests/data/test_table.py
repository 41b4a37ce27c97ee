"""Tables: the target is settled, what is wrong is repaired and said, what would mislead is left out."""

import re

import numpy as np
import pandas as pd
import pytest

import wonderland.data as data
from wonderland.core import WonderlandError

R = np.random.default_rng(0)
N = 60


def table(**columns):
    base = {"a": R.normal(size=N), "b": R.choice(["x", "y", "z"], N)}
    return {**base, **columns}


def refused(text):
    return pytest.raises(WonderlandError, match="^" + re.escape(text) + "$")


def texts(dataset, kind):
    return [finding.text for finding in dataset.findings if finding.kind == kind]


CLASSES = np.array(["no", "yes"])[np.arange(N) % 2]


def test_a_table():
    found = data.open(table(label=CLASSES))
    assert (found.kind, found.task, found.classes, found.target, len(found)) == (
        "table",
        "binary",
        ["no", "yes"],
        "label",
        N,
    )
    assert found.y.dtype == np.int64
    assert found.y.tolist() == [0, 1] * (N // 2)
    assert found.summary()[1]["kind"] == "category"
    assert set(found.example(1)) == {"a", "b", "label"}
    assert found.example(1)["label"] == "yes"
    assert repr(found) == "<Table columns: 60 rows, binary, 2 classes>"
    assert "<table>" in found._repr_html_()
    assert texts(found, "target") == ["Column 'label' is taken as the target by its name."]
    assert texts(found, "task") == ["The target 'label' holds 2 classes: the task is binary."]


def test_html_is_escaped():
    found = data.open(table(**{"<b>": ["<i>"] * 30 + ["&"] * 30}, y=CLASSES))
    assert "<i>" not in found._repr_html_()
    assert "<b>&lt;" not in found._repr_html_()


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
    found = data.open(table(end=cells))
    assert (found.task, found.classes, found.target) == (task, classes, "end")
    assert found.y.dtype == (np.float64 if task == "regression" else np.int64)


def test_letters_are_classes_and_ages_are_numbers():
    rows = 20_000
    assert data.open({"a": R.normal(size=rows), "y": np.arange(rows) % 26}).task == "multiclass"
    assert data.open({"a": R.normal(size=4000), "y": np.arange(4000) % 29}).task == "regression"
    visits = np.rint(R.exponential(5, rows))
    assert data.open({"a": R.normal(size=rows), "y": visits}).task == "regression", "a long tail is a count"


def test_tasks_are_overridden():
    assert data.open(table(y=np.arange(N) % 3), task="regression").task == "regression"
    assert data.open(table(y=np.arange(N) % 12), task="multiclass").task == "multiclass"
    assert data.open(table(y=CLASSES), task="classification").task == "binary"


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"y": CLASSES}, {"target": "yy"}, "There is no column 'yy' (given as target). Did you mean 'y'?"),
        (
            {"y": CLASSES},
            {"group": "person"},
            "There is no column 'person' (given as group). The columns are 'a', 'b', 'y'.",
        ),
        ({"when": CLASSES}, {"time": "wen"}, "There is no column 'wen' (given as time). Did you mean 'when'?"),
        ({"y": CLASSES}, {"keep": ["B"]}, "There is no column 'B' (given as keep). Did you mean 'b'?"),
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
        ({"y": [None] * N}, {}, "The target 'y' has no values."),
        (
            {"y": CLASSES},
            {"task": "regresion"},
            "There is no task 'regresion'. Did you mean 'regression'? Tasks are binary, multiclass, regression.",
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
            "The target 'y' has 3 classes, so the task is not binary. Use task='multiclass'.",
        ),
        (
            {"y": [f"n{i}" for i in range(N)]},
            {},
            "The target 'y' has 60 classes in 60 rows; is it an identifier? Choose another target.",
        ),
        (
            {"y": np.arange(N) * 3},
            {"task": "multiclass"},
            "The target 'y' has 60 classes in 60 rows. Use task='regression', or choose another target.",
        ),
        (
            {"c": np.where(np.arange(N) == 4, np.inf, 1.0), "y": CLASSES},
            {},
            "Column 'c' holds an infinite value in row 5. Correct it, or leave the cell empty.",
        ),
        (
            {"c": np.where(np.arange(N) > 57, -np.inf, 1.0), "y": CLASSES},
            {},
            "Column 'c' holds an infinite value in row 59 (2 in all). Correct it, or leave the cell empty.",
        ),
        (
            {"y": np.where(np.arange(N) == 2, np.inf, R.normal(size=N))},
            {},
            "The target 'y' is infinite in row 3. Correct it, or leave the cell empty.",
        ),
        (
            {"y": CLASSES},
            {"drop": ["a", "b"]},
            "columns has no usable column besides the target 'y': 'a' is dropped as asked; 'b' is dropped as asked.",
        ),
        (
            {"c": CLASSES, "y": CLASSES},
            {"drop": ["a", "b"]},
            "columns has no usable column besides the target 'y': 'a' is dropped as asked; 'b' is dropped as asked; "
            "'c' is the target in disguise. keep='c' keeps it.",
        ),
        (
            {"y": CLASSES},
            {"target": "y", "drop": ["y"]},
            "Column 'y' is the target, so it cannot be dropped, the group or the time as well.",
        ),
        (
            {"t": ["x", "y"] * 30, "y": CLASSES},
            {"time": "t"},
            "The time column 't' holds neither dates nor numbers (it is category).",
        ),
        (
            {"t": [None, *range(59)], "y": CLASSES},
            {"time": "t"},
            "The time column 't' has no time in 1 of 60 rows (first in row 1).",
        ),
        ({"y": CLASSES}, {"keep": [3]}, "keep holds 3, which is not a column name."),
    ],
)
def test_faults(columns, options, message):
    with refused(message):
        data.open(table(**columns), **options)


def test_repairs_are_said():
    found = data.open(
        table(
            Id=np.arange(1, N + 1),
            empty=[None] * N,
            same=[7] * N,
            gap=np.where(np.arange(N) < 6, np.nan, R.normal(size=N)),
            city=["Rome"] * 57 + ["Oslo", "Bonn", "Bari"],
            size=["many", *R.permutation(np.arange(100, 159)).astype(str)],
            y=np.where(np.arange(N) == 9, None, CLASSES),
        )
    )
    assert len(found) == N - 1
    assert [(finding.kind, finding.subject, finding.count) for finding in found.findings if finding.repair] == [
        ("target missing", "y", 1),
        ("identifier", "Id", 59),
        ("empty", "empty", 59),
        ("constant", "same", 59),
        ("missing", "gap", 6),
        ("rare", "city", 3),
        ("unread", "size", 1),
        ("missing", "size", 1),
    ]
    assert [finding.text for finding in found.findings if finding.repair] == [
        "1 of 60 rows have no target 'y' and are left out.",
        "Column 'Id' looks like an identifier (59 different values) and is left out.",
        "Column 'empty' has no values and is left out.",
        "Column 'same' is always 7 and is left out.",
        "Column 'gap' misses 6 of 59 values.",
        "Column 'city': 3 categories have fewer than 4 rows; pooled.",
        "Column 'size' is read as number; cells that are not, counted as missing: 1.",
        "Column 'size' misses 1 of 59 values.",
    ]
    assert found.left_out == {"y": "the target", "Id": "an identifier", "empty": "empty", "same": "constant"}


def test_strict_stops():
    with refused(
        "Strict mode stops here. Column 'id' looks like an identifier (60 different values) and is left out. "
        "Column 'same' is always 7 and is left out. Clean the data, or leave strict mode."
    ):
        data.open(table(id=np.arange(60), same=[7] * N, y=CLASSES), strict=True)
    data.open(table(id=np.arange(60), same=[7] * N, y=CLASSES), strict=True, drop=["id", "same"])


def test_identifiers_are_kept_when_asked():
    found = data.open(table(id=np.arange(N), code=[f"u{i}" for i in range(N)], y=CLASSES), keep=["id", "code"])
    assert [(column.name, column.kind) for column in found.features[2:]] == [("id", "number"), ("code", "text")]


def test_repeated_rows_are_counted():
    found = data.open({"a": [1.5, 2.5, 1.5, None, None] * 5, "y": [0, 1, 0, 1, 1] * 5}, keep="a")
    assert texts(found, "duplicates") == ["22 rows repeat an earlier row exactly; kept."]


def test_a_class_with_a_single_row():
    found = data.open(table(y=["c", *CLASSES[1:]]))
    assert texts(found, "single row") == ["Class 'c' has a single row: it can be learned from or tested on, not both."]


def test_the_target_in_disguise_is_left_out():
    codes = np.array(["N", "Y"])[np.arange(N) % 2]
    found = data.open(table(answer=codes, y=CLASSES))
    assert texts(found, "disguise") == [
        "Column 'answer' is the target 'y' in disguise (each of its values goes with one class) and is left out; "
        "keep='answer' keeps it."
    ]
    assert "answer" not in [column.name for column in found.features]
    assert "answer" in [column.name for column in data.open(table(answer=codes, y=CLASSES), keep="answer").features]


def test_missing_cells_can_be_the_disguise():
    found = data.open(table(paid=np.where(CLASSES == "yes", 1.0, np.nan), y=CLASSES))
    assert found.left_out["paid"] == "the target in disguise"


@pytest.mark.parametrize(
    "twin", [lambda y: 3 * y + 2, lambda y: -np.exp(y), lambda y: np.where(np.arange(N) < 2, np.nan, y)]
)
def test_the_target_in_disguise_of_regression(twin):
    y = R.normal(size=N)
    found = data.open(table(twin=twin(y), y=y))
    assert found.left_out == {"y": "the target", "twin": "the target in disguise"}


def test_a_category_that_names_each_value_is_a_disguise():
    y = np.arange(N) % 12 * 1.7
    found = data.open(table(name=[f"v{int(i)}" for i in y], y=y), task="regression")
    assert found.left_out["name"] == "the target in disguise"


def test_good_columns_are_no_disguise():
    y = R.normal(size=300)
    found = data.open({"near": y + 0.1 * R.normal(size=300), "many": [f"k{i // 2}" for i in range(300)], "y": y})
    assert not texts(found, "disguise")
    assert not texts(data.open("iris"), "disguise")
    assert not texts(data.open({"x": [0.5, 1.5] * 9, "y": ["a", "b"] * 9}), "disguise"), "too few rows to tell"


def test_a_threshold_is_only_noted():
    x = np.concatenate([R.uniform(0, 1, 100), R.uniform(2, 3, 100)])
    found = data.open({"x": x, "a": R.normal(size=200), "y": ["a"] * 100 + ["b"] * 100})
    assert texts(found, "separates") == [
        "Column 'x' alone separates the classes of 'y' by one threshold; kept. Is it known beforehand?"
    ]
    assert [column.name for column in found.features] == ["x", "a"]


def test_groups_and_times():
    days = pd.date_range("2020", periods=N).astype(str)
    found = data.open(table(who=[f"p{i % 7}" for i in range(N)], day=days, y=CLASSES), group="who", time="day")
    assert len(np.unique(found.groups)) == 7
    assert (np.diff(found.times) == 1).all()
    assert "who" not in [column.name for column in found.features]
    assert "day" in [column.name for column in found.features]
    steps = data.open(table(step=np.arange(N) * 2, y=CLASSES), time="step")
    assert "step" not in [column.name for column in steps.features]


def test_ambiguous_dates_are_said():
    found = data.open(table(day=["11/12/2020", "01/02/2021", "03/04/2021"] * 20, y=CLASSES))
    assert texts(found, "date order") == ["Column 'day': could be day or month first; read as %m/%d/%Y."]


def test_the_fingerprint_is_of_the_content(tmp_path):
    columns = table(y=CLASSES)
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "one.csv", index=False)
    frame.to_csv(tmp_path / "two.csv", index=False)
    one, two, memory = data.open(tmp_path / "one.csv"), data.open(tmp_path / "two.csv"), data.open(frame)
    assert one.fingerprint == two.fingerprint == memory.fingerprint
    assert len(one.fingerprint) == 64
    columns["a"] = columns["a"] + np.eye(N)[0]
    assert data.open(columns).fingerprint != one.fingerprint
    assert data.open(frame.rename(columns={"a": "A"})).fingerprint != one.fingerprint
