"""The labs of trust: coverage, calibration, Gaussian processes, bands, shift and naive Bayes reach their numbers."""

import gzip
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.bayesian_bands.__main__ import main as bands
from examples.coverage.__main__ import lab as coverage_lab
from examples.coverage.__main__ import main as coverage
from examples.coverage.methods import intervals, sets
from examples.gaussian_processes.__main__ import documented
from examples.gaussian_processes.__main__ import main as processes
from examples.naive_bayes.__main__ import main as naive_bayes
from examples.overconfident.__main__ import main as overconfident
from examples.shifted.__main__ import covariate, labels
from examples.shifted.__main__ import main as shifted


def test_every_conformal_method_is_measured():
    assert len(sets(0)) == 7
    assert len(intervals(0)) == 9
    assert len(coverage_lab(splits=2)[0]) == 16


def test_the_documented_processes():
    assert [str(claim) for claim in documented()[0] if not claim.met] == []


def test_planted_shifts():
    assert covariate(0)["weighted"] < covariate(0)["plain"]
    assert labels(0)["after"] > labels(0)["before"]


def test_naive_bayes_reads_files_of_mnist(tmp_path, capsys):
    generator = np.random.default_rng(0)
    y = np.arange(10_000) % 10
    pixels = (generator.random((10_000, 784)) < np.random.default_rng(1).random((10, 784))[y]).astype(np.uint8) * 255
    head = struct.pack(">IIII", 2051, 10_000, 28, 28)
    (tmp_path / "mnist-t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + pixels.tobytes(), 1))
    (tmp_path / "mnist-t10k-labels-idx1-ubyte.gz").write_bytes(
        gzip.compress(struct.pack(">II", 2049, 10_000) + y.astype(np.uint8).tobytes(), 1)
    )
    assert naive_bayes(["--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "reached" in capsys.readouterr().out
    assert naive_bayes(["--data", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("lab", [coverage, overconfident, processes, bands, shifted], ids=lambda lab: lab.__module__)
def test_a_lab(lab, tmp_path):
    assert lab(["--out", str(tmp_path)]) == 0
