"""How a table is read as series: frequency and season, repairs that are told, and sentences for what cannot be read."""

import numpy as np
import pandas as pd
import pytest

import wonderland
from tests.kinds.series.made import hourly, monthly
from wonderland.core import WonderlandError
from wonderland.kinds import open as opened
from wonderland.kinds.series.stamps import Frequency


def read(frame, **options):
    return opened(frame, kind="series", **options)


def told(panel, kind):
    return next(finding.text for finding in panel.findings if finding.kind == kind)


def stamped(stamps, **columns):
    return pd.DataFrame({"time": stamps, "value": np.sin(np.arange(len(stamps))) + 2} | columns)


@pytest.mark.parametrize(
    ("stamps", "name"),
    [
        (pd.date_range("2020-01-31", periods=40, freq="ME"), "monthly"),
        ([f"{1990 + i // 4}Q{i % 4 + 1}" for i in range(40)], "quarterly"),
        ([f"{1990 + i // 12}-{i % 12 + 1:02d}" for i in range(40)], "monthly"),
        (pd.period_range("2020-01", periods=30, freq="M"), "monthly"),
        (pd.bdate_range("2021-03-01", periods=60), "every business day"),
        (pd.date_range("2021-03-01", periods=60, freq="15min"), "every 15 minutes"),
        (pd.date_range("2021-03-01", periods=60, freq="W"), "weekly"),
        (pd.date_range("1990-01-01", periods=30, freq="YS"), "yearly"),
        (np.arange(1700, 1760), "in steps of 1"),
        (np.arange(0, 30, 0.5), "in steps of 0.5"),
    ],
)
def test_the_frequency_is_found_and_the_stamps_go_on(stamps, name):
    panel = read(stamped(stamps), horizon=2)
    frequency = panel.layout.frequency
    assert frequency.name == name
    track = panel.tracks[0]
    assert len(track.values) == len(stamps)
    assert Frequency.from_json(frequency.to_json()) == frequency
    places, off = frequency.places(frequency.stamps(np.arange(track.start, track.stop + 3)))
    assert places.tolist() == list(range(track.start, track.stop + 3))
    assert np.abs(off).max() < 1 if frequency.unit == "month" else np.abs(off).max() < 1e-6


def test_the_season_is_found_or_taken_as_said():
    assert read(monthly()).layout.season == 12
    assert read(hourly(200), target="a").layout.season == 24
    assert read(monthly(), season=6).layout.season == 6
    noise = stamped(np.arange(200)).assign(value=np.random.default_rng(0).normal(size=200))
    assert read(noise, horizon=3).layout.season == 1
    t = np.arange(200)
    cycle = stamped(t).assign(value=np.sin(2 * np.pi * t / 11))
    assert read(cycle, horizon=3).layout.season == 11


def test_rows_in_any_order_are_the_same_series():
    frame = monthly()
    mixed = read(frame.sample(frac=1, random_state=1))
    assert mixed.fingerprint == read(frame).fingerprint
    assert told(mixed, "order").endswith("Rows are not in order of 'month'; they are sorted.")


def test_missing_repeated_and_uneven_stamps_are_repaired_and_told():
    frame = hourly(100)[["time", "a"]]
    frame = pd.concat([frame.drop(index=[10, 11]), frame.iloc[[20]].assign(a=3.0)])
    frame["time"] = frame["time"].mask(frame.index == 30, frame["time"] + pd.Timedelta("7min"))
    panel = read(frame)
    values = panel.tracks[0].values[:, 0]
    assert len(values) == 100
    assert np.flatnonzero(np.isnan(values)).tolist() == [10, 11]
    assert values[20] == pytest.approx((frame["a"].iloc[18] + 3) / 2)
    assert told(panel, "gap").startswith("2 stamps are missing (hourly);")
    assert told(panel, "duplicate") == "1 row repeats a stamp of the same series; values of one stamp are averaged."
    assert told(panel, "irregular") == "1 stamp lies between two steps (hourly) and is moved to the nearer one."
    with pytest.raises(WonderlandError, match="Strict mode stops here"):
        read(frame, strict=True)


def test_time_zones_and_the_hours_of_daylight_saving():
    utc = pd.date_range("2024-10-26", periods=72, freq="h", tz="UTC")
    local = utc.tz_convert("Europe/Berlin")
    aware = read(stamped(local.map(str)), horizon=2)
    assert len(aware) == 72
    assert told(aware, "time zone") == "The stamps of 'time' have an offset; they are read and written in UTC."
    assert aware.layout.frequency.texts(np.array([aware.tracks[0].start])) == ["2024-10-26 00:00:00+00:00"]
    wall = read(stamped(local.tz_localize(None)), horizon=2)
    assert "when daylight saving ends" in told(wall, "duplicate")
    spring = pd.date_range("2024-03-30", periods=72, freq="h", tz="UTC").tz_convert("Europe/Berlin").tz_localize(None)
    assert told(read(stamped(spring), horizon=2), "gap").startswith("1 stamp is missing (hourly);")


