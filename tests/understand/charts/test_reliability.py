"""The reliability diagram shows before and after."""

from tests.understand.charts.drawn import texts
from wonderland.understand import charts


def test_reliability_shows_both_series_and_counts():
    before = [{"confidence": 0.9, "accuracy": 0.7, "count": 50}, {"confidence": 0.6, "accuracy": 0.5, "count": 9}]
    after = [{"confidence": 0.7, "accuracy": 0.7, "count": 59}]
    svg = charts.reliability(before, after)
    assert {"before", "after temperature scaling", "perfect", "examples"} <= set(texts(svg))
    assert "confidence 90.0\xa0%, accuracy 70.0\xa0%, 50 examples" in svg
    assert "measured" in texts(charts.reliability(before))
