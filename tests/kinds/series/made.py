"""Series made for tests."""

import numpy as np
import pandas as pd


def monthly(steps: int = 96, seed: int = 0) -> pd.DataFrame:
    """A trend, a season of twelve, and noise."""
    draw, t = np.random.default_rng(seed), np.arange(steps)
    values = 100 + 0.5 * t + 15 * np.sin(2 * np.pi * t / 12) + draw.normal(size=steps)
    return pd.DataFrame({"month": pd.date_range("2015-01-01", periods=steps, freq="MS"), "units": values.round(3)})


def hourly(steps: int = 150, seed: int = 0) -> pd.DataFrame:
    """Two columns with a season of a day, and a holiday that raises both."""
    draw, t = np.random.default_rng(seed), np.arange(steps)
    holiday = (t % 40 < 5).astype(int)
    wave = np.sin(2 * np.pi * t / 24) + 0.5 * holiday
    noise = draw.normal(size=(2, steps)) * 0.1
    stamps = pd.date_range("2024-05-01", periods=steps, freq="h")
    return pd.DataFrame(
        {"time": stamps, "holiday": holiday, "a": (wave + noise[0]).round(4), "b": (5 - wave + noise[1]).round(4)}
    )
