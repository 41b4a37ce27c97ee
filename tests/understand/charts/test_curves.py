"""Curves skip missing measurements, and have the same styles in every chart."""

from tests.understand.charts.drawn import NAN, SVG, parse, texts
from wonderland.understand import charts
from wonderland.understand.charts.curves import _styles, _y_scale


def test_curves_skip_none_break_at_nan_and_mark_the_best():
    bridged = charts.curves({"validation": [3, None, 1]})
    broken = charts.curves({"validation": [3, 2, NAN, 2, 1]})
    drawn = lambda svg: sum(p.get("class", "").startswith("l1") for p in parse(svg).findall(SVG + "path"))  # noqa: E731
    assert (drawn(bridged), drawn(broken)) == (1, 2)
    svg = charts.curves({"train": [4, 2, 1], "validation": [4, 2, 3]}, steps=[0, 10, 20], best=10)
    assert "best: step 10" in texts(svg)
    assert {"train", "validation"} <= set(texts(svg))
    assert len([c for c in parse(svg).findall(SVG + "circle") if c.get("class") == "h1"]) == 1


def test_curves_choose_a_log_axis_for_a_wide_span():
    wide = charts.curves({"train": [100, 10, 1]}, y_label="loss")
    narrow = charts.curves({"train": [3, 2, 1]}, y_label="loss")
    assert "loss (log scale)" in texts(wide)
    assert "loss" in texts(narrow)


def test_the_axis_of_a_share_ends_at_one():
    near = [0.9, 0.98, 1.0]
    assert _y_scale(near, 0, False).high > 1.0
    assert _y_scale(near, 0, False, most=1.0).high == 1.0
    assert _y_scale([0.2, 0.5], 0, False, most=1.0).high < 0.6
    assert _y_scale([0.5, 2.0], 0, False, most=1.0).high > 2.0
    assert charts.curves({"validation": [1.0, 1.0]}, most=1.0)


def test_train_and_validation_look_the_same_in_every_chart():
    assert _styles(["validation"]) == [1]
    assert _styles(["train", "validation", "test"]) == [0, 1, 2]
    assert _styles(["a", "validation", "b"]) == [0, 1, 2]
