"""Train a network too long on few digits, and calibrate it on rows it did not see."""

import sys

import numpy as np
import torch
from torch import nn

from examples.lab import Claim, above, below, lines, run, table
from wonderland.core import need
from wonderland.trust import (
    CALIBRATORS,
    bootstrap,
    brier_decomposition,
    choose_calibrator,
    classwise_ece,
    ece,
    log_softmax,
    reliability,
)
from wonderland.trust.choose_calibrator import log_loss


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Logits and labels for calibration (600 rows) and test (797 rows) of a network trained on 400 noisy digits."""
    x, y = need("sklearn.datasets", extra="datasets", why="for the digits").load_digits(return_X_y=True)
    generator = np.random.default_rng(0)
    x = x / 16 + generator.normal(scale=0.4, size=x.shape)
    order = generator.permutation(len(y))
    train, held, test = order[:400], order[400:1000], order[1000:]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs, targets = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[train]), targets[train]).backward()
        optimizer.step()
    logits = model(inputs).detach().double().numpy()
    return logits[held], y[held], logits[test], y[test]


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    held, y_held, test, y_test = digits()
    rows, errors = [], {}
    for method, fit in CALIBRATORS.items():
        p = fit(held, y_held)(test)
        errors[method] = ece(p, y_test)
        interval = bootstrap(lambda q, y: ece(q, y), p, y_test, draws=200, method="basic")
        parts = brier_decomposition(p, y_test)
        rows.append(
            (method, f"{errors[method]:.4f}", f"{interval.low:.4f} to {interval.high:.4f}", f"{ece(p, y_test, debiased=True):.4f}",
             f"{classwise_ece(p, y_test).mean():.4f}", f"{log_loss(p, y_test):.4f}", f"{parts.score:.4f}", f"{parts.reliability:.4f}")
        )  # fmt: skip
    chosen = choose_calibrator(held, y_held).calibrator
    losses = {method: float(row[5]) for method, row in zip(CALIBRATORS, rows, strict=True)}
    claims = [
        above("temperature: calibration error before by after", errors["none"] / errors["temperature"], 3),
        below(
            f"the chosen calibrator ({chosen.method}): log loss by that of the best on test rows",
            losses[chosen.method] / min(losses.values()),
            1.05,
        ),
    ]
    before, after = (reliability(p, y_test, bins=10) for p in (np.exp(log_softmax(test)), chosen(test)))
    picture = lines(
        {
            "before": [(b.confidence, b.accuracy) for b in before],
            f"after ({chosen.method})": [(b.confidence, b.accuracy) for b in after],
            "right": [(0.0, 0.0), (1.0, 1.0)],
        },
        title="Confidence and accuracy", x_label="confidence", y_label="accuracy",
    )  # fmt: skip
    head = ("calibrator", "ECE", "95 % interval", "debiased", "class-wise", "log loss", "Brier", "its reliability")
    return claims, table(head, rows), {"reliability": picture}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("overconfident", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
