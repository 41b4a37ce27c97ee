"""Columns become numbers by rules that were fitted on the training rows alone."""

import copy
import json
import re

import numpy as np
import pandas as pd
import pytest
import torch

from wonderland import kinds
from wonderland.core import WonderlandError
from wonderland.kinds.table.encoder import TableEncoder, squash

R = np.random.default_rng(2)
N = 80
FRAME = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 9 == 0, np.nan, R.normal(40, 9, N)),
        "city": np.array(["Rome", "Oslo", "Bonn", None], dtype=object)[np.arange(N) % 4],
        "member": np.array(["yes", "no"])[R.integers(0, 2, N)],
        "since": pd.date_range("2020-01-01 06:30", periods=N, freq="31h").astype(str),
        "note": [f"bought {i} red things" if i % 5 else None for i in range(N)],
        "price": R.lognormal(size=N),
        "churn": np.array(["stay", "go"])[np.arange(N) // 3 % 2],
    }
)


@pytest.fixture(scope="module")
def table():
    return kinds.open(FRAME, target="churn")


@pytest.fixture(scope="module")
def encoder(table):
    return TableEncoder.fit(table, np.arange(60))


def refused(text):
    return pytest.raises(WonderlandError, match="^" + re.escape(text) + "$")


def test_shape_and_names(table, encoder):
    x = encoder.encode(table)
    assert (x.dtype, tuple(x.shape)) == (torch.float32, (N, len(encoder.numbers) + 1))
    assert encoder.categories == [("city", 5)]
    assert encoder.numbers[:3] == ["age", "age is missing", "member"]
    assert [name for name in encoder.numbers if name.startswith("since")] == [
        "since days",
        "since month sin",
        "since month cos",
        "since weekday sin",
        "since weekday cos",
        "since hour sin",
        "since hour cos",
    ]
    assert len(encoder.column_of) == x.shape[1]
    assert encoder.column_of[-1] == "city"
    assert set(encoder.column_of) == {"age", "city", "member", "since", "note", "price"}
    assert bool(x.isfinite().all())
    assert float(x[:, :-1].abs().max()) <= 3


def test_rows_are_independent(table, encoder):
    whole = encoder.encode(table)
    rows = np.array([70, 3, 3, 12])
    assert torch.equal(encoder.encode(table, rows), whole[rows])


def test_the_encoder_is_fitted_on_training_rows_only(table):
    changed = FRAME.copy()
    changed.loc[60:, "price"] = 1e9
    changed.loc[60:, "city"] = "Elsewhere"
    changed.loc[60:, "note"] = "else"
    one = TableEncoder.fit(table, np.arange(60))
    two = TableEncoder.fit(kinds.open(changed, target="churn"), np.arange(60))
    assert one.to_json() == two.to_json()
    assert all(torch.equal(one.tensors()[key], two.tensors()[key]) for key in ("center", "scale"))


def test_numbers():
    table = kinds.open({"a": [1.0, 2.0, 3.0, 4.0, 5.0, None] * 4, "b": R.normal(size=24), "y": [0, 1] * 12})
    encoder = TableEncoder.fit(table, np.arange(24))
    x = encoder.encode(table)
    z = (np.array([1, 2, 3, 4, 5, 3]) - 3) / 2
    np.testing.assert_allclose(x[:6, 0], z / np.sqrt(1 + (z / 3) ** 2), rtol=1e-6)
    assert x[:6, 1].tolist() == [0, 0, 0, 0, 0, 1]


def test_extreme_numbers_stay_finite():
    wild = np.array([1e308, -1e308, 5e-324, 0, 1, 1e39] * 5)
    table = kinds.open({"a": wild, "tiny": wild * 1e-310, "spike": np.eye(30)[0] * 1e300, "y": [0, 1, 1] * 10})
    for rows in (np.arange(30), np.arange(3), np.array([3, 9])):
        x = TableEncoder.fit(table, rows).encode(table)
        assert bool(x.isfinite().all())
        assert float(x.abs().max()) <= 3
    assert squash(np.array([np.finfo(float).max]), np.array([0.0]), np.array([1e-300])).tolist() == [3.0]


