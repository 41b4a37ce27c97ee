"""Recordings made for tests: tones that rise or stay, each with a length of its own."""

from pathlib import Path

import numpy as np

from wonderland.data.recording import write_wave


def tone(row: int, rises: bool, rate: int = 8000) -> np.ndarray:
    draw = np.random.default_rng(row)
    t = np.arange(int(rate * draw.uniform(0.15, 0.3))) / rate
    pitch = draw.uniform(300, 600) * (1 + (2 * t / t[-1] if rises else 0 * t))
    return np.sin(2 * np.pi * np.cumsum(pitch) / rate) * draw.uniform(0.2, 0.8) + 0.01 * draw.normal(size=len(t))


def write_folder(folder: Path, rows: int, first: int = 0, rate: int = 8000) -> Path:
    """A folder with one folder for each of two classes."""
    for row in range(first, first + rows):
        name = "rising" if row % 2 else "steady"
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{row}.wav").write_bytes(write_wave(tone(row, bool(row % 2), rate), rate))
    return folder