def test_series_of_unequal_length_and_one_shorter_than_the_horizon(tmp_path):
    long, short, tiny = monthly(90), monthly(50)[20:], monthly(90)[86:]
    frame = pd.concat([part.assign(shop=name) for name, part in (("a", long), ("b", short), ("c", tiny))])
    run = wonderland.fit(frame, out=tmp_path / "run", horizon=6, series="shop", target="units", threads=1)
    table = run.predict()
    assert table.groupby("shop").size().to_dict() == {"a": 6, "b": 6, "c": 6}
    assert table[table["shop"] == "b"]["month"].iloc[0] == "2019-03-01"
    assert np.isfinite(table["prediction"]).all()
    assert any("shorter than the horizon of 6 steps" in finding.text for finding in run.encoder.noticed)


def test_a_constant_series_is_continued(tmp_path):
    run = wonderland.fit(monthly().assign(units=5.0), out=tmp_path / "run", horizon=3, threads=1)
    assert run.predict()["prediction"].tolist() == pytest.approx([5.0] * 3)
    assert run.metrics["mase"] is None
    assert run.metrics["mae"] == pytest.approx(0)


def test_targets_may_be_missing_here_and_there(tmp_path):
    frame = monthly()
    frame.loc[[5, 40, 41, 90], "units"] = np.nan
    run = wonderland.fit(frame, out=tmp_path / "run", horizon=4, threads=1)
    assert any(text.startswith(("4 stamps are missing", "4 values are missing")) for text in run.findings)
    assert run.metrics["mase"] < 1


NO_ROWS = pd.DataFrame({"time": pd.Series([], dtype="datetime64[ns]"), "value": pd.Series([], dtype=float)})
FAR = stamped([*pd.date_range("2024-01-01", periods=50, freq="h"), pd.Timestamp("1970-01-01")])


@pytest.mark.parametrize(
    ("frame", "options", "sentence"),
    [
        (monthly(20), {"horizon": 28}, "frame has 20 steps, too few to learn and to measure forecasts of 28 steps, which take 126: give a horizon of at most 4."),
        (monthly(2), {"horizon": 28}, "frame has 2 steps, too few to learn and to measure forecasts of 28 steps, which take 126: give longer series."),
        (stamped(["noon", "night", "noon"]), {}, "Column 'time' holds 'noon', which is neither a date nor a number: name the column of times with time (--time)."),
        (monthly().drop(columns="month"), {}, "frame has no column of times: name it with time (--time)."),
        (monthly().drop(columns="units"), {}, "There is no column of numbers to forecast: name one with target (--target)."),
        (monthly(), {"target": "unit"}, "There is no column 'unit' (given as target). Did you mean 'units'?"),
        (monthly(), {"series": "shop"}, "There is no column 'shop' (given as series). The columns are 'month', 'units'."),
        (monthly(), {"known": ["price"]}, "There is no column 'price' (given as known). The columns are 'month', 'units'."),
        (monthly(), {"target": "month", "time": "month"}, "Column 'month' is the target, so it cannot be the time, the series or a covariate as well."),
        (monthly().assign(units=np.nan), {"target": "units"}, "Column 'units' has no values, so there is nothing to forecast."),
        (monthly().assign(units="many"), {"target": "units"}, "Column 'units' holds 'many' and no numbers, so it cannot be forecast."),
        (monthly().assign(units=np.inf), {"target": "units"}, "Column 'units' holds an infinite value in row 1. Correct it, or leave the cell empty."),
        (FAR, {}, "The stamps of 'time' go from 1970-01-01 00:00:00 to 2024-01-03 01:00:00, which is 473,402 steps (hourly) for 51 rows: correct the stamps, or leave the far ones out."),
        (monthly().assign(units=-1.0), {"loss": "negative_binomial"}, "loss negative_binomial is for counts 0, 1, 2 ..., and there are values below 0: choose student."),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(frame, options, sentence):
    with pytest.raises(WonderlandError) as error:
        read_and_split(frame, options)
    assert str(error.value) == sentence


def read_and_split(frame, options):
    return wonderland.kinds.KINDS["series"].split(read(frame, **options), test=0.2, seed=0)


def test_without_an_option_of_forecasts_a_table_stays_a_table():
    assert opened(monthly(), target="units", time="month").kind == "table"
    assert opened(monthly(), target="units", time="month", horizon=3).kind == "series"
