"""Files become frames, and every fault is named with its line."""

import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest

from wonderland.core import WonderlandError
from wonderland.core.limits import size
from wonderland.data.read import find_delimiter, find_ragged, has_header, read_file

QUOTE = "Close the quote, or say --quote none where quotes are plain characters."
NAME_IT = "Name its encoding with --encoding, such as cp1252, cp1251, shift_jis or gb18030."
LAYOUTS = 'It may hold a list of objects, an object of columns, or {"columns": [...], "data": [[...]]}.'
MEND = "Quote cells that hold the delimiter, or complete the line."


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def says(path, text):
    return pytest.raises(WonderlandError, match="^" + re.escape(text.replace("PATH", str(path))) + "$")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "PATH is empty. Give a file that holds rows."),
        ("a.csv", "\n  \n", "PATH is empty. Give a file that holds rows."),
        ("a.csv", "a,b\n", "PATH has a header line and no rows. Add rows, or give another file."),
        ("a.csv", "a,b\n1,2\n3\n4,5\n", "PATH: line 3 has 1 field where 2 are expected. " + MEND),
        ("a.csv", "a,b\n1,2\n3,4,5\n", "PATH: line 3 has 3 fields where 2 are expected. " + MEND),
        ("a.csv", 'a,b\n"x\ny",2\n3\n', "PATH: line 4 has 1 field where 2 are expected. " + MEND),
        ("a.csv", 'a,b\n1,2\n"x,2\n3,4\n', "PATH: the quoted cell that starts on line 3 is never closed. " + QUOTE),
        ("a.csv", "a,b,a\n1,2,3\n", "PATH has more than one column named 'a' (columns 1, 3). Rename them."),
        ("a.csv", "a, a\n1,2\n", "PATH has more than one column named 'a' (columns 1, 2). Rename them."),
        (
            "a.csv",
            b"a,b\n1,2\n\x013,caf\xe9\n",
            "PATH is not UTF-8 text: byte 0xe9 at offset 14 (line 3). " + NAME_IT,
        ),
        (
            "a.csv",
            "город,x\nМосква,1\n".encode("cp1251"),
            "PATH is not UTF-8 text: byte 0xe3 at offset 0 (line 1). " + NAME_IT,
        ),
        (
            "a.csv",
            "text,y\n" + '"' * 1_000_001 + ",1\n" + "b,0\n" * 9,
            "PATH: a cell on line 2 holds more than 131,072 characters: is a quote missing? " + QUOTE,
        ),
        (
            "a.csv",
            "text,y\n" + "w" * 10_000_000 + ",1\n" + "b,0\n" * 9,
            "PATH: a cell on line 2 holds more than 131,072 characters. Shorten it, or leave its column out.",
        ),
        ("a.csv", b"a,b\n1,\0\n", "PATH is not text: there is a zero byte at offset 6 (line 2)."),
        ("a.csv.gz", b"a,b\n1,2\n", "PATH is not a whole gzip file: it is damaged or cut short."),
        (
            "a.csv.gz",
            gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:30],
            "PATH is not a whole gzip file: it is damaged or cut short.",
        ),
        ("a.jsonl", '{"a": 1}\n{"a": \n', "PATH: line 2 is not valid JSON (Expecting value)."),
        ("a.jsonl", '{"a": 1}\n\n[1]\n', "PATH: line 3 holds a list where an object is expected."),
        ("a.jsonl", "null\n", "PATH: line 1 holds null where an object is expected."),
        (
            "a.ndjson",
            '{"a": 1}\n{"a": {"b": 2}}\n',
            "PATH: line 2 has an object in 'a'. Unpack nested values into plain columns.",
        ),
        ("a.jsonl", "[" * 100_000, "PATH: line 1 is not valid JSON (too deep or too long)."),
        ("a.parquet", b"", "PATH is empty. Give a file that holds rows."),
        ("a.parquet", b"PAR1 but no more", "PATH is not a Parquet file, or it is damaged."),
        (
            "a.xyz",
            "x",
            "PATH: this kind of file is not known. Known are .csv, .tsv, .txt, .dat, .data, .json, .jsonl, .ndjson, .parquet, "
            ".feather, .xlsx, .xlsm, .db, .sqlite, .sqlite3, .zip, with .gz as well, and folders of images. A text file of another name is "
            "read as a table where its delimiter is named (--delimiter).",
        ),
        ("a.xlsx", "x", "PATH is not a workbook (.xlsx), or it is damaged or encrypted."),
        ("a.zip", "x", "PATH is not a zip file, or it is damaged."),
        ("a.db", "x" * 200, "PATH cannot be read as a SQLite database (file is not a database)."),
        ("a.feather", "ARROW1 x", "PATH is not a Feather file, or it is damaged."),
        ("a.parquet.gz", "x", "PATH: a .parquet file is read as it is, not packed: unpack it first (gunzip)."),
        ("a.json", "[1]", "PATH: entry 1 is 1 where an object is expected. " + LAYOUTS),
        ("a.json", '{"a": 1}', "PATH: 'a' is 1 where a column of cells is expected. " + LAYOUTS),
        ("a.json", '{"a": [1], "b": [1, 2]}', "PATH: column 'b' has 2 cells, but column 'a' has 1."),
        (
            "a.json",
            '{"columns": ["a"], "data": [[1, 2]]}',
            "PATH: row 1 of data has 2 cells where 1 columns are named.",
        ),
        ("a.json", '{"a": [1], "b": [{}]}', "PATH has an object in 'b'. Unpack nested values into plain columns."),
        ("a.json", '[{"a": "\\ud800"}]', "PATH: entry 1 holds half of a character (a lone surrogate)."),
        ("a.json", '{"a": \n', "PATH is not valid JSON (Expecting value at line 2)."),
    ],
)
def test_errors_name_the_line(tmp_path, name, content, message):
    path = put(tmp_path, name, content)
    with says(path, message):
        read_file(path)


