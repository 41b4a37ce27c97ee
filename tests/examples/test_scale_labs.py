"""The labs of D2L 13 and 19 that take processes or many trainings."""

import os

import pytest

from examples.performance import __main__ as performance
from examples.performance.processes import NUMBERS, measured
from examples.tuning import __main__ as tuning


@pytest.mark.slow
def test_the_stated_numbers_of_performance(tmp_path):
    assert performance.main(["--out", str(tmp_path)]) == 0


@pytest.mark.slow
def test_two_processes_send_what_the_book_counts():
    lines = measured(2)
    assert all(way["right"] for line in lines for way in line.values())
    assert [line["ring"]["bytes"] for line in lines] == [4 * NUMBERS] * 2
    assert [line["naive"]["bytes"] for line in lines] == [4 * NUMBERS] * 2


@pytest.mark.slow
@pytest.mark.skipif("WONDERLAND_DATA" not in os.environ, reason="needs MNIST's test images in WONDERLAND_DATA")
def test_the_stated_numbers_of_tuning(tmp_path):
    assert tuning.main(["--out", str(tmp_path)]) == 0
