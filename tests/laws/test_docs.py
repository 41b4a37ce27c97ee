"""The outputs shown in docs/laws.md are those of its code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wonderland.laws import LAWS

DOCS = (Path(__file__).parents[2] / "docs" / "laws.md").read_text()
MARK = "-" * 9


def columns(text: str) -> list[list[str]]:
    """The law and the outcome in each line of a table: numbers may differ in their last digits between machines."""
    return [re.split(r"\s{2,}", line)[:2] for line in text.strip().splitlines()]


@pytest.mark.slow
def test_the_examples_print_what_is_shown():
    pytest.importorskip("transformers")
    code, shown = (re.findall(rf"```{kind}\n(.*?)```", DOCS, re.DOTALL) for kind in ("python", "text"))
    script = f"\nprint({MARK!r})\n".join(code)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(MARK)
    assert len(printed) == len(shown)
    for found, expected in zip(printed, shown, strict=True):
        assert columns(found) == columns(expected)


def test_every_law_is_in_the_table():
    assert set(re.findall(r"^\| `(\w+)` \|", DOCS, re.MULTILINE)) == set(LAWS)
