"""What a terminal and a spreadsheet are given: no control characters, no formulas, and file names that are not UTF-8."""

import os

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests import runs
from wonderland.cli import show
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.ship import write_table

EVIL = "a\x1b[2J\x07\u202eb\nc"
PLAIN = "a\ufffd[2J\ufffd\ufffdb↵c"


def test_an_error_is_one_line_without_control_characters(tmp_path, capsys):
    assert str(WonderlandError(f"No {EVIL}.")) == f"No {PLAIN}."
    assert main(["inspect", str(tmp_path / EVIL)]) == 2
    assert main(["predict", str(tmp_path / EVIL), "x"]) == 2
    assert main([EVIL]) == 2
    said = capsys.readouterr().err
    assert all(c.isprintable() or c == "\n" for c in said)
    assert said.count("\n") == 3


def test_tables_notes_and_lines(capsys):
    show.table(EVIL, [{EVIL: EVIL}])
    show.note(EVIL)
    show.console.print(EVIL)
    show.say(EVIL)
    assert all(c.isprintable() or c == "\n" for c in capsys.readouterr().out)


def test_a_spreadsheet_runs_nothing(tmp_path, capsys):
    cells = ["=cmd|' /C calc'!A0", "+1", "-1", "@sum", "\tx", "\rx", " =1", '"=1', "plain", "a=b"]
    table = pd.DataFrame({"=name": cells, "number": [-1.5] * len(cells), "whole": [-2] * len(cells)})
    write_table(table, tmp_path / "safe.csv", safe=True)
    read = pd.read_csv(tmp_path / "safe.csv")
    assert list(read.columns) == ["'=name", "number", "whole"]
    assert [cell.startswith("'") for cell in read["'=name"]] == [True] * 8 + [False] * 2
    assert read["number"].tolist() == [-1.5] * len(cells)
    assert read["whole"].tolist() == [-2] * len(cells)
    write_table(table, tmp_path / "plain.csv")
    assert pd.read_csv(tmp_path / "plain.csv")["=name"].tolist() == cells
    with pytest.raises(WonderlandError, match="Safe cells are for CSV files"):
        write_table(table, tmp_path / "safe.jsonl", safe=True)
    run, data = str(runs.classifier().folder), str(runs.classifier().folder.parent / "table.csv")
    assert main(["predict", run, data, "-o", str(tmp_path / "out.csv"), "--safe-csv"]) == 0
    assert main(["predict", run, data, "--safe-csv"]) == 2
    assert "--safe-csv is for CSV files: name one with -o FILE.csv." in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX only")
def test_file_names_that_are_not_utf8(tmp_path, capsys):
    home = os.fsencode(tmp_path)
    draw = np.random.default_rng(0)
    for label, level in ((b"d\xe9k", 60), (b"light", 180)):
        os.makedirs(home + b"/photos/" + label)
        for i in range(12):
            pixels = np.clip(draw.normal(level, 30, (8, 8, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(os.fsdecode(home + b"/photos/" + label + b"/caf\xe9\x1b%d.png" % i))
    os.symlink("loop.png", tmp_path / "photos" / "light" / "loop.png")
    source, run = str(tmp_path / "photos"), os.fsdecode(home + b"/r\xfcn")
    assert main(["inspect", source]) == 0
    assert main(["fit", source, "--out", run, "--steps", "2", "--threads", "1"]) == 0
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        assert main(["predict", run, source, "-o", str(tmp_path / name)]) == 0
    assert main(["fit", "--resume", run]) == 0
    read = pd.read_csv(tmp_path / "out.csv")
    assert read["path"].str.contains("caf\\xe9", regex=False).all()
    assert "d\\xe9k" in (tmp_path / "out.jsonl").read_text().replace("\\\\", "\\")
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
