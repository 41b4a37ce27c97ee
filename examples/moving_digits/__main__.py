"""Digits that move: which way a digit runs is not in any single frame, and is learned by convolutions over time and space.

Digits of 8 x 8 pixels move in one of four directions over 16 x 16 pixels, one pixel a frame, and come back at the other side. A model of single
frames could not do better than chance, a quarter.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import wonderland
from examples.lab import Claim, above, lines, run, table

SIDE, FRAMES = 16, 8
MOVES = {"right": (0, 1), "left": (0, -1), "down": (1, 0), "up": (-1, 0)}
MODELS = ("ClipConvNet(dim=8)", "ClipConvNet(dim=8, factored=True)", "ClipSequenceNet(dim=32)")


def write(folder: Path, count: int, seed: int = 0) -> Path:
    """Clips as folders of frames, in a folder for each direction."""
    draw, digits = np.random.default_rng(seed), load_digits().images
    for number in range(count):
        name = list(MOVES)[number % 4]
        clip = folder / name / str(number)
        clip.mkdir(parents=True)
        canvas = np.zeros((SIDE, SIDE), np.uint8)
        canvas[:8, :8] = digits[draw.integers(len(digits))] * 15
        begin = draw.integers(SIDE, size=2)
        for t in range(FRAMES):
            moved = np.roll(canvas, tuple(int(place) for place in begin + t * np.array(MOVES[name])), (0, 1))
            Image.fromarray(moved).save(clip / f"{t}.png")
    return folder


def accuracies(count: int = 480, steps: int | None = None) -> dict[str, float]:
    """Accuracy of each model on clips that were held out."""
    measured = {}
    with tempfile.TemporaryDirectory() as place:
        source = write(Path(place) / "clips", count)
        for model in MODELS:
            more = {} if steps is None else {"steps": steps}
            fitted = wonderland.fit(
                source, out=Path(place) / "run", model=model, frames=FRAMES, lr=3e-3, overwrite=True, threads=1, **more
            )
            measured[model] = fitted.metrics["accuracy"]
    return measured


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    measured = accuracies()
    claims = [above(f"{MODELS[0]}", measured[MODELS[0]], 0.9), above(f"{MODELS[1]}", measured[MODELS[1]], 0.9)]
    bars = {"accuracy": [(float(i), value) for i, value in enumerate(measured.values())]}
    picture = lines(bars, title="Which way a digit moves", x_label="model", y_label="accuracy")
    rows = [(name, f"{value:.4f}") for name, value in measured.items()]
    return claims, table(("model", "accuracy (0.25 by chance)"), rows, left=1), {"moving_digits": picture}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("moving_digits", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
