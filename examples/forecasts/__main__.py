"""Forecast ETTh1 with DLinear as published, sunspots and air passengers by default fit, and D2L's sine wave k steps ahead.

Parts are cut by time, scales come from the training part, and every window of the test is measured. The published number of DLinear leaves
out the last, incomplete batch of windows.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import wonderland
from examples.lab import DATA, Claim, above, below, lines, run, table
from examples.lab.files import find
from wonderland import nn, solvers
from wonderland.understand import charts

MONTHS = 20 * 30 * 24  # hours of ETTh1 that the papers use: 12 to train on, 4 to choose, 4 to test
HALVING = "multi_step(at=[257, 514, 771, 1028, 1285, 1542, 1799, 2056, 2313], alpha=0.5)"
LAGS, KNOWN, NOISE = 4, 604, 0.2


def etth1(source: Path, steps: int = 2570, seed: int = 0) -> tuple[float, float]:
    """Squared and absolute error of DLinear at its published setting, in the scale of the training part."""
    with tempfile.TemporaryDirectory() as folder:
        made = wonderland.fit(
            pd.read_csv(source)[:MONTHS], out=Path(folder) / "run", target="all", horizon=96, context=336, model="DLinear(kernel=25)",
            optimizer="Adam(lr=0.005)", schedule=HALVING, batch_size=32, steps=steps, clip=1e6, seed=seed, threads=1,
        )  # fmt: skip
        return made.metrics["scaled_mse"], made.metrics["scaled_mae"]


def by_default(source: Any, **options: Any) -> tuple[dict[str, float], str]:
    """Measures of a default fit with the coverage of its intervals, and a picture of the forecast."""
    with tempfile.TemporaryDirectory() as folder:
        made = wonderland.fit(source, out=Path(folder) / "run", kind="series", threads=1, **options)
        data = wonderland.kinds.open(source, kind="series", **options)
        view = made.view(data)
        last = np.flatnonzero(view.examples.origins >= made.encoder.geometry.cuts[2])  # pyright: ignore
        one = view.examples.pictures(  # pyright: ignore
            lambda rows: list(made.task.walk(view, rows, unit=made.trust.unit)), last, made.trust.radius(0.9), 1
        )[0]
        measured = made.record["measured"]["test"]["conformal"]["coverage"]
        return made.metrics | {"coverage": measured}, charts.forecast(one["history"], one["pieces"], one["labels"])


def wave(steps: int = 1000, seed: int = 0) -> Tensor:
    """D2L's series: a sine wave with noise."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(1.0, steps + 1)
    return torch.sin(0.01 * time) + NOISE * torch.randn(steps, generator=generator)


def ahead(x: Tensor, steps: int, train: int = KNOWN) -> Tensor:
    """Forecasts k = 1 ... steps ahead by a linear model of the last four values that reads its own forecasts: (k, n).

    Row k - 1 holds the forecasts of x[LAGS + k - 1], ..., as in D2L's figure.
    """
    rows = x.unfold(0, LAGS, 1)
    model = solvers.ridge_regression(rows[: train - LAGS], x[LAGS:train], ridge=1e-9)
    window, made = rows[: len(x) - LAGS - steps + 1].double(), []
    for _ in range(steps):
        value = model.predict(window).double()
        made.append(value)
        window = torch.cat([window[:, 1:], value[:, None]], 1)
    return torch.stack(made)


def k_step_errors(steps: tuple[int, ...] = (1, 4, 16, 64)) -> dict[int, tuple[float, float]]:
    """The root mean square error to the noiseless wave of forecasts k steps ahead, and the range of these forecasts."""
    x = wave()
    made, clean = ahead(x, max(steps)), torch.sin(0.01 * torch.arange(1.0, 1001)).double()
    errors = {}
    for k in steps:
        truth = clean[LAGS + k - 1 :][: made.shape[1]]
        errors[k] = (float((made[k - 1] - truth).square().mean().sqrt()), float(made[k - 1].max() - made[k - 1].min()))
    return errors


def smoothed(width: float = 15.0) -> tuple[float, float]:
    """Errors of the noisy wave and of Nadaraya-Watson's mean of it, to the wave without noise."""
    x, time = wave(), torch.arange(1.0, 1001)[:, None]
    clean = torch.sin(0.01 * time)
    made = nn.KernelRegression(width=width)(time, time, x[:, None])
    return float((x[:, None] - clean).square().mean().sqrt()), float((made - clean).square().mean().sqrt())


def lab(data: str | None = None) -> tuple[list[Claim], str, dict[str, str]]:
    mse, mae = etth1(find("ETTh1.csv", data))
    spots, picture = by_default(find("sunspots.csv", data), target="SUNACTIVITY", time="YEAR", horizon=11)
    flights, drawn = by_default(find("air_passengers.csv", data), horizon=12)
    errors, (noisy, calm) = k_step_errors(), smoothed()
    rows = [
        ("ETTh1, DLinear, 96 steps", "MSE 0.375, MAE 0.399", f"MSE {mse:.4f}, MAE {mae:.4f}"),
        *((name, f"MASE {told['seasonal_naive_mase']:.3f} (season before)", f"MASE {told['mase']:.3f}, coverage {told['coverage']:.3f}")
          for name, told in (("sunspots, 11 years", spots), ("air passengers, 12 months", flights))),
        *((f"sine wave, {k} steps ahead", "", f"error {error:.3f}, range {span:.2f}") for k, (error, span) in errors.items()),
        ("sine wave by kernel regression", f"noise {noisy:.3f}", f"error {calm:.3f}"),
    ]  # fmt: skip
    claims = [
        below("ETTh1: squared error of DLinear, no window dropped", mse, 0.377),
        below("sunspots: MASE over that of the season before", spots["mase"] / spots["seasonal_naive_mase"], 1.0),
        below("air passengers: MASE over that of the season before", flights["mase"] / flights["seasonal_naive_mase"], 0.6),
        above("sunspots: coverage of 90 % intervals", spots["coverage"], 0.85),
        above("air passengers: coverage of intervals that grow with the number of passengers", flights["coverage"], 0.8),
        below("sine wave: error one step ahead over that of 64 steps", errors[1][0] / errors[64][0], 0.5),
        below("sine wave: forecasts 64 steps ahead shrink to a share of their range", errors[64][1] / errors[1][1], 0.7),
        below("kernel regression: share of the noise that is left", calm / noisy, 0.35),
    ]  # fmt: skip
    x = ahead(wave(), 64)
    curves = {f"k = {k}": list(enumerate(x[k - 1].tolist(), LAGS + k - 1))[::4] for k in (1, 4, 16, 64)}
    pictures = {
        "sunspots": picture,
        "air_passengers": drawn,
        "k_steps": lines(curves, title="Forecasts k steps ahead", x_label="time", y_label="x"),
    }
    return claims, table(("series", "stated", "measured"), rows, left=3), pictures


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("forecasts", __doc__, lab, given, DATA)


if __name__ == "__main__":
    sys.exit(main())
