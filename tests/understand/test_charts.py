"""Charts are well-formed, escaped and complete, whatever numbers and names they are given."""

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.understand import charts

SVG = "{http://www.w3.org/2000/svg}"
NAN, INF = float("nan"), float("inf")
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a\x00b\u202ec\ud800", "👩‍🚀 & co", "]]>", ""]


def parse(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert root.tag == SVG + "svg"
    assert root.get("role") == "img"
    assert root[0].tag == SVG + "title"
    assert root[0].text
    assert root.find(SVG + "desc") is not None
    assert not re.search(r"[\"( ,](nan|inf|-inf)[\") ,LM]", re.sub(r"<(title|desc|text)[^>]*>[^<]*", "", svg))
    for element in root.iter():
        for key, value in element.attrib.items():
            assert not key.startswith("on")
            if key in ("width", "height", "r"):
                assert float(value) >= 0
    svg.encode()
    return root


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parse(svg).iter(SVG + "text")]


def examples(values):
    return [{"true": v, "predicted": v, "low": v, "high": v} for v in values]


DRAW = {
    "curves": lambda v: charts.curves({"train": v, "validation": v[::-1]}, best=1),
    "curves_log": lambda v: charts.curves({"a": v}, steps=v, log=True, y_label="loss"),
    "confusion": lambda v: charts.confusion([v, v], ["a", "b"]),
    "reliability": lambda v: charts.reliability(
        [{"confidence": x, "accuracy": x, "count": x} for x in v],
        [{"confidence": 0.5, "accuracy": x, "count": 3} for x in v],
    ),
    "bars": lambda v: charts.bars([{"name": "n", "value": x, "spread": x} for x in v], x_label="drop"),
    "intervals": lambda v: charts.intervals(examples(v)),
    "coverage": lambda v: charts.coverage([{"level": x, "coverage": x} for x in v]),
    "histogram": lambda v: charts.histogram(v),
    "counts": lambda v: charts.counts(dict(enumerate(v))),
    "heat_map": lambda v: charts.heat_map([v, v]),
    "scatter": lambda v: charts.scatter(v, v[::-1]),
}
DEGENERATE = [
    [],
    [None],
    [NAN, None, INF, -INF],
    [0.0],
    [5.0, 5.0, 5.0],
    [1e300, -1e300, 1e-300],
    [1e-320, 2e-320],
    [-3, 0, 7],
    [True, "x", object()],
    [1.0, 1.0 + 1e-15],
    [1e99, 1e-99],
    list(range(3000)),
]


@pytest.mark.parametrize("name", DRAW)
@pytest.mark.parametrize("values", DEGENERATE, ids=range(len(DEGENERATE)))
def test_degenerate_input_gives_a_chart(name, values):
    if name in ("confusion", "counts", "bars") and len(values) > 100:
        values = values[:100]
    assert len(DRAW[name](values)) < 120_000
    parse(DRAW[name](values))


@pytest.mark.parametrize("name", DRAW)
@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.one_of(st.none(), st.floats(), st.integers(-(10**30), 10**30)), max_size=8))
def test_any_numbers_give_a_chart(name, values):
    parse(DRAW[name](values))


@settings(max_examples=30, deadline=None)
@given(name=st.text(max_size=60))
def test_any_name_gives_a_chart(name):
    parse(charts.curves({name: [1, 2]}, title=name, x_label=name, y_label=name))
    parse(charts.confusion([[1, 2], [3, 4]], [name, "b"], title=name))
    parse(charts.bars([{"name": name, "value": 1}], title=name))
    parse(charts.counts({name: 3}, x_label=name, y_label=name))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_escaped(name):
    for svg in (
        charts.curves({name: [1, 2, 3]}, title=name or "t", x_label=name),
        charts.confusion([[3, 1], [0, 4]], [name, name]),
        charts.bars([{"name": name, "value": 2, "spread": 1}]),
        charts.counts({name: 3}),
    ):
        assert "<script" not in svg
        assert "<img" not in svg
        tags = {element.tag.removeprefix(SVG) for element in parse(svg).iter()}
        assert tags <= {"svg", "title", "desc", "style", "rect", "path", "text", "g", "circle"}


def test_the_empty_chart_says_so():
    assert texts(charts.curves({"train": []})) == ["Nothing to draw: no finite values."]
    assert texts(charts.confusion([])) == ["Nothing to draw: no predictions."]
    assert texts(charts.reliability([])) == ["Nothing to draw: no bins with examples."]


def test_curves_bridge_none_break_at_nan_and_mark_the_best():
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


