"""The same table from every format and encoding, big integers to the digit, and files that are one table together."""

import json
import sqlite3
import zipfile
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

from wonderland import kinds
from wonderland.core import WonderlandError
from wonderland.data import feather
from wonderland.data.read import read_file
from wonderland.data.reading import Reading
from wonderland.data.source import read_source
from wonderland.data.sql import read_url

CELLS = {"city": ["Köln", "Paris", "Köln"], "x": [1.5, 2.0, 3.25], "big": [2**60 + 1, 2**60 + 2, 7]}
TABLE = pd.DataFrame(CELLS)


def same(frame):
    assert list(frame.columns) == list(CELLS)
    assert frame["city"].tolist() == CELLS["city"]
    assert frame["x"].tolist() == CELLS["x"]
    assert [int(cell) for cell in frame["big"]] == CELLS["big"]


@pytest.mark.parametrize("orient", ["records", "columns", "split", "list", "lines", "nested"])
def test_json_in_every_layout(tmp_path, orient):
    path = tmp_path / "a.json"
    if orient == "list":
        path.write_text(json.dumps(CELLS))
    elif orient == "nested":
        path.write_text(json.dumps({"data": json.loads(TABLE.to_json(orient="records"))}))
    else:
        TABLE.to_json(path, **({"orient": "records", "lines": True} if orient == "lines" else {"orient": orient}))
    same(read_file(path)[0])


def test_integers_stay_exact_beside_missing_cells(tmp_path):
    (tmp_path / "a.json").write_text('[{"id": 1152921504606846977}, {"id": null}, {"id": 1234567890123456789012345}]')
    cells = read_file(tmp_path / "a.json")[0]["id"].tolist()
    assert cells[0] == 2**60 + 1
    assert cells[2] == 1234567890123456789012345


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("cp1252", "Windows-1252 (Western European)"),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16-LE"),
        ("utf-16-be", "UTF-16-BE"),
        ("utf-8-sig", ""),
    ],
)
def test_encodings_are_found_out_and_reported(tmp_path, encoding, said):
    path = tmp_path / "a.csv"
    path.write_bytes(TABLE.to_csv(index=False).encode(encoding))
    frame, findings = read_file(path)
    same(frame)
    text = f"a.csv is not UTF-8; it is read as {said}. If letters look wrong, name the encoding (--encoding)."
    assert [finding.text for finding in findings] == ([text] if said else [])


def test_an_encoding_that_is_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("город,x\nМосква,1\n".encode("cp1251"))
    frame, findings = read_file(path, reading=Reading(encoding="cp1251"))
    assert (list(frame.columns), findings) == (["город", "x"], [])
    with pytest.raises(WonderlandError, match=r"is not utf-8 text: the byte at offset 0 does not fit\. Name another"):
        read_file(path, reading=Reading(encoding="utf-8"))


@pytest.mark.parametrize("encoding", ["zlib", "rot13"])
def test_a_transform_is_no_encoding_of_text(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(WonderlandError, match=f"^{encoding} is no encoding of text. Name its encoding with --encoding"):
        read_file(path, reading=Reading(encoding=encoding))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "nope"}, "There is no encoding 'nope'"),
        ({"delimiter": "ab"}, "The delimiter is one character, or one of tab"),
        ({"quote": "''"}, "The quote is one character, or none"),
    ],
)
def test_what_cannot_be_meant(options, message):
    with pytest.raises(WonderlandError, match=message):
        Reading(**options)


def test_comments_separator_lines_delimiters_and_quotes(tmp_path):
    path = tmp_path / "a.csv"

    def read(text, **options):
        path.write_text(text)
        frame, findings = read_file(path, reading=Reading(**options))
        return frame.to_dict("list"), [finding.text for finding in findings]

    cells = {"a": [1, 2], "b": ["x", "y"]}
    assert read("# by a probe, twice\n#\n\na,b\n1,x\n2,y\n") == (
        cells,
        ["a.csv: 2 lines before the header are comments, skipped."],
    )
    assert read("#a,b\n1,x\n2,y\n") == (cells, [])
    assert read("sep=;\na;b\n1;x\n2;y\n") == (cells, [])
    assert read("a~b\n1~x\n2~y\n", delimiter="~") == (cells, [])
    assert read("a,b\n1,'x,z'\n2,y\n", quote="'") == ({"a": [1, 2], "b": ["x,z", "y"]}, [])
    assert read('a,b\n1,"x\n2,y\n', quote="none") == ({"a": [1, 2], "b": ['"x', "y"]}, [])
    lone = "a.csv: quotes are read as plain characters, since not all of them are closed."
    assert read('a\tb\n1\t"x\n2\ty\n') == ({"a": [1, 2], "b": ['"x', "y"]}, [lone])


