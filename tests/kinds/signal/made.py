"""Signals made for tests: waves of two pitches in two channels, of unequal lengths."""

from pathlib import Path

import numpy as np
import pandas as pd


def wave(row: int) -> np.ndarray:
    draw = np.random.default_rng(row)
    t = np.arange(draw.integers(24, 32))
    pitch = 0.9 if row % 2 else 0.5
    values = np.stack([np.sin(pitch * t + draw.uniform(0, 6)), draw.normal(size=len(t))], 1)
    return (values + 0.1 * draw.normal(size=values.shape)).round(4)


def write_ts(path: Path, rows: range, answers: str = "@classLabel true low high") -> Path:
    lines = ["# made for a test", "@problemName waves", "@timeStamps false", "@univariate false", answers, "@data"]
    for row in rows:
        channels = ":".join(",".join(map(str, column)) for column in wave(row).T)
        answer = f"{row * 0.5}" if "target" in answers else ("high" if row % 2 else "low")
        lines.append(f"{channels}:{answer}")
    path.write_text("\n".join(lines) + "\n")
    return path


def long_table(rows: range) -> pd.DataFrame:
    tables = []
    for row in rows:
        values = wave(row)
        about = {"id": f"s{row}", "time": np.arange(len(values)), "x": values[:, 0], "y": values[:, 1]}
        tables.append(pd.DataFrame(about | {"pitch": "high" if row % 2 else "low"}))
    return pd.concat(tables).sample(frac=1, random_state=0)
