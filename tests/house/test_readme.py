"""Every command of the README runs as it stands there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from wonderland.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BIN = Path(sys.prefix) / "bin"
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_there_is_something_to_run():
    assert blocks("sh")
    assert blocks("python")
    assert re.findall(r"^    make (\w+)", README, re.MULTILINE) == ["demo", "test"]


@pytest.mark.parametrize("script", blocks("sh"))
def test_shell_examples(tmp_path, script, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for line in script.strip().splitlines():
        program, *words = shlex.split(line)
        assert program == "wonderland"
        assert main(words) == 0
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("script", blocks("sh"))
def test_shell_examples_in_a_shell(tmp_path, script):
    done = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout


SAYS = ["rmse", '{"age":', "", "causality  holds", "def program_reverse(x0, x1):"]


def test_python_examples(tmp_path):
    """One after the other, as a reader would try them."""
    scripts = blocks("python")
    whole = "\nprint('=====')\n".join(scripts)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", whole],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for said, expected in zip(done.stdout.split("=====\n"), SAYS, strict=True):
        assert expected in said


@pytest.mark.slow
def test_make_demo_reaches_its_number_and_is_quick_the_second_time(tmp_path):
    """The demo itself, into a folder of its own."""
    words = ["make", "--no-print-directory", "demo", f"VENV={sys.prefix}", f"OUT={tmp_path / 'digits'}"]
    done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    accuracy = float(re.search(r"│ accuracy\s+│\s+([\d.]+)", done.stdout)[1])
    assert accuracy >= 0.975
    assert (tmp_path / "digits" / "report.html").stat().st_size > 10_000
    again = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0
    assert "training" not in again.stderr


def test_make_test_runs_the_suite():
    done = subprocess.run(
        ["make", "--dry-run", "test", f"VENV={sys.prefix}"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert "pytest" in done.stdout
    assert "make test" in (ROOT / ".ci" / "run").read_text()