def test_a_text_file_is_a_table_where_its_delimiter_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a~b~y\n" + "".join(f"{i % 7}~{i % 5}~{i % 2}\n" for i in range(40)))
    assert kinds.open(path).kind == "corpus"
    assert [column.name for column in kinds.open(path, delimiter="~", target="y").features] == ["a", "b"]


def test_long_integers_are_never_one_float(tmp_path):
    rows = 40
    frame = pd.DataFrame({"id25": [str(10**24 + i) for i in range(rows)], "id19": [10**18 + i for i in range(rows)]})
    frame = frame.assign(shop=[str(10**20 + i % 4) for i in range(rows)], y=[i % 3 % 2 for i in range(rows)])
    frame["id19"] = frame["id19"].astype("Int64")
    frame.loc[3, "id19"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    for source in (tmp_path / "a.csv", frame):
        table = kinds.open(source, kind="table", target="y")
        assert table.left_out == {"y": "the target", "id25": "an identifier", "id19": "an identifier"}
        assert table.column("shop").kind == "category"
        assert sorted(table.column("shop").levels) == [str(10**20 + i) for i in range(4)]
    text = (
        "Column 'shop' holds whole numbers of 16 digits or more, which no float holds exactly: they are read as names."
    )
    assert text in [finding.text for finding in kinds.open(tmp_path / "a.csv", target="y").findings]


def test_a_database(tmp_path):
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as connection:
        TABLE.to_sql("cities", connection, index=False)
    connection.close()
    same(read_file(path)[0])
    for url in (
        f"sqlite:///{path}",
        f"sqlite:///{path}?table=cities",
        f"sqlite:///{path}?query=SELECT city, x, big FROM cities",
    ):
        contents = read_source(url)
        same(contents.frame)
        assert contents.origin == {"url": url}
    with pytest.raises(WonderlandError, match=r"has no table 'citie'\. Did you mean 'cities'\?"):
        read_url(f"sqlite:///{path}?table=citie")
    with pytest.raises(WonderlandError, match="does not begin with SELECT or WITH: only reading is possible"):
        read_url(f"sqlite:///{path}?query=DROP TABLE cities")
    with pytest.raises(WonderlandError, match="is an address, and only files and databases are read"):
        read_url("https://host/a.csv")


def test_a_database_through_sqlalchemy(tmp_path):
    pytest.importorskip("sqlalchemy")
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as connection:
        TABLE.to_sql("cities", connection, index=False)
    connection.close()
    same(read_url(f"sqlite+pysqlite:///{path}?table=cities")[0])
    same(read_url(f"sqlite+pysqlite:///{path}?query=SELECT * FROM cities")[0])
    with pytest.raises(WonderlandError, match=r"^nothing://me@host/db is not the URL of a database that is known"):
        read_url("nothing://me:secret@host/db")


def test_a_workbook(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    table = TABLE.drop(columns="big").assign(day=pd.date_range("2024-01-01", periods=3))
    with pd.ExcelWriter(path) as book:
        pd.DataFrame().to_excel(book, sheet_name="empty")
        table.to_excel(book, sheet_name="Data", index=False, startrow=2, startcol=1)
        table.head(1).to_excel(book, sheet_name="Other", index=False)
    frame, findings = read_file(path)
    assert frame.to_dict("list") == table.to_dict("list")
    assert [finding.text for finding in findings] == [
        "a.xlsx has 2 sheets with cells; 'Data' is read, not 'Other' (--sheet)."
    ]
    assert len(read_file(path, reading=Reading(sheet="Other"))[0]) == 1
    with pytest.raises(WonderlandError, match=r"has no sheet 'Dat'\. Did you mean 'Data'\?"):
        read_file(path, reading=Reading(sheet="Dat"))
    with pytest.raises(WonderlandError) as error:
        kinds.open(path, target="price")
    assert str(error.value) == (
        "There is no column 'price' (given as target). The columns are 'city', 'x', 'day'. "
        "a.xlsx has 2 sheets with cells; 'Data' is read, not 'Other' (--sheet)."
    )


def test_feather(tmp_path):
    pytest.importorskip("pyarrow")
    TABLE.to_feather(tmp_path / "a.feather")
    same(read_file(tmp_path / "a.feather")[0])


@pytest.mark.parametrize("packing", ["zstd", "lz4", "uncompressed"])
def test_a_feather_file_is_refused_by_what_its_batches_unpack_to_before_they_are(tmp_path, packing, monkeypatch):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": np.zeros(200_000), "b": np.arange(200_000.0), "c": pd.Categorical(["x", "y"] * 100_000)})
    frame.to_feather(tmp_path / "a.feather", compression=packing)
    assert len(read_file(tmp_path / "a.feather")[0]) == 200_000
    monkeypatch.setenv("WONDERLAND_LIMITS", "parquet_bytes=1MiB")
    monkeypatch.setattr(feather, "RATIO", 0)
    monkeypatch.setattr(feather, "bytes_of", None)  # asked of a batch that was unpacked
    with pytest.raises(WonderlandError, match=r"a\.feather, once decoded, has 3\.. MiB; the limit is 1 MiB"):
        read_file(tmp_path / "a.feather")


def test_files_of_a_folder_and_of_a_zip_are_one_table(tmp_path):
    folder = tmp_path / "months"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for month in (1, 2, 10):
            text = "a,b,y\n" + "".join(f"{month},{i},{i % 2}\n" for i in range(9))
            (folder / f"m{month}.csv").write_text(text)
            packed.writestr(f"inner/m{month}.csv", text)
        packed.writestr("__MACOSX/m1.csv", "x")
    opened = [kinds.open(source, kind="table") for source in (folder, tmp_path / "a.zip")]
    assert opened[0].fingerprint == opened[1].fingerprint
    assert opened[0].column("a").values.tolist() == [1] * 9 + [2] * 9 + [10] * 9
    assert opened[0].findings[0].text == "3 files of months are one table: m1.csv to m10.csv."
    assert len(read_file(tmp_path / "a.zip", reading=Reading(sheet="inner/m2.csv"))[0]) == 9
    (folder / "n.csv").write_text("a,c,y\n1,2,3\n")
    with pytest.raises(WonderlandError, match=r"different tables: n\.csv has a column 'c', which m1\.csv has not"):
        kinds.open(folder, kind="table")
    (folder / "test.csv").write_text("a,b,y\n1,2,3\n")
    with pytest.raises(
        WonderlandError, match=r"parts of one set of data\. Fit one of them, and give another with --test"
    ):
        kinds.open(folder, kind="table")


def test_columns_of_json_that_share_no_rows_are_bounded(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"a": {str(i): i for i in range(9000)}} | {f"c{i}": {str(i): 1} for i in range(1200)}))
    with pytest.raises(
        WonderlandError,
        match=r"a\.json, where most columns lack most rows, has 10,[\d,]+ cells; the limit is 8,000,000",
    ):
        read_file(path)


