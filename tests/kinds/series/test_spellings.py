"""Stamps that name months, quarters, weeks or local days: each spelling is the calendar's day."""

import numpy as np
import pandas as pd
import pytest

import wonderland
from wonderland.core import WonderlandError
from wonderland.kinds import open as opened
from wonderland.kinds.series.stamps import read_stamps

MONTHS = pd.date_range("2019-07-01", periods=30, freq="MS")
WEEKS = pd.date_range("2019-11-04", periods=70, freq="W-MON")


def days(cells):
    stamps, dated, aware = read_stamps("time", pd.Series(cells))
    assert dated
    assert not aware
    return pd.to_datetime(stamps, unit="s")


@pytest.mark.parametrize(
    "written",
    ["%Y-%m", "%Y/%m", "%YM%m", "%Y-M%m", "%Y %b", "%b %Y", "%B %Y", "%b-%Y", "%m/%Y", "%Y%m", "%Y%m01", "%Y.%m"],
)
def test_months_are_those_of_the_calendar(written):
    assert days(MONTHS.strftime(written)).equals(MONTHS)


@pytest.mark.parametrize("written", ["{y}Q{q}", "{y}-Q{q}", "Q{q} {y}", "{y} q{q}"])
def test_quarters_begin_with_their_first_month(written):
    quarters = pd.date_range("1999-04-01", periods=9, freq="QS")
    assert days([written.format(y=day.year, q=day.quarter) for day in quarters]).equals(quarters)


def test_numbers_of_year_and_month_are_months_and_years_are_numbers():
    assert days(MONTHS.strftime("%Y%m").astype(int)).equals(MONTHS)
    assert not read_stamps("year", pd.Series(np.arange(1900, 1990)))[1]


def test_weeks_begin_on_mondays_and_years_have_52_or_53():
    assert days([f"{iso.year}-W{iso.week:02d}" for iso in (day.isocalendar() for day in WEEKS)]).equals(WEEKS)


def test_midnights_with_an_offset_are_days_of_the_local_calendar():
    for stamps, name in ((pd.date_range("2024-03-01", periods=60, tz="Europe/Berlin"), "daily"),
                         (pd.date_range("2020-01-01", periods=40, freq="MS", tz="Europe/Berlin"), "monthly")):  # fmt: skip
        for cells in (stamps, stamps.map(lambda stamp: stamp.isoformat())):
            panel = opened(
                pd.DataFrame({"time": cells, "value": np.sin(np.arange(len(stamps)))}), kind="series", horizon=2
            )
            assert panel.layout.frequency.name == name
            assert [finding.kind for finding in panel.findings] == ["season"]
            track = panel.tracks[0]
            assert panel.layout.frequency.texts(np.arange(track.start, track.stop)) == [
                str(stamp.date()) for stamp in stamps
            ]


def test_stamps_without_any_step_get_a_usual_one():
    draw = np.random.default_rng(0)
    stamps = pd.Timestamp("2023-01-01 00:20") + pd.to_timedelta(draw.exponential(3600, 500).cumsum(), unit="s")
    panel = opened(pd.DataFrame({"time": stamps, "value": draw.normal(size=500)}), kind="series", horizon=2)
    assert panel.layout.frequency.name == "hourly"
    assert panel.layout.frequency.texts(np.array([0]))[0].endswith(":00:00")


def test_one_row_is_one_step(tmp_path):
    with pytest.raises(WonderlandError, match="has 1 step, too few to learn"):
        wonderland.fit(pd.DataFrame({"time": ["2023-01-01"], "value": [1.0]}), out=tmp_path / "run", horizon=3)
