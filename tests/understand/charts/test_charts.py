"""Charts are well-formed, escaped and complete, whatever numbers and names they are given."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.understand.charts.drawn import INF, NAN, SVG, parse, texts
from wonderland.understand import charts

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a\x00b\u202ec\ud800", "👩‍🚀 & co", "]]>", ""]


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
