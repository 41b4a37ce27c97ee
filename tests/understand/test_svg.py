"""Ticks of scales, shortened text, and the style sheet."""

from wonderland.understand import charts, svg


def test_ticks_are_round_and_inside():
    for low, high in ((0, 1), (-3.2, 17), (1e-6, 3e-6), (0, 10.4), (1e8, 9e8)):
        ticks = svg.Scale(low, high, 0, 100).ticks()
        assert 3 <= len(ticks) <= 7
        assert all(low - 1e-9 <= value <= high * (1 + 1e-9) for value, _ in ticks)
        assert len({label for _, label in ticks}) == len(ticks)


def test_long_text_is_cut_with_an_ellipsis():
    assert svg.fit_text("short", 100) == "short"
    cut = svg.fit_text("a_very_long_column_name_without_any_break", 100)
    assert cut.endswith("…")
    assert svg.text_width(cut) <= 100
    assert svg.fit_text("x", 0) == "…"


def test_both_themes_and_a_style_that_can_be_shared():
    chart = charts.counts({"a": 1})
    assert "prefers-color-scheme:dark" in chart
    assert "<style>" not in svg.without_style(chart)
