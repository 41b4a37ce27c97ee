"""Measure coverage and size of every conformal method over 200 splits."""

import sys

import numpy as np

from examples.coverage.methods import CALIBRATION, LEVEL, intervals, sets
from examples.lab import Claim, run, table

# How far above the level the theory lets the mean go; the calibrated share is a multiple of 1 / (n + 1).
ABOVE = {
    "by class": 0.06,  # the rarest class has about a dozen calibration rows
    "by group": 4 / CALIBRATION,
    "weighted, shifted rows": 0.03,
    "cross, lac": 0.03,
    "CV+": 0.03,
    "jackknife+": 0.02,
    "jackknife, min and max": 0.03,
    "adaptive, noise trebles": 0.03,
    "split, raps": 1 / (0.8 * CALIBRATION + 1),
}
BELOW = {"adaptive, noise trebles": (0.9 + 0.02) / (0.02 * 450)}


def lab(splits: int = 200) -> tuple[list[Claim], str, dict[str, str]]:
    claims, rows = [], []
    for kind, measure in (("set", sets), ("interval", intervals)):
        measured = [measure(split) for split in range(splits)]
        for name in measured[0]:
            hits, size = (np.array([one[name][i] for one in measured]) for i in (0, 1))
            error = float(hits.std() / np.sqrt(splits))
            low = LEVEL - 3 * error - BELOW.get(name, 0)
            high = LEVEL + ABOVE.get(name, 1 / (CALIBRATION + 1)) + 3 * error
            rows.append((f"{kind}: {name}", f"{hits.mean():.4f}", f"{error:.4f}", f"{size.mean():.3f}"))
            claims.append(
                Claim(
                    f"{kind}, {name}: coverage between {low:.4f} and {high:.4f}",
                    f"{hits.mean():.4f}",
                    low <= hits.mean() <= high,
                )
            )
    return claims, table(("method", "coverage", "error", "size or width"), rows), {}


def main(given: list[str] | None = None) -> int:
    """0 when every method covers as the theory says, 1 when one does not."""
    return run("coverage", __doc__, lab, given, {"--splits": {"type": int, "default": 200}})


if __name__ == "__main__":
    sys.exit(main())
