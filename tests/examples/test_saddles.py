"""Stationary points are found and named."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.lab.functions import hills
from examples.saddles.__main__ import elsewhere, main, on_the_hills
from examples.saddles.search import classify, curvature, kind
from wonderland import autodiff


@pytest.mark.parametrize(
    ("curvatures", "name"),
    [
        ([1.0], "minimum"),
        ([-1.0, -2.0], "maximum"),
        ([-1.0, 2.0], "saddle"),
        ([0.0, 2.0], "flat"),
        ([-1.0, 0.0, 2.0], "saddle"),
    ],
)
def test_kinds(curvatures, name):
    assert kind(torch.tensor(curvatures)) == name


def test_many_hessians_at_once():
    points = torch.rand(4, 2, dtype=torch.float64)
    torch.testing.assert_close(curvature(hills, points)[2], autodiff.hessian(hills)(points[2]))


def test_a_point_knows_its_place_and_value():
    found = classify(lambda x: x[0] ** 2 - 3 * x[1] ** 2 + 5, torch.zeros(2, dtype=torch.float64))
    assert (found.place, found.value, found.kind, found.curvatures) == ((0.0, 0.0), 5.0, "saddle", (-6.0, 2.0))


def test_six_minima_six_maxima_twelve_saddles():
    claims, points = on_the_hills()
    assert [str(claim) for claim in claims if not claim.met] == []
    assert len(points) == 24


def test_the_other_stated_numbers():
    assert [str(claim) for claim in elsewhere() if not claim.met] == []


@pytest.mark.slow
def test_the_lab(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"hills"}