def test_limits(tmp_path, monkeypatch):
    path = put(tmp_path, "a.csv", "a,b,c\n1,2,3\n")
    monkeypatch.setenv("WONDERLAND_LIMITS", "table_columns=2")
    raised = "If you trust it, raise the limit: WONDERLAND_LIMITS"
    with says(path, f"PATH has 3 columns; the limit is 2. {raised}=table_columns=3."):
        read_file(path)
    monkeypatch.setenv("WONDERLAND_LIMITS", "table_bytes=5, unpacked_bytes=100")
    with says(path, f"PATH has 12 bytes; the limit is 5. {raised}=table_bytes=1MiB."):
        read_file(path)
    with says(
        put(tmp_path, "a.csv.gz", gzip.compress(b"a,b\n" * 100)),
        f"PATH has more than 5 bytes; the limit is 5. {raised}=table_bytes=1MiB.",
    ):
        read_file(tmp_path / "a.csv.gz")
    bomb = put(tmp_path, "b.csv.gz", gzip.compress(b"a,b\n" * 1_000_000))
    most = size(100 * bomb.stat().st_size)
    monkeypatch.setenv("WONDERLAND_LIMITS", "unpacked_bytes=100")
    with says(bomb, f"PATH, once unpacked, has more than {most}; the limit is {most}. {raised}=unpacked_bytes=1MiB."):
        read_file(bomb)


def test_many_keys_over_many_records(tmp_path):
    lines = [json.dumps({f"k{i}": 1}) for i in range(9_000)]
    path = put(tmp_path, "wide.jsonl", "\n".join(lines))
    message = "PATH, where most records lack most keys, has 80,856,000 cells; the limit is 8,000,000. If you trust it, raise the limit: "
    with says(path, f"{message}WONDERLAND_LIMITS=empty_cells=80856000."):
        read_file(path)


