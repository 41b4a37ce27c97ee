"""Killed again and again at random moments and continued each time, a run ends with the bits of the one left in peace."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wonderland

KEPT = (
    "model.safetensors",
    "metrics.jsonl",
    "config.json",
    "preprocess.json",
    "preprocess.safetensors",
    "trust.json",
    "report.html",
)


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "wonderland.cli.main", *map(str, words)]


def quiet(words: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300
    )


def table(folder: Path) -> Path:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(300, 4))
    frame = pd.DataFrame(x, columns=list("abcd")).assign(
        kind=generator.choice(["x", "y"], 300), label=x[:, 0] * x[:, 1] > 0
    )
    frame.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def killed_and_continued(folder: Path, source: object, kills: int, *options: object, span: float) -> None:
    straight, cut = folder / "straight", folder / "cut"
    began = time.monotonic()
    done = quiet(command("fit", source, "--out", straight, "--quiet", *options))
    assert done.returncode == 0, done.stderr
    whole = time.monotonic() - began
    chance = random.Random(1)
    words = command("fit", source, "--out", cut, "--quiet", *options)
    landed = 0
    for _ in range(kills):
        process = subprocess.Popen(words, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE)
        try:
            process.wait(chance.uniform(0.1, span) * whole)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            landed += 1
        process.communicate()
    done = quiet(command("fit", "--resume", cut, "--quiet") if (cut / "config.json").exists() else words)
    assert done.returncode == 0, done.stderr
    assert landed >= min(kills, 3)
    for name in KEPT:
        assert (cut / name).read_bytes() == (straight / name).read_bytes(), name


def begun(words: list[str], out: Path) -> subprocess.Popen:
    """A process that fits, once it has trained some steps."""
    process = subprocess.Popen(words, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (out / "metrics.jsonl").exists():
        time.sleep(0.02)
    return process


def test_a_run_that_was_killed_in_training_ends_with_the_same_bits(tmp_path):
    source, straight, cut = table(tmp_path), tmp_path / "straight", tmp_path / "cut"
    process = begun(command("fit", source, "--out", cut, "--quiet", "--steps", 100), cut)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert not (cut / "trust.json").exists()
    wonderland.fit(resume=cut)
    wonderland.fit(source, out=straight, steps=100)
    for name in KEPT:
        assert (cut / name).read_bytes() == (straight / name).read_bytes(), name


@pytest.mark.slow
def test_five_kills_of_a_table(tmp_path):
    killed_and_continued(tmp_path, table(tmp_path), 5, "--steps", 150, span=0.9)


@pytest.mark.slow
def test_thirty_kills_of_digits(tmp_path):
    killed_and_continued(tmp_path, "digits", 30, "--epochs", 12, span=0.8)


@pytest.mark.slow
def test_thirty_kills_of_a_table(tmp_path):
    killed_and_continued(tmp_path, table(tmp_path), 30, "--steps", 400, span=0.8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["corpus", "pairs", "text"])
def test_twelve_kills_of_text(tmp_path, kind):
    from tests.kinds.pairs.test_kind import pairs
    from tests.texts import labelled, rhyme

    path = tmp_path / ("a.txt" if kind == "corpus" else "a.csv")
    if kind == "corpus":
        path.write_text(rhyme(300))
    elif kind == "pairs":
        pairs(120).to_csv(path, index=False)
    else:
        pd.DataFrame(labelled(300), columns=["label", "text"]).to_csv(path, index=False)
    killed_and_continued(tmp_path, path, 12, "--steps", 150, "--kind", kind, span=0.9)


def test_a_stop_signal_prints_how_to_resume(tmp_path):
    out = tmp_path / "run"
    process = begun(command("fit", table(tmp_path), "--out", out, "--quiet", "--steps", "100000"), out)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Stopped after step" in said
    assert said.strip().endswith(f"Continue with: wonderland fit --resume {out}")
