"""The lab of forecasts: steps ahead are those of D2L's figure, and the parts that need a file run on made-up ones."""

import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.forecasts import __main__ as forecasts
from tests.kinds.series.made import hourly, monthly


def test_forecasts_ahead_read_their_own():
    x = forecasts.wave(200)
    made = forecasts.ahead(x, 3, train=150)
    assert made.shape == (3, 200 - 4 - 2)
    clean = torch.sin(0.01 * torch.arange(1.0, 201)).double()
    exact = forecasts.ahead(clean, 3, train=150)
    assert torch.allclose(exact[2], clean[6:], atol=1e-4)  # a sine wave follows a linear recurrence


def test_errors_grow_with_the_steps_and_kernel_regression_takes_noise_away():
    errors = forecasts.k_step_errors((1, 16))
    assert errors[1][0] < errors[16][0]
    noisy, calm = forecasts.smoothed()
    assert calm < 0.5 * noisy


def test_the_labs_fit_what_they_say(tmp_path, monkeypatch):
    monthly(80).to_csv(tmp_path / "months.csv", index=False)
    told, picture = forecasts.by_default(tmp_path / "months.csv", horizon=3)
    assert told["mase"] < told["seasonal_naive_mase"]
    assert picture.startswith("<svg")
    pd.concat([hourly(900)]).drop(columns="holiday").to_csv(tmp_path / "ETTh1.csv", index=False)
    assert forecasts.etth1(tmp_path / "ETTh1.csv", steps=3)[0] == pytest.approx(1, abs=3)
