"""Parquet files that decode to far more than they hold, and honest ones in every encoding."""

import numpy as np
import pandas as pd
import pytest

from wonderland.core import WonderlandError
from wonderland.data.parquet import _Compact
from wonderland.data.read import read_file

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY", "level": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"row_group_size": 100, "compression": "gzip"},
    ],
)
def test_every_encoding_reads_as_pyarrow_reads_it(tmp_path, options):
    n = 500
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": draw.normal(size=n),
            "count": draw.integers(0, 9, n),
            "level": draw.choice(["low", "high", None], n),
            "name": [f"row {i}" for i in range(n)],
            "kept": pd.Categorical(draw.choice(list("abc"), n)),
            "time": pd.date_range("2020", periods=n, freq="h"),
            "yes": draw.random(n) > 0.5,
        }
    )
    frame.to_parquet(tmp_path / "a.parquet", **options)
    expected = parquet.ParquetFile(tmp_path / "a.parquet").read().to_pandas(ignore_metadata=True)
    pd.testing.assert_frame_equal(read_file(tmp_path / "a.parquet")[0], expected)


def repeated_numbers(path):
    parquet.write_table(arrow.table({"x": np.zeros(4_000_000)}), path, compression="zstd", use_dictionary=False)


def runs_of_one_number(path):
    parquet.write_table(arrow.table({"x": np.zeros(4_000_000)}), path)


def one_long_text(path):
    codes = arrow.array(np.zeros(100, np.int32))
    texts = arrow.DictionaryArray.from_arrays(codes, arrow.array(["z" * 300_000]))
    parquet.write_table(arrow.table({"s": texts}), path, store_schema=False)


@pytest.mark.parametrize(
    ("write", "seen", "raised"),
    [(repeated_numbers, "30.5 MiB", "31MiB"), (runs_of_one_number, "30.5 MiB", "31MiB"), (one_long_text, "more than 20 MiB", "40MiB")],
)  # fmt: skip
def test_its_own_statement_of_size_is_not_believed(tmp_path, monkeypatch, write, seen, raised):
    path = tmp_path / "bomb.parquet"
    write(path)
    assert path.stat().st_size < 200_000
    monkeypatch.setenv("WONDERLAND_LIMITS", "parquet_bytes=20MiB")
    with pytest.raises(WonderlandError) as caught:
        read_file(path)
    assert str(caught.value) == (
        f"{path}, once decoded, has {seen}; the limit is 20 MiB. If you trust it, raise the limit: WONDERLAND_LIMITS=parquet_bytes={raised}."
    )


def test_hostile_page_headers_end_soon():
    with pytest.raises(OSError, match="nested too deeply"):
        _Compact(b"\x19" + b"\x19" * 4000).struct()
    flags = b"\x19\xf1\xe8\x07" + b"\x01" * 1000 + b"\x00"  # a list of 1,000 flags, a byte each
    assert _Compact(flags).struct() == {1: [True] * 1000}
    with pytest.raises(EOFError):
        _Compact(flags[:1002]).struct()
