"""Predict log prices with D2L's recipe (SGD 0.01, 10 epochs, batch 64, 5 folds), then with ridge regression in closed form.

The book encodes Kaggle's unlabelled file together with the labelled one, 331 columns; the labelled one alone has 330. Its
number is of one seed, with few epochs, so it is compared with the mean and standard deviation of ten seeds.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from examples.lab import DATA, Claim, about, below, lines, run, spread, table
from examples.lab.files import find
from wonderland import optim, solvers
from wonderland.core import WonderlandError
from wonderland.tasks import losses
from wonderland.train import cross_validate

FOLDS, EPOCHS, BATCH, RATE, SEEDS = 5, 10, 64, 0.01, tuple(range(10))
STATED = 0.1733  # mean validation log-MSE in the book, of one seed


def load(path: str | Path | None = None) -> tuple[Tensor, Tensor]:
    """Features (n, c) and log prices (n): numbers standardised and imputed by the mean, categories one-hot, missing ones too."""
    place = find("house_prices_train.csv", path)
    frame = pd.read_csv(place)
    for column in ("Id", "SalePrice"):
        if column not in frame:
            raise WonderlandError(f"{place} has no column {column}: take train.csv of Kaggle's house prices.")
    prices = frame.pop("SalePrice")
    frame = frame.drop(columns="Id")
    numbers = frame.select_dtypes("number").columns
    frame[numbers] = ((frame[numbers] - frame[numbers].mean()) / frame[numbers].std()).fillna(0)
    table = pd.get_dummies(frame, dummy_na=True, dtype=float)
    return torch.tensor(table.to_numpy(np.float32)), torch.tensor(np.log(prices.to_numpy(np.float32)))


def folds(rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Consecutive blocks of rows in the order of the file, as in the book."""
    size = rows // FOLDS
    held = [np.arange(k * size, (k + 1) * size) for k in range(FOLDS)]
    return [(np.setdiff1d(np.arange(rows), part), part) for part in held]


def descend(x: Tensor, y: Tensor, train: np.ndarray, held: np.ndarray, seed: int) -> list[float]:
    """The held-out loss after each epoch."""
    generator = torch.Generator().manual_seed(seed)
    w = nn.Parameter(0.01 * torch.randn(x.shape[1], generator=generator))
    b = nn.Parameter(torch.zeros(()))
    optimizer = optim.SGD([w, b], lr=RATE)
    rows, curve = torch.from_numpy(train), []
    for _ in range(EPOCHS):
        for part in rows[torch.randperm(len(rows), generator=generator)].split(BATCH):
            optimizer.zero_grad()
            losses.squared(x[part] @ w + b, y[part]).backward()
            optimizer.step()
        with torch.no_grad():
            # The book averages over batches of 64, the last of them smaller.
            parts = [
                losses.squared(a @ w + b, c) for a, c in zip(x[held].split(BATCH), y[held].split(BATCH), strict=True)
            ]
        curve.append(torch.stack(parts).mean().item())
    return curve


def ridge_error(x: Tensor, y: Tensor, train: np.ndarray, held: np.ndarray, strength: float) -> float:
    """Mean squared error of ridge regression in closed form."""
    fit = solvers.ridge_regression(x[train], y[train], ridge=strength)
    return (fit.predict(x[held]) - y[held].double()).square().mean().item()


def lab(data: str | None = None) -> tuple[list[Claim], str, dict[str, str]]:
    x, y = load(data)
    parts = folds(len(y))
    curves = [[descend(x, y, *part, 100 * seed + k) for k, part in enumerate(parts)] for seed in SEEDS]
    means = [sum(curve[-1] for curve in fold_curves) / FOLDS for fold_curves in curves]
    strengths = [1.0, 10.0, 100.0, 300.0]
    closed = {s: cross_validate(lambda a, b, s=s: ridge_error(x, y, a, b, s), parts) for s in strengths}
    constant = cross_validate(lambda a, b: (y[b] - y[a].mean()).square().mean().item(), parts)
    rows = [("the mean price for all", "", f"{constant.mean:.4f} ± {constant.error:.4f}")]
    rows.append(("SGD 0.01, 10 epochs, as the book", f"{STATED}", spread(means)))
    rows += [(f"ridge in closed form, {s:g}", "", f"{v.mean:.4f} ± {v.error:.4f}") for s, v in closed.items()]
    best = min(value.mean for value in closed.values())
    mean, deviation = float(np.mean(means)), float(np.std(means, ddof=1))
    claims = [
        about(
            f"SGD: mean of {len(SEEDS)} seeds, the book's within two standard deviations", mean, STATED, 2 * deviation
        ),
        below("SGD: the best of the seeds, the book's in four digits", min(means), STATED + 5e-5),
        below("the best ridge in closed form", best, 0.03),
    ]
    shown = {f"fold {k + 1}": list(enumerate(curve, 1)) for k, curve in enumerate(curves[0][:4])}
    picture = lines(shown, title="House prices: held-out loss of four folds", x_label="epoch", y_label="log-MSE")
    report = table(("method", "book", "mean validation log-MSE"), rows, left=2)
    text = f"{report}\n\n{x.shape[1]} columns; a log-MSE of {best:.3f} is a factor of about {math.exp(best**0.5):.2f}"
    return claims, text, {"folds": picture}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("house_prices", __doc__, lab, given, DATA)


if __name__ == "__main__":
    sys.exit(main())
