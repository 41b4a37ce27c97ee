"""Forecasts as a task: measures by hand, likelihoods of torch, intervals that hold on average, anomalies that keep their promise."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.distributions import NegativeBinomial, StudentT

import wonderland
from tests.kinds.series.made import hourly, monthly
from wonderland.core import WonderlandError
from wonderland.tasks import Forecast, ForecastTrust
from wonderland.tasks.forecast import raised
from wonderland.tasks.forecast_measures import QUANTILES, Measures
from wonderland.tasks.losses import negative_binomial_nll, student_nll
from wonderland.trust import crps_gaussian


def test_measures_are_those_of_their_equations():
    draw = np.random.default_rng(0)
    truth, forecast = draw.normal(3, 1, (9, 2, 1)), draw.normal(3, 1, (9, 2, 1))
    truth[0, 1] = np.nan
    naive, scale = np.full((9, 1), 0.5), np.full((9, 1), 2.0)
    measures = Measures(2, 1)
    measures.add(truth[:4], forecast[:4], naive[:4], scale[:4])
    measures.add(truth[4:], forecast[4:], naive[4:], scale[4:])
    error = np.abs(truth - forecast)[np.isfinite(truth)]
    total = (np.abs(truth) + np.abs(forecast))[np.isfinite(truth)]
    wanted = {
        "mae": error.mean(),
        "rmse": np.sqrt((error**2).mean()),
        "mase": (error / 0.5).mean(),
        "smape": (200 * error / total).mean(),
    }
    assert measures.of_point() == pytest.approx(wanted)
    assert measures.mean(measures.standard) == pytest.approx(((error / 2) ** 2).mean())
    measures.add_intervals(truth, forecast - 1, forecast + 1)
    assert measures.mean(measures.inside) == pytest.approx((error <= 1).mean())


def test_crps_of_a_normal_distribution_is_its_closed_form():
    draw = np.random.default_rng(1)
    truth = draw.normal(size=(4000, 1, 1))
    levels = torch.distributions.Normal(0.0, 1.0).icdf(torch.from_numpy(QUANTILES)).numpy()
    measures = Measures(1, 1)
    measures.add(truth, np.zeros_like(truth), np.ones((4000, 1)), np.ones((4000, 1)))
    measures.add_quantiles(truth, np.broadcast_to(levels[:, None, None, None], (19, 4000, 1, 1)))
    exact = crps_gaussian(np.zeros(4000), np.ones(4000), truth[:, 0, 0])
    assert measures.of_distribution()["crps"] == pytest.approx(exact, rel=0.05)


def test_likelihoods_are_those_of_torch():
    y, mean, other = torch.randint(0, 9, (7,)).double(), torch.rand(7).double() + 1, torch.rand(7).double() + 0.5
    own = student_nll(mean, y, log_scale=other.log(), freedom=other + 2, reduction="none")
    assert torch.allclose(own, -StudentT(other + 2, mean, other).log_prob(y))
    own = negative_binomial_nll(mean, y, dispersion=other, reduction="none")
    counts = NegativeBinomial(1 / other, probs=mean * other / (1 + mean * other))
    assert torch.allclose(own, -counts.log_prob(y))


def test_intervals_of_each_step_hold_on_average():
    covered = []
    for seed in range(100):
        draw = np.random.default_rng(seed)
        errors = draw.normal(size=(99, 3, 1)) * np.array([1.0, 2.0, 4.0])[:, None]
        trust = ForecastTrust.of(errors, 0.9)
        new = np.abs(draw.normal(size=(200, 3, 1))) * np.array([1.0, 2.0, 4.0])[:, None]
        covered.append((new <= trust.radius(0.9)).mean(0)[:, 0])
    assert np.mean(covered, 0) == pytest.approx([0.9] * 3, abs=0.012)


def test_few_windows_share_their_errors_over_the_steps():
    errors = np.random.default_rng(0).normal(size=(12, 6, 1)) * np.arange(1, 7)[:, None]
    radius = ForecastTrust.of(errors, 0.9).radius(0.9)[:, 0]
    assert np.isfinite(radius).all()
    assert (np.diff(radius) >= 0).all()
    saved = ForecastTrust.of(errors, 0.9).to_json()
    assert np.allclose(ForecastTrust.from_json(saved, 6, 1).radius(0.9)[:, 0], radius)
    with pytest.raises(
        WonderlandError, match=r"^trust\.json does not hold errors of forecasts: it is damaged or not ours\.$"
    ):
        ForecastTrust.from_json(saved | {"profile": [[0.0]] * 6}, 6, 1)


def test_errors_of_validation_are_raised_to_those_of_calibration_and_never_lowered():
    errors = np.random.default_rng(0).normal(size=(20, 3, 2)) * np.array([2.0, 0.5])
    errors[0, 0, 0] = np.nan
    before = np.random.default_rng(1).normal(size=(20, 3, 2))
    made = raised(before, errors)
    assert np.nanmean(made[..., 0] ** 2) == pytest.approx(np.nanmean(errors[..., 0] ** 2))
    assert np.array_equal(made[..., 1], before[..., 1])
    assert np.array_equal(raised(0 * before, errors), 0 * before)


@pytest.mark.parametrize(("growth", "unit"), [(0.012, "level"), (0.0, "scale")])
def test_errors_that_grow_with_the_level_widen_the_intervals(growth, unit, tmp_path):
    draw, t = np.random.default_rng(0), np.arange(180)
    values = np.exp(growth * t) * (10 + 2 * np.sin(2 * np.pi * t / 12) + 0.5 * draw.normal(size=180))
    frame = pd.DataFrame(
        {"month": pd.date_range("2005-01-01", periods=180, freq="MS"), "units": values + 50 * (growth == 0)}
    )
    run = wonderland.fit(frame, out=tmp_path / "run", kind="series", threads=1)
    assert run.trust.unit == unit
    assert run.record["measured"]["test"]["conformal"]["coverage"] > 0.8


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    draw = np.random.default_rng(3)
    frame = pd.DataFrame({"t": np.arange(1500), "value": 5 + draw.normal(size=1500)})
    run = wonderland.fit(
        frame, out=tmp_path_factory.mktemp("f") / "run", horizon=2, time="t", season=1, context=8, threads=1
    )
    return run, draw


def test_at_most_the_promised_share_of_ordinary_steps_is_flagged(fitted):
    run, draw = fitted
    later = pd.DataFrame({"t": np.arange(1500, 3500), "value": 5 + draw.normal(size=2000)})
    later.loc[100, "value"] = 50.0
    table = run.predict(later, anomalies=0.05)
    assert len(table) == 2000
    assert 0.02 < table["anomaly"].mean() < 0.075
    assert table["anomaly"].iloc[100]
    with pytest.raises(WonderlandError, match=r"^Flagging at most 0\.0001 of ordinary steps takes 9999 calibration windows, and this run has \d+: allow a share of 0\.\d+\.$"):  # fmt: skip
        run.predict(later, anomalies=0.0001)


def test_covariates_that_are_known_ahead_are_read_from_the_rows_to_come(tmp_path):
    frame = hourly(200)[["time", "holiday", "a"]]
    frame.loc[196:, "a"] = np.nan
    options = {
        "horizon": 4,
        "target": "a",
        "known": "holiday",
        "model": "SequenceForecaster(dim=8, depth=1)",
        "steps": 3,
    }
    run = wonderland.fit(frame, out=tmp_path / "run", threads=1, **options)
    table = run.predict()
    assert table["time"].tolist()[0] == "2024-05-09 04:00:00"
    changed = frame[196:].assign(holiday=1 - frame["holiday"][196:])
    assert not np.allclose(run.predict(changed)["prediction"], table["prediction"])
    assert not any(finding.kind == "known" for finding in run.noticed)


@pytest.mark.parametrize("loss", ["mae", "quantile", "gaussian", "student", "negative_binomial"])
def test_every_loss_learns_and_predicts(loss, tmp_path):
    frame = monthly(70).assign(units=lambda table: table["units"].round())
    options = {"horizon": 3, "loss": loss, "model": "DLinear(kernel=3)", "steps": 4, "threads": 1}
    run = wonderland.fit(frame, out=tmp_path / "run", **options)
    table = run.predict()
    assert len(table) == 3
    assert (table["low"] <= table["prediction"]).all()
    assert run.task.kind == loss
    with pytest.raises(
        WonderlandError,
        match=r"^The default model forecasts means: for loss .* name a model, such as --model 'DeepAR\(\)'\.$",
    ):
        wonderland.fit(frame, out=tmp_path / "other", horizon=3, loss=loss)


def test_a_task_says_what_it_learns():
    with pytest.raises(WonderlandError, match=r"^A Forecast learns one of mse, .*, not 'loss'\.$"):
        Forecast(horizon=3, loss="loss")
