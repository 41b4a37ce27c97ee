"""Each example reaches the number it states; those that take long run in the slow suite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted(path for path in (Path(__file__).parents[2] / "examples").glob("*.py") if path.stem != "__init__")


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def test_a_module_of_ones_own_takes_fifteen_lines():
    source = (EXAMPLES[0].parent / "own_module.py").read_text()
    lines = [line for line in source.splitlines()[1:] if line.strip()]
    assert len(lines) <= 15
