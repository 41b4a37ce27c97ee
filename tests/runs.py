"""Small finished runs, fitted once for each test process."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd

import wonderland


def mixed(rows: int = 240, seed: int = 0) -> pd.DataFrame:
    """A table as people have them: numbers, words, dates, gaps, and a rare class."""
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 90, rows).astype(float)
    income = np.exp(generator.normal(10, 0.5, rows))
    city = generator.choice(["Oslo", "Rome", "Lima"], rows)
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.integers(0, 900, rows), unit="D")
    risk = (age / 40 + (city == "Rome") + generator.normal(scale=0.3, size=rows)) > 2.2
    frame = pd.DataFrame({"age": age, "income": income, "city": city, "since": since.strftime("%Y-%m-%d")})
    frame.loc[generator.random(rows) < 0.1, "age"] = np.nan
    frame.loc[generator.random(rows) < 0.05, "city"] = None
    return frame.assign(risk=np.where(risk, "high", "low"))


@cache
def classifier() -> wonderland.Run:
    """A run on the mixed table."""
    folder = Path(mkdtemp(prefix="wonderland-classifier-"))
    mixed().to_csv(folder / "table.csv", index=False)
    return wonderland.fit(folder / "table.csv", "risk", out=folder / "run", steps=60)


@cache
def regressor() -> wonderland.Run:
    """A run on numbers."""
    return wonderland.fit("diabetes", out=Path(mkdtemp(prefix="wonderland-regressor-")) / "run", steps=60)


@cache
def digits() -> wonderland.Run:
    """A run on images."""
    return wonderland.fit("digits", out=Path(mkdtemp(prefix="wonderland-digits-")) / "run", epochs=2)
