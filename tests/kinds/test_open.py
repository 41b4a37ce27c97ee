"""One door for every source."""

import re

import numpy as np
import pandas as pd
import pytest

from wonderland import kinds
from wonderland.core import WonderlandError
from wonderland.core.options import given
from wonderland.data import BUNDLED

R = np.random.default_rng(1)
X = R.normal(size=(40, 3))
Y = np.array(["a", "b"])[np.arange(40) % 2]
FRAME = pd.DataFrame(X, columns=["c0", "c1", "c2"]).assign(target=Y)


def refused(text):
    return pytest.raises(WonderlandError, match="^" + re.escape(text) + "$")


def test_every_source_gives_the_same_table(tmp_path):
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    FRAME.to_parquet(tmp_path / "a.parquet")
    FRAME.to_json(tmp_path / "a.jsonl", orient="records", lines=True, double_precision=15)
    sources = [
        FRAME,
        FRAME.to_dict("list"),
        (X, Y),
        (X.tolist(), list(Y)),
        (FRAME[["c0", "c1", "c2"]], FRAME["target"]),
        polars.DataFrame(FRAME.to_dict("list")),
        polars.DataFrame(FRAME.to_dict("list")).lazy(),
        tmp_path / "a.csv",
        str(tmp_path / "a.tsv"),
        tmp_path / "a.parquet",
    ]
    opened = [kinds.open(source) for source in sources]
    assert len({found.fingerprint for found in opened}) == 1
    assert all(found.classes == ["a", "b"] for found in opened)
    lines = kinds.open(tmp_path / "a.jsonl")
    np.testing.assert_allclose(lines.column("c0").values, X[:, 0], atol=1e-14)


def test_polars_types():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "n": [1, None, 3, 4, 7] * 8,
            "s": ["x", None, "y", "y", "x"] * 8,
            "b": [True, None, False, True, True] * 8,
            "d": [None, *pd.date_range("2020", periods=39).to_pydatetime().tolist()],
            "y": [0, 1, 1, 0, 1] * 8,
        }
    ).with_columns(c=polars.col("s").cast(polars.Categorical))
    found = kinds.open(frame, target="y", keep=["n", "s", "c", "b"])
    assert {column.name: (column.kind, column.missing) for column in found.features} == {
        "n": ("number", 8),
        "s": ("category", 8),
        "b": ("boolean", 8),
        "d": ("date", 1),
        "c": ("category", 8),
    }
    with refused("Column 'l' holds nested values (lists or objects). Unpack it into plain columns."):
        kinds.open(polars.DataFrame({"l": [[1], [2]], "y": [0, 1]}))


def test_origin_and_options_tell_how_to_open_it_again(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    found = kinds.open(tmp_path / "a.csv", target="target", drop=["c1"])
    assert found.origin == {"path": str(tmp_path / "a.csv")}
    assert given(found.options) == {"target": "target", "drop": ["c1"]}
    assert kinds.open("iris").origin == {"bundled": "iris"}
    found = kinds.open(FRAME)
    assert (found.origin, given(found.options)) == ({"memory": "frame"}, {})


def test_images_go_to_images():
    pixels = R.integers(0, 255, (8, 6, 6)).astype(np.uint8)
    found = kinds.open((pixels, [0, 1] * 4))
    assert (found.kind, len(found)) == ("image", 8)
    with refused(
        "group is an option of table, graph, sound and signal, and arrays is read as image: leave it out, or name another kind with kind (--kind)."
    ):
        kinds.open((pixels, [0, 1] * 4), group="x")


def test_unknown_sources(tmp_path):
    known = ", ".join(sorted(BUNDLED))
    with refused(
        f"There is no file or folder iriss, and no bundled set of that name. Did you mean 'iris'? Bundled are {known}."
    ):
        kinds.open("iriss")
    (tmp_path / "sales.csv").write_text("a,b\n1,2\n")
    with refused(
        f"There is no file or folder {tmp_path}/sale.csv, and no bundled set of that name. "
        f"Did you mean 'sales.csv'? Bundled are {known}."
    ):
        kinds.open(tmp_path / "sale.csv")
    with refused(
        "A source of type int is not known. Give a path, a frame, a dict of columns, arrays (X, y), or a bundled name."
    ):
        kinds.open(3)
    with pytest.raises(WonderlandError, match=r"^There is no file or folder"):
        kinds.open("x" * 5000)
    with refused("This is already an open dataset. Give the source it was opened from."):
        kinds.open(kinds.open(FRAME))


def test_a_path_wins_over_a_bundled_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris").mkdir()
    assert len(kinds.open("iris")) == 150  # an empty folder hides nothing
    (tmp_path / "iris" / "a.bin").write_bytes(b"\0")
    with pytest.raises(WonderlandError):
        kinds.open("iris")


def test_shapes_that_do_not_fit():
    with refused("X has 40 rows and y has 39."):
        kinds.open((X, Y[1:]))
    with refused("X has 5 axes. Give (rows, columns) for a table or (n, h, w[, c]) for images."):
        kinds.open((np.zeros((1, 1, 1, 1, 1)), [1]))
    with refused("Column 'b' has 3 rows, but column 'a' has 2."):
        kinds.open({"a": [1, 2], "b": [1, 2, 3]})
    with refused("The rows of X have different lengths. Give a list of rows of one length."):
        kinds.open(([[1, 2], [3]], [0, 1]))
    with refused("The frame has no rows."):
        kinds.open(FRAME[:0])
    with refused("The frame has more than one column named 'a' (columns 1, 2). Rename them."):
        kinds.open(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with refused("The frame has more than one level of column names. Flatten them first."):
        kinds.open(pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])))
    with refused("X has a column named 'target', the name of y. Rename one of them."):
        kinds.open((FRAME, Y))


def test_a_file_with_everything(tmp_path):
    rows = 80
    lines = ["id;when;price;city;note;ok;churn"]
    for i in range(rows):
        note = f'"liked it; bought {i} more\nthings ""today"""' if i % 9 else ""
        lines.append(
            f"u-{i};{i % 28 + 1:02d}/0{i % 3 + 1}/2021;{i % 13},5;{['Köln', 'Rom'][i % 2]};{note};{'yn'[i % 2]};{'abba'[i % 4]}"
        )
    (tmp_path / "all.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    found = kinds.open(tmp_path / "all.csv")
    assert {column.name: column.kind for column in found.features} == {
        "when": "date",
        "price": "number",
        "city": "category",
        "note": "text",
        "ok": "boolean",
    }
    assert found.column("price").values[:2].tolist() == [0.5, 1.5]
    assert len(found) == rows


def test_a_folder_of_tables(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    assert len(kinds.open(tmp_path)) == len(FRAME)
    (tmp_path / "b.parquet").write_bytes(b"x")
    for options in ({}, {"target": "target"}):
        with refused(f"{tmp_path / 'b.parquet'} is not a Parquet file, or it is damaged."):
            kinds.open(tmp_path, **options)
    (tmp_path / "c.jsonl").write_text("\n")
    with refused(f"{tmp_path / 'c.jsonl'} is empty. Give a file that holds rows."):
        kinds.open(tmp_path / "c.jsonl")
    with refused("Column 'b' has 1 row, but column 'a' has 2."):
        kinds.open({"a": [1, 2], "b": [1]})