def test_booleans():
    table = kinds.open({"a": ["yes", "no", None] * 10, "b": R.normal(size=30), "y": [0, 1] * 15})
    x = TableEncoder.fit(table, np.arange(30)).encode(table)
    assert x[:3, 0].tolist() == [1, 0, 0.5]
    assert x[:3, 1].tolist() == [0, 0, 1]


def test_an_ordering_date_gives_its_cycles_only():
    table = kinds.open(FRAME, target="churn", time="since")
    assert "since days" not in TableEncoder.fit(table, np.arange(60)).numbers
    assert "since hour sin" in TableEncoder.fit(table, np.arange(60)).numbers


def test_noticed(table, encoder):
    new = encoder.open(FRAME.assign(city="Paris", age=np.nan)[:4])
    encoder.encode(new)
    assert [(finding.kind, finding.subject, finding.count) for finding in encoder.noticed] == [
        ("filled", "age", 4),
        ("unseen", "city", 4),
        ("filled", "note", 1),
    ]
    assert [finding.text for finding in encoder.noticed] == [
        "Column 'age': 4 of 4 cells were missing and filled in.",
        "Column 'city': 4 of 4 cells hold a category that training did not have.",
        "Column 'note': 1 of 4 cells were missing and filled in.",
    ]
    encoder.encode(table, np.array([1]))
    assert encoder.noticed == []


def test_saved_and_rebuilt(table, encoder):
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())), encoder.tensors())
    assert torch.equal(again.encode(table), encoder.encode(table))
    assert (again.classes, again.task, again.target) == (["go", "stay"], "binary", "churn")
    assert again.to_json() == json.loads(json.dumps(encoder.to_json()))


def test_new_data_from_a_file(tmp_path, table, encoder):
    FRAME.drop(columns="churn").to_csv(tmp_path / "new.csv", index=False)
    new = encoder.open(tmp_path / "new.csv")
    assert new.y is None
    assert torch.equal(encoder.encode(new), encoder.encode(table))


def test_targets_of_new_data(tmp_path, table, encoder):
    FRAME.assign(churn=np.where(np.arange(N) == 3, None, FRAME.churn)).to_csv(tmp_path / "new.csv", index=False)
    new = encoder.open(tmp_path / "new.csv", need_target=True)
    assert new.y.tolist() == np.delete(table.y, 3).tolist()
    assert len(new) == N - 1
    assert new.findings[-1].text == "1 of 80 rows has no target 'churn' and is left out."
    assert encoder.open(FRAME[FRAME.churn == "stay"], need_target=True).y.tolist() == [1] * 41


def test_number_classes_come_back(tmp_path):
    frame = pd.DataFrame({"x": R.normal(size=30), "y": np.arange(30) % 3})
    table = kinds.open(frame)
    encoder = TableEncoder.fit(table, np.arange(30))
    for column in (frame.y, frame.y.astype(float), frame.y.astype(str)):
        assert encoder.open(frame.assign(y=column), need_target=True).y.tolist() == table.y.tolist()
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert encoder.open(tmp_path / "a.csv", need_target=True).y.tolist() == table.y.tolist()
    only = frame[frame.y != 1].assign(y=lambda f: f.y)
    assert set(encoder.open(only, need_target=True).y) == {0, 2}


def test_booleans_as_classes(tmp_path):
    frame = pd.DataFrame({"x": R.normal(size=30), "y": np.arange(30) % 2 == 1})
    frame.to_csv(tmp_path / "a.csv", index=False)
    table = kinds.open(tmp_path / "a.csv")
    assert table.classes == ["False", "True"]
    encoder = TableEncoder.fit(table, np.arange(30))
    assert encoder.open(tmp_path / "a.csv", need_target=True).y.tolist() == table.y.tolist()
    assert encoder.open(frame, need_target=True).y.tolist() == table.y.tolist()