def test_nested_and_repeated_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"a": [[1], [2]]}), path)
    with says(path, "PATH: column 'a' holds nested values. Unpack it into plain columns."):
        read_file(path)
    parquet.write_table(arrow.Table.from_arrays([arrow.array([1])] * 2, names=["a", "a"]), path)
    with says(path, "PATH has more than one column named 'a' (columns 1, 2). Rename them."):
        read_file(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "a,b\n1,x\n2,y\n"),
        ("a.csv", "\ufeffa,b\n1,x\n2,y\n"),
        ("a.csv", "a;b\r\n1;x\r\n2;y\r\n"),
        ("a.csv", "a,b\r1,x\r2,y\r"),
        ("a.csv", "a,b\n\n1,x\n\n2,y\n\n"),
        ("a.csv", 'a,"b"\n1,"x"\n2,"y"'),
        ("a.tsv", "a\tb\n1\tx\n2\ty\n"),
        ("a.txt", "a|b\n1| x\n2| y\n"),
        ("a.jsonl", '{"a": 1, "b": "x"}\n{"b": "y", "a": 2}\n'),
        ("a.csv.gz", gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0)),
    ],
)
def test_the_same_table_in_many_formats(tmp_path, name, content):
    frame, _ = read_file(put(tmp_path, name, content))
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [1, 2], "b": ["x", None]}).to_parquet(tmp_path / "a.parquet")
    frame, _ = read_file(tmp_path / "a.parquet")
    assert frame["a"].tolist() == [1, 2]
    assert frame["b"].isna().tolist() == [False, True]


def test_quoted_delimiters_line_ends_and_quotes(tmp_path):
    path = put(tmp_path, "a.csv", 'a,b\n"x, ""y""\nz",1\n5" pipe,2\n')
    frame, _ = read_file(path)
    assert frame["a"].tolist() == ['x, "y"\nz', '5" pipe']


def test_decimal_comma(tmp_path):
    frame, _ = read_file(put(tmp_path, "a.csv", "a;b\n1,5;x\n2,25;y\n"))
    assert frame["a"].tolist() == [1.5, 2.25]


def test_no_header(tmp_path):
    frame, findings = read_file(put(tmp_path, "a.dat", "5.1\t3\tred\n4.9\t2\tblue\n"))
    assert list(frame.columns) == ["c0", "c1", "c2"]
    assert len(frame) == 2
    assert findings[0].text == "The first line of a.dat holds values, not names: the columns are called c0 to c2."


def test_blanks_between_fields(tmp_path):
    frame, _ = read_file(put(tmp_path, "a.data", "  1.5   2.0\n 3.5  4\n"))
    assert frame.to_numpy().tolist() == [[1.5, 2.0], [3.5, 4.0]]
    path = put(tmp_path, "b.data", "1 2\n3 4\n" * 40 + "5\n")
    with says(path, "PATH: line 81 has 1 field where 2 are expected. " + MEND):
        read_file(path)


def test_years_are_a_header():
    assert has_header([["country", "2019", "2020"], ["fr", "1.5", "2"], ["de", "1", "3"]])
    assert not has_header([["1", "2"], ["3", "4"]])


def test_text_stays_text_when_asked(tmp_path):
    path = put(tmp_path, "a.csv", "code,v\n007,1\n008,2\n")
    assert read_file(path, as_text={"code"})[0]["code"].tolist() == ["007", "008"]


def test_unnamed_column(tmp_path):
    frame, _ = read_file(put(tmp_path, "a.csv", ",b\n0,x\n1,y\n"))
    assert list(frame.columns) == ["column_0", "b"]


def test_bulk_count_of_delimiters_agrees_with_the_reader():
    random = np.random.default_rng(0)
    cells = ["1", "", '"a,b"', '"x\ny"', '"q""q"', "word"]
    for _ in range(200):
        width = random.integers(2, 5)
        lines = [",".join(random.choice(cells, width)) for _ in range(random.integers(1, 6))]
        data = "\n".join(lines).encode() + b"\n"
        assert find_ragged(data, ",", width) == ""
        assert find_ragged(data + b"1\n", ",", width).endswith(f"has 1 field where {width} are expected. {MEND}")


def test_delimiters():
    assert find_delimiter("a,b\n1,2\n") == ","
    assert find_delimiter("a\n1\n") == ","
    assert find_delimiter("name;price\nx, y;3,5\nz;4,5\n") == ";"
    assert (
        find_delimiter("city  since  price\nOslo  2020-01-02  3.5\nRoma  2021-03-04  4\nBonn  2022-05-06  7\n")
        == r"\s+"
    )
    assert find_delimiter("one two three\nfour five six\nseven eight nine\n") == ","