def test_a_zip_file_of_another_method_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("a.csv", "a,b\n1,2\n")
    with pytest.raises(WonderlandError, match=r"a\.zip is compressed by another method than deflate\. Unpack it first"):
        read_file(path)


def test_a_view_without_end_and_long_cells_are_stopped(tmp_path, monkeypatch):
    path = tmp_path / "s.db"
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS n FROM c"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE VIEW v AS {endless}")
    connection.close()
    monkeypatch.setenv("WONDERLAND_LIMITS", "query_seconds=0")
    for call in (lambda: read_file(path), lambda: read_url(f"sqlite:///{path}?query={quote(endless)}")):
        with pytest.raises(WonderlandError) as caught:
            call()
        assert str(caught.value) == (
            f"{path}: reading took more than 0 s. Name a table, not a view. If you trust it, raise the limit: "
            "WONDERLAND_LIMITS=query_seconds=60."
        )
    monkeypatch.delenv("WONDERLAND_LIMITS")
    with pytest.raises(WonderlandError, match=r"cannot be read as a SQLite database \(string or blob too big\)"):
        read_url(f"sqlite:///{path}?query=SELECT zeroblob(900000000) AS a")


def test_urls_that_are_none_and_their_passwords():
    with pytest.raises(WonderlandError, match=r"^postgresql://\[x/db\?password= is not a valid URL"):
        read_url("postgresql://[x/db?password=secret")


def test_a_row_number_beyond_a_sheet_ends_in_a_sentence(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    path, odd = tmp_path / "a.xlsx", tmp_path / "odd.xlsx"
    TABLE.to_excel(path, index=False)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(odd, "w") as packed:
        for name in whole.namelist():
            data = whole.read(name)
            packed.writestr(name, data.replace(b'<row r="3"', b'<row r="999999999999"') if "sheet1" in name else data)
    monkeypatch.setattr("wonderland.data.workbook.MOST_ROWS", 1000)
    with pytest.raises(
        WonderlandError, match=r"odd\.xlsx has a row number above 1,000, the most of a sheet: it is damaged"
    ):
        read_file(odd)
