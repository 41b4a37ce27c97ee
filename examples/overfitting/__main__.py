"""Polynomials that underfit and overfit, memorisation, and the double descent of wide models."""

import sys

import torch
from torch import Tensor

from examples.lab import Claim, above, below, equal, lines, run, spread, table
from wonderland import solvers

SEEDS = tuple(range(10))
TRUTH = torch.tensor([5.0, 1.2, -3.4 / 2, 5.6 / 6], dtype=torch.float64)  # D2L 3.6: 5 + 1.2 x - 3.4 x^2/2! + 5.6 x^3/3!


def draw(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def powers(x: Tensor, degree: int) -> Tensor:
    """Columns x, x^2 ... x^degree: (n) -> (n, degree)."""
    return torch.stack([x**k for k in range(1, degree + 1)], 1)


def polynomial(degree: int, rows: int, seed: int) -> tuple[float, float]:
    """Errors of a fitted polynomial on its own rows and on fresh ones; the noise has variance 0.01."""
    generator = draw(seed)
    x = torch.randn(rows + 1000, generator=generator, dtype=torch.float64).clamp(-2, 2)
    y = TRUTH[0] + powers(x, 3) @ TRUTH[1:] + 0.1 * torch.randn(len(x), generator=generator, dtype=torch.float64)
    fit = solvers.least_squares(powers(x[:rows], degree), y[:rows])
    error = (fit.predict(powers(x, degree)) - y).square()
    return error[:rows].mean().item(), error[rows:].mean().item()


def memory(rows: int, seed: int) -> tuple[float, float, float]:
    """A look-up table that predicts 0 for unseen inputs: its error on its rows, on fresh ones, and the error of predicting 0."""
    generator = draw(seed)
    x = torch.randn(2 * rows, generator=generator, dtype=torch.float64)
    y = TRUTH[0] + powers(x, 3) @ TRUTH[1:]
    known = dict(zip(x[:rows].tolist(), y[:rows].tolist(), strict=True))
    says = torch.tensor([known.get(value, 0.0) for value in x.tolist()], dtype=torch.float64)
    error = (says - y).square()
    return error[:rows].mean().item(), error[rows:].mean().item(), y[rows:].square().mean().item()


def wide(features: int, rows: int, seed: int, ridge: float = 0.0, inputs: int = 8) -> tuple[float, float]:
    """Errors of the minimum-norm least-squares fit on random ReLU features; targets are linear with noise."""
    generator = draw(seed)
    make = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    x, w = make(rows + 1000, inputs), make(inputs) / inputs**0.5
    y = x @ w + 0.3 * make(len(x))
    hidden = (x @ make(inputs, features) / inputs**0.5).relu()
    if ridge:
        gram = hidden[:rows].T @ hidden[:rows] + ridge * torch.eye(features, dtype=torch.float64)
        weights = torch.linalg.solve(gram, hidden[:rows].T @ y[:rows])
    else:
        # The minimum-norm solution, if there are several.
        weights = torch.linalg.pinv(hidden[:rows], rtol=1e-10) @ y[:rows]
    error = (hidden @ weights - y).square()
    return error[:rows].mean().item(), error[rows:].mean().item()


def middle(pairs: list[tuple[float, float]], k: int) -> float:
    """The median over seeds."""
    return torch.tensor([pair[k] for pair in pairs]).median().item()


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    degrees, rows = (1, 2, 3, 5, 8, 12, 15), 20
    fits = {d: [polynomial(d, rows, seed) for seed in SEEDS] for d in degrees}
    sizes, n = (2, 4, 8, 12, 20, 30, 36, 40, 44, 50, 70, 100, 200, 400, 1000), 40
    free = {m: [wide(m, n, seed) for seed in SEEDS] for m in sizes}
    tamed = {m: [wide(m, n, seed, ridge=2.0) for seed in SEEDS] for m in sizes}
    test = {m: middle(free[m], 1) for m in sizes}
    calm = {m: middle(tamed[m], 1) for m in sizes}
    first = min(test[m] for m in sizes if m < n // 2)
    small = min(calm[m] for m in sizes if m < n // 2)
    seen = [memory(100, seed) for seed in SEEDS]
    claims = [
        above("degree 1 fits its own rows worse than the noise (0.01) by a factor", middle(fits[1], 0) / 0.01, 10),
        below("degree 3, the true one: test error over that of the noise", middle(fits[3], 1) / 0.01, 1.6),
        above("degree 15: test error over training error", middle(fits[15], 1) / middle(fits[15], 0), 100),
        equal("the look-up table: error on its own rows", max(a for a, _, _ in seen), 0.0),
        equal("the look-up table equals predicting 0 on fresh rows", all(b == c for _, b, c in seen), True),
        below(f"{2 * n} features and more: training error", max(middle(free[m], 0) for m in sizes if m >= 2 * n), 1e-9),
        above(f"{n} features for {n} rows, the peak: over the best smaller model", test[n] / first, 5),
        below("1,000 features: over the peak", test[1000] / test[n], 0.1),
        below("1,000 features: over the best smaller model", test[1000] / first, 1),
        below(f"with a ridge there is no peak: {n} features over the best smaller model", calm[n] / small, 1),
    ]
    rows = [(d, *(spread([pair[k] for pair in fits[d]], 4) for k in (0, 1))) for d in degrees[:4]]
    report = table(("degree", "training error", "test error"), rows)
    report += "\n\n" + table(
        ("features", "training error", "test error", "with a ridge"),
        [(m, f"{middle(free[m], 0):.4f}", f"{test[m]:.4f}", f"{calm[m]:.4f}") for m in sizes],
    )
    pictures = {
        "polynomials": lines(
            {name: [(d, middle(fits[d], k)) for d in degrees] for k, name in enumerate(("training", "test"))},
            title=f"Polynomials on {rows} rows, median of {len(SEEDS)} seeds",
            x_label="degree",
            y_label="squared error",
            log_y=True,
        ),
        "double_descent": lines(
            {
                "test, smallest weights": [(m, test[m]) for m in sizes],
                "test, with a ridge": [(m, calm[m]) for m in sizes],
                "training": [(m, max(middle(free[m], 0), 1e-3)) for m in sizes],
            },
            title=f"Random features on {n} rows: the error descends twice (training errors below 0.001 at 0.001)",
            x_label="features",
            y_label="squared error",
            log_x=True,
            log_y=True,
        ),
    }
    return claims, report, pictures


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("overfitting", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
