"""The road gives the same bits as when golden.json was written; on another kind of processor, nearly the same measures."""

import json
from pathlib import Path

import pytest

from tests.golden.runs import golden, machine

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())


def test_runs_give_the_bits_that_were_written_down(tmp_path):
    found = golden(tmp_path)
    for name, measures in GOLDEN["metrics"].items():
        assert found["metrics"][name] == pytest.approx(measures, rel=0.05, abs=0.05), name
    if machine() == GOLDEN["machine"]:
        assert found["digests"] == GOLDEN["digests"]