def test_train_and_validation_look_the_same_in_every_chart():
    assert charts._styles(["validation"]) == [1]
    assert charts._styles(["train", "validation", "test"]) == [0, 1, 2]
    assert charts._styles(["a", "validation", "b"]) == [0, 1, 2]


def test_confusion_has_counts_and_row_percentages():
    svg = charts.confusion([[8, 2], [0, 0]], ["cat", "dog"])
    found = texts(svg)
    assert "8" in found
    assert "80%" in found
    assert "2" in found
    assert "20%" in found
    assert charts.MISSING in found
    assert "cat taken for dog: 2 (20.0\xa0% of the row)" in svg
    assert "8 of 10 right over 2 classes" in svg


def test_many_classes_show_those_with_most_errors():
    size = 30
    matrix = [[10 if i == j else 0 for j in range(size)] for i in range(size)]
    for i in range(5, 25):
        matrix[i][(i + 1) % size if i < 24 else 5] = 3
    svg = charts.confusion(matrix, [f"c{i}" for i in range(size)])
    found = set(texts(svg))
    assert {f"c{i}" for i in range(5, 25)} <= found
    assert not {"c0", "c4", "c25", "c29"} & found
    assert "drawn are the 20 classes with the most errors" in svg


def test_reliability_shows_both_series_and_counts():
    before = [{"confidence": 0.9, "accuracy": 0.7, "count": 50}, {"confidence": 0.6, "accuracy": 0.5, "count": 9}]
    after = [{"confidence": 0.7, "accuracy": 0.7, "count": 59}]
    svg = charts.reliability(before, after)
    assert {"before", "after temperature", "perfect", "examples"} <= set(texts(svg))
    assert "confidence 90.0\xa0%, right 70.0\xa0%, 50 examples" in svg
    assert "measured" in texts(charts.reliability(before))


def test_intervals_count_what_lies_outside():
    rows = [{"true": 1, "predicted": 1, "low": 0, "high": 2}, {"true": 5, "predicted": 1, "low": 0, "high": 2}]
    assert "2 examples, 1 outside their interval" in charts.intervals(rows)
    assert "outside" not in charts.intervals([{"true": 1, "predicted": 2}])


def test_histogram_counts_every_finite_value():
    svg = charts.histogram([0, 1, 1, 2, NAN, None], bins=2)
    assert "4 values from 0 to 2" in svg
    assert "0 to 1: 1" in svg
    assert "1 to 2: 3" in svg


def test_heat_map_of_a_large_image_stays_small():
    svg = charts.heat_map([[i * j for j in range(500)] for i in range(400)])
    assert len(svg) < 60_000
    assert "37 by 46 cells; the strongest is in row 37, column 46" in svg


def test_long_lists_are_cut():
    assert len([t for t in texts(charts.bars([{"name": f"n{i}", "value": 1} for i in range(50)])) if t[0] == "n"]) == 20
    assert texts(charts.counts(dict.fromkeys(range(40), 1)))[-3] == "25"
    assert len(charts.curves({"train": [math.sin(i) + 2 for i in range(100_000)]})) < 12_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (None, "–"),
        (INF, "–"),
        ("7", "–"),
        (-3, "−3"),
        (0.99962, "0.9996"),
        (1234.5, "1,234"),
        (1e9, "1,000,000,000"),
        (1.5e15, "1.5e15"),
        (12345678.9, "1.23e7"),
        (2e-7, "2e-7"),
        (0.5, "0.500"),
    ],
)
def test_number(value, text):
    assert charts.number(value) == text


def test_ticks_are_round_and_inside():
    for low, high in ((0, 1), (-3.2, 17), (1e-6, 3e-6), (0, 10.4), (1e8, 9e8)):
        ticks = charts._Scale(low, high, 0, 100).ticks()
        assert 3 <= len(ticks) <= 7
        assert all(low - 1e-9 <= value <= high * (1 + 1e-9) for value, _ in ticks)
        assert len({label for _, label in ticks}) == len(ticks)


def test_fit_cuts_with_an_ellipsis():
    assert charts.fit("short", 100) == "short"
    cut = charts.fit("a_very_long_column_name_without_any_mercy", 100)
    assert cut.endswith("…")
    assert charts.width_of(cut) <= 100
    assert charts.fit("x", 0) == "…"


def test_both_themes_and_a_style_that_can_be_shared():
    svg = charts.counts({"a": 1})
    assert "prefers-color-scheme:dark" in svg
    assert "<style>" not in charts.without_style(svg)
