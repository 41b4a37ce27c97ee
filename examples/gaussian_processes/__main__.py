"""Fit the books' Gaussian processes and compare what is learned with what they print."""

import math
import sys

import numpy as np
import torch

from examples.lab import Claim, about, lines, run, spread, table
from wonderland.core import need
from wonderland.probability.gaussian_process import RBF, GaussianProcess, Linear, laplace_classifier


def d2l(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """D2L 18.2: fifty points of sin x + sin(4x) / 2 on [0, 5], noise of deviation 0.25."""
    generator = np.random.default_rng(seed)
    x = np.linspace(0, 5, 50)
    return x, np.sin(x) + 0.5 * np.sin(4 * x) + 0.25 * generator.normal(size=50)


def notebook(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """GPyTorch's simple regression: a hundred points of sin 2πx, noise of variance 0.04."""
    generator = np.random.default_rng(seed)
    x = np.linspace(0, 1, 100)
    return x, np.sin(2 * math.pi * x) + 0.2 * generator.normal(size=100)


def printed(seeds: int = 20) -> tuple[list[Claim], list[tuple[str, ...]]]:
    """H39 and H40: what is printed is one draw, so it has to lie within the spread of several."""
    rows, claims = [], []
    scales, noises = [], []
    for seed in range(seeds):
        posterior = GaussianProcess(RBF(0.5), 0.1).fit(*d2l(seed), standardise=False)
        # What D2L calls ls stands in exp(-d² / (2 ls)): it is the square of the length scale.
        scales.append(float(posterior.process.kernel.values["length_scale"]) ** 2)
        noises.append(math.sqrt(posterior.process.noise))
    rows.append(("H39 length scale, squared", "0.299", spread(scales)))
    rows.append(("H39 noise, deviation", "0.24", spread(noises)))
    claims.append(
        about(
            "H39: mean squared length scale against D2L's 0.299",
            float(np.mean(scales)),
            0.299,
            3 * float(np.std(scales)),
        )
    )
    claims.append(about("H39: mean noise against D2L's 0.24", float(np.mean(noises)), 0.24, 3 * float(np.std(noises))))
    scales, noises, losses = [], [], []
    for seed in range(seeds):
        x, y = notebook(seed)
        posterior = GaussianProcess(1.0 * RBF(0.3), 0.05).fit(x, y, standardise=False)
        scales.append(float(posterior.process.kernel.second.values["length_scale"]))  # type: ignore[attr-defined]
        noises.append(posterior.process.noise)
        losses.append(-posterior.evidence / len(y))
    for name, wanted, values in (
        ("length scale", 0.269, scales),
        ("noise, variance", 0.043, noises),
        ("loss a row", 0.032, losses),
    ):
        rows.append((f"H40 {name}", f"{wanted}", spread(values)))
        claims.append(
            about(f"H40: mean {name} against GPyTorch's", float(np.mean(values)), wanted, 3 * float(np.std(values)))
        )
    return claims, rows


def documented() -> tuple[list[Claim], list[tuple[str, ...]]]:
    """H41 and H42: scikit-learn's own examples."""
    datasets = need("sklearn.datasets", extra="datasets", why="for scikit-learn's examples")
    X, y = datasets.make_friedman2(n_samples=500, noise=0, random_state=0)
    posterior = GaussianProcess(Linear(), 1.0).fit(X, y, standardise=False)
    mean, variance = posterior.predict(X[:2], noise=True)
    residual = y - posterior.predict(X)[0].numpy()
    score = 1 - residual @ residual / ((y - y.mean()) ** 2).sum()
    claims = [
        about("H41: R² of a linear kernel on friedman2", float(score), 0.3680, 1e-3),
        about("H41: first mean", float(mean[0]), 653.0, 0.2),
        about("H41: second mean", float(mean[1]), 592.1, 0.2),
        about("H41: deviation", float(variance[0].sqrt()), 316.6, 0.2),
    ]
    X, y = datasets.load_iris(return_X_y=True)
    model = laplace_classifier(1.0 * RBF(1.0), X, y)
    first = model.probabilities(X[:1])[0].tolist()
    claims.append(about("H42: accuracy on iris", float((model.predict(X).numpy() == y).mean()), 0.98667, 1e-4))
    claims += [
        about(f"H42: first row, class {k}", first[k], wanted, 2e-3) for k, wanted in enumerate((0.8355, 0.0323, 0.1322))
    ]
    rows = [
        ("H41 R²", "0.3680", f"{score:.4f}"),
        ("H42 first row", "0.8355 0.0323 0.1322", " ".join(f"{p:.4f}" for p in first)),
    ]
    return claims, rows


def picture() -> str:
    """The function, the mean and the band of D2L's example."""
    x, y = d2l(0)
    posterior = GaussianProcess(RBF(0.5), 0.1).fit(x, y, standardise=False)
    places = torch.linspace(-1, 6, 141, dtype=torch.float64)
    mean, _ = posterior.predict(places)
    low, high = posterior.band(places, 0.95)
    at = places.tolist()
    return lines(
        {
            "mean": list(zip(at, mean.tolist(), strict=True)),
            "lower end of 95 %": list(zip(at, low.tolist(), strict=True)),
            "upper end of 95 %": list(zip(at, high.tolist(), strict=True)),
        },
        marks={"rows": list(zip(x.tolist(), y.tolist(), strict=True))},
        title="A Gaussian process on fifty rows",
        x_label="x",
    )


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    claims, rows = printed()
    more, others = documented()
    return claims + more, table(("what", "printed", "measured"), [*rows, *others], left=3), {"band": picture()}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("gaussian_processes", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