def test_codes_with_leading_zeros(tmp_path):
    (tmp_path / "a.csv").write_text(
        "zip,v,y\n" + "".join(f"{z},{i},{i % 2}\n" for i, z in enumerate(["007", "A1", "008"] * 12))
    )
    (tmp_path / "b.csv").write_text("zip,v\n007,1\n008,2\n")
    encoder = TableEncoder.fit(kinds.open(tmp_path / "a.csv", keep="v"), np.arange(36))
    x = encoder.encode(encoder.open(tmp_path / "b.csv"))
    assert x[:, -1].tolist() == [1, 2]


def test_regression_targets_of_new_data():
    frame = pd.DataFrame({"x": R.normal(size=30), "y": R.normal(size=30)})
    table = kinds.open(frame)
    encoder = TableEncoder.fit(table, np.arange(30))
    assert encoder.open(frame, need_target=True).y.tolist() == table.y.tolist()


@pytest.mark.parametrize(
    ("change", "need_target", "message"),
    [
        (lambda f: f.drop(columns="age"), False, "frame lacks the column 'age' that the model needs."),
        (
            lambda f: f.rename(columns={"age": "Age", "note": "z"}),
            False,
            "frame lacks the columns 'age', 'note' that the model needs. Did you mean 'Age'?",
        ),
        (
            lambda f: f.drop(columns="churn"),
            True,
            "frame has no column 'churn', the target to compare with.",
        ),
        (
            lambda f: f.assign(churn=["maybe", "go"] * 40),
            True,
            "The target 'churn' holds class 'maybe' (40 rows), which the model does not know: 'go', 'stay'.",
        ),
        (
            lambda f: f.assign(churn=None),
            True,
            "The target 'churn' has no values in frame. Fill it in, to have something to compare with.",
        ),
        (
            lambda f: f.assign(price=np.inf),
            False,
            "Column 'price' holds an infinite value in row 1 (80 in all). Correct it, or leave the cell empty.",
        ),
    ],
)
def test_new_data_that_does_not_fit(encoder, change, need_target, message):
    with refused(message):
        encoder.open(change(FRAME), need_target=need_target)


def test_other_faults(table, encoder, tmp_path):
    with refused("This model was trained on a table; digits holds images."):
        encoder.open("digits")
    with refused(f"This model was trained on a table; {tmp_path} is a folder."):
        encoder.open(tmp_path)
    other = kinds.open(FRAME.assign(price=["much", "little"] * 40), target="churn", keep="price")
    with refused(
        "Column 'price' is category here and was number in training. Open new data with the encoder's own open."
    ):
        encoder.encode(other)


def test_unread_cells_and_unknown_categories_give_findings(encoder):
    new = encoder.open(FRAME.assign(price=["much", *["3"] * 79], extra=1))
    assert [finding.text for finding in new.findings] == [
        "Column 'price' should hold numbers; 1 cell says something else (for instance 'much') and counts as missing.",
        "Columns the model does not know are ignored: 'extra'.",
    ]


GARBAGE = [None, 0, -1, 1.5, "x", [], {}, [None], [[]], {"a": 1}, True, "x" * 20_000, float("nan"), 10**400]


