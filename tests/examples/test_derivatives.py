"""The ways to a derivative agree, and cost what they state."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.derivatives import ways
from examples.derivatives.__main__ import BOUNDS, literal_costs, main, small_numbers, swelling
from examples.derivatives.functions import SUBJECTS
from examples.derivatives.ways import compare


@pytest.mark.parametrize("subject", SUBJECTS[:3], ids=lambda subject: subject.name)
def test_all_ways_find_the_gradient(subject):
    results = {result.way: result for result in compare(subject)}
    assert set(results) == set(BOUNDS)
    assert all(result.error < BOUNDS[way] for way, result in results.items())
    assert results[ways.REVERSE].passes == 1
    assert results[ways.PRODUCTS].passes == len(subject.point)
    assert results[ways.CENTRAL].passes == 2 * len(subject.point)


@pytest.mark.parametrize("claims", [swelling, literal_costs, lambda: (small_numbers(), None)])
def test_the_stated_numbers(claims):
    assert [str(claim) for claim in claims()[0] if not claim.met] == []


@pytest.mark.slow
def test_the_lab(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"steps", "swell", "costs"}
