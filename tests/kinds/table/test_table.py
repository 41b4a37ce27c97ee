"""Tables: what is wrong is repaired and said, what would mislead is left out."""

import numpy as np
import pandas as pd
import pytest

from tests.data.tables import CLASSES, N, R, refused, table, texts
from wonderland import kinds
from wonderland.kinds.table.table import Table


def test_a_table():
    found = kinds.open(table(label=CLASSES))
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
    found = kinds.open(table(**{"<b>": ["<i>"] * 30 + ["&"] * 30}, y=CLASSES))
    assert "<i>" not in found._repr_html_()
    assert "<b>&lt;" not in found._repr_html_()


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
            {"y": CLASSES},
            {"drop": ["a", "b"]},
            "columns has no usable column besides the target 'y': 'a' is dropped as asked; 'b' is dropped as asked.",
        ),
        (
            {"c": CLASSES, "y": CLASSES},
            {"drop": ["a", "b"]},
            "columns has no usable column besides the target 'y': 'a' is dropped as asked; 'b' is dropped as asked; "
            "'c' is a leak of the target. The option keep keeps 'c'.",
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
def test_errors_to_the_word(columns, options, message):
    with refused(message):
        kinds.open(table(**columns), **options)


def test_repairs_give_findings():
    found = kinds.open(
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
        "1 of 60 rows has no target 'y' and is left out.",
        "Column 'Id' looks like an identifier (59 different values) and is left out.",
        "Column 'empty' has no values and is left out.",
        "Column 'same' is always 7 and is left out.",
        "Column 'gap' has no value in 6 of 59 rows.",
        "Column 'city' has 3 categories with a single row; little is learned about them.",
        "Column 'size' is read as numbers; 1 cell says something else (for instance 'many') and counts as missing.",
        "Column 'size' has no value in 1 of 59 rows.",
    ]
    assert found.left_out == {"y": "the target", "Id": "an identifier", "empty": "empty", "same": "constant"}


def test_strict_stops():
    with refused(
        "Strict mode stops here. Column 'id' looks like an identifier (60 different values) and is left out. "
        "Column 'same' is always 7 and is left out. Clean the data, or leave strict mode."
    ):
        kinds.open(table(id=np.arange(60), same=[7] * N, y=CLASSES), strict=True)
    kinds.open(table(id=np.arange(60), same=[7] * N, y=CLASSES), strict=True, drop=["id", "same"])


def test_identifiers_are_kept_when_asked():
    found = kinds.open(table(id=np.arange(N), code=[f"u{i}" for i in range(N)], y=CLASSES), keep=["id", "code"])
    assert [(column.name, column.kind) for column in found.features[2:]] == [("id", "number"), ("code", "text")]


def test_repeated_rows_are_counted():
    found = kinds.open({"a": [1.5, 2.5, 1.5, None, None] * 5, "y": [0, 1, 0, 1, 1] * 5}, keep="a")
    assert texts(found, "duplicates") == ["22 rows repeat an earlier row exactly; they are kept."]


def test_groups_and_times():
    days = pd.date_range("2020", periods=N).astype(str)
    found = kinds.open(table(who=[f"p{i % 7}" for i in range(N)], day=days, y=CLASSES), group="who", time="day")
    assert len(np.unique(found.groups)) == 7
    assert (np.diff(found.times) == 1).all()
    assert "who" not in [column.name for column in found.features]
    assert "day" in [column.name for column in found.features]
    steps = kinds.open(table(step=np.arange(N) * 2, y=CLASSES), time="step")
    assert "step" not in [column.name for column in steps.features]


def test_ambiguous_dates_give_a_finding():
    found = kinds.open(table(day=["11/12/2020", "01/02/2021", "03/04/2021"] * 20, y=CLASSES))
    assert texts(found, "date order") == [
        "Column 'day' could have the day or the month first; it is read with the month first (%m/%d/%Y). "
        "Write dates in one format, such as 2024-01-31."
    ]


def test_the_fingerprint_is_of_the_content(tmp_path):
    columns = table(y=CLASSES)
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "one.csv", index=False)
    frame.to_csv(tmp_path / "two.csv", index=False)
    one, two, memory = kinds.open(tmp_path / "one.csv"), kinds.open(tmp_path / "two.csv"), kinds.open(frame)
    assert one.fingerprint == two.fingerprint == memory.fingerprint
    assert len(one.fingerprint) == 64
    columns["a"] = columns["a"] + np.eye(N)[0]
    assert kinds.open(columns).fingerprint != one.fingerprint
    assert kinds.open(frame.rename(columns={"a": "A"})).fingerprint != one.fingerprint


def test_a_column_of_rare_categories_is_left_out():
    cells = [f"p{i}" for i in range(50)] + ["often"] * 10
    found = kinds.open(table(place=cells, y=CLASSES))
    assert found.left_out["place"] == "made of rare categories"
    assert texts(found, "rare") == [
        "Column 'place' holds a category of its own in 50 of 60 rows, too few to learn from, and is left out; the option keep "
        "keeps it as text."
    ]
    assert kinds.open(table(place=cells, y=CLASSES), keep="place").column("place").kind == "text"
    some = [f"p{i // 3}" for i in range(54)] + ["often"] * 6
    assert kinds.open(table(place=some, y=CLASSES)).column("place").kind == "category"


def test_dates_in_several_formats_give_a_finding():
    found = kinds.open(table(day=["2024-01-31", "01/31/2024", "02/03/2024"] * 20, y=CLASSES))
    assert texts(found, "date order") == [
        "Column 'day' holds dates in several formats; where day and month are in doubt, the month is first. Write dates in "
        "one format, such as 2024-01-31."
    ]


def test_a_headline_counts_one_row():
    assert Table("t", [kinds.open(table(y=CLASSES)).features[0].take(np.arange(1))]).headline() == "t: 1 row, no target"