def test_damaged_records_are_refused_in_a_sentence(encoder):
    saved = json.loads(json.dumps(encoder.to_json()))

    def attempt(broken, tensors):
        try:
            TableEncoder.from_json(broken, tensors)
        except WonderlandError as error:
            return bool(re.fullmatch(r"The saved preprocessing is damaged or not ours: .*\.", str(error), re.S))
        return False

    refusals = 0
    for junk in GARBAGE:
        refusals += attempt(junk, encoder.tensors())
        attempt(saved, junk)
        for key in saved:
            attempt({**saved, key: junk}, encoder.tensors())
        for i, column in enumerate(saved["columns"]):
            for key in (*column, "fill", "flagged", "format", "pair", "parts", "levels", "strange"):
                broken = copy.deepcopy(saved)
                broken["columns"][i][key] = junk
                attempt(broken, encoder.tensors())
        for key in ("center", "scale"):
            refusals += attempt(saved, {**encoder.tensors(), key: junk})
    assert refusals == 3 * len(GARBAGE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, t: s.update(kind="image"), "it is not for tables"),
        (lambda s, t: s.update(task="magic"), "the task is not known"),
        (lambda s, t: s.update(classes=["a", "a"]), "the classes are not different names"),
        (lambda s, t: s.update(task="regression"), "task and classes do not agree"),
        (lambda s, t: s.update(columns=[]), "it has no list of columns"),
        (lambda s, t: s["columns"].append(s["columns"][0]), "a column occurs twice"),
        (lambda s, t: s["columns"][0].update(kind="os.system"), "column 'age' has no known kind"),
        (lambda s, t: s["columns"][0].update(fill="4"), "column 'age' has a fill value that is not a number"),
        (lambda s, t: s["columns"][0].update(extra=1), "column 'age' has a field that is not known"),
        (lambda s, t: s["columns"][1].update(levels=["a", "a"]), "column 'city' has a category twice"),
        (lambda s, t: s["columns"][3].update(format="%Q"), "column 'since' has no known date format"),
        (lambda s, t: t.update(center=torch.zeros(3)), "the tensor 'center' does not fit its columns"),
        (lambda s, t: t.update(scale=t["scale"] * 0), "the tensor 'scale' holds values that are not positive"),
        (lambda s, t: t.update(scale=t["scale"] / 0), "the tensor 'scale' holds values that are not finite"),
    ],
)
def test_errors_about_damage_to_the_word(encoder, change, message):
    saved, tensors = json.loads(json.dumps(encoder.to_json())), encoder.tensors()
    change(saved, tensors)
    with refused(f"The saved preprocessing is damaged or not ours: {message}."):
        TableEncoder.from_json(saved, tensors)


def test_class_names_are_read_as_they_are_written(tmp_path):
    lines = "".join(f"{i * 7 % 50}.5,{c}\n" for i, c in enumerate(["007", "A1", "008"] * 12))
    (tmp_path / "a.csv").write_text("x,y\n" + lines)
    (tmp_path / "b.csv").write_text("x,y\n1.5,007\n2.5,008\n")
    table = kinds.open(tmp_path / "a.csv")
    assert table.classes == ["007", "008", "A1"]
    assert TableEncoder.fit(table, np.arange(36)).open(tmp_path / "b.csv", need_target=True).y.tolist() == [0, 1]
    money = pd.DataFrame({"x": R.normal(size=30), "y": ["1,200", "900"] * 15})
    table = kinds.open(money)
    assert table.classes == ["900", "1200"]
    assert TableEncoder.fit(table, np.arange(30)).open(money[::2], need_target=True).y.tolist() == [1] * 15


def test_nothing_varies_in_training():
    table = kinds.open({"when": ["2020-01-06"] * 20 + ["2021-02-10"] * 20, "y": [0, 1] * 20}, time="when")
    with refused("columns has no usable column: none varies within the training part."):
        TableEncoder.fit(table, np.arange(20))


def test_missing_cells_in_a_column_that_had_none_in_training():
    frame = pd.DataFrame({"c": ["a", "b"] * 15, "x": R.normal(size=30), "y": np.arange(30) // 3 % 2})
    encoder = TableEncoder.fit(kinds.open(frame), np.arange(30))
    assert encoder.encode(encoder.open(frame[:2].assign(c=None)))[:, -1].tolist() == [0, 0]
    assert encoder.noticed[0].text == "Column 'c': 2 of 2 cells are missing, which never happened in training."
