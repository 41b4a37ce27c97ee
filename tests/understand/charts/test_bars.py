"""Bars count every value, and long lists are cut."""

import math

from tests.understand.charts.drawn import NAN, texts
from wonderland.understand import charts


def test_histogram_counts_every_finite_value():
    svg = charts.histogram([0, 1, 1, 2, NAN, None], bins=2)
    assert "4 values from 0 to 2" in svg
    assert "0 to 1: 1" in svg
    assert "1 to 2: 3" in svg


def test_long_lists_are_cut():
    assert len([t for t in texts(charts.bars([{"name": f"n{i}", "value": 1} for i in range(50)])) if t[0] == "n"]) == 20
    assert texts(charts.counts(dict.fromkeys(range(40), 1)))[-3] == "25"
    assert len(charts.curves({"train": [math.sin(i) + 2 for i in range(100_000)]})) < 12_000
