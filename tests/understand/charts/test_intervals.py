"""Intervals that do not contain the true value are counted."""

from wonderland.understand import charts


def test_intervals_count_what_lies_outside():
    rows = [{"true": 1, "predicted": 1, "low": 0, "high": 2}, {"true": 5, "predicted": 1, "low": 0, "high": 2}]
    assert "2 examples, 1 outside their interval" in charts.intervals(rows)
    assert "outside" not in charts.intervals([{"true": 1, "predicted": 2}])
