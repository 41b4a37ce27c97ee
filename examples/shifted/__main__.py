"""Plant a covariate shift and a label shift, find them by tests, and correct the model."""

import sys

import numpy as np

from examples.lab import Claim, above, below, run, spread, table
from wonderland.solvers import logistic_regression
from wonderland.trust import (
    black_box_shift,
    classifier_test,
    column_shift,
    density_ratio,
    em_shift,
    log_softmax,
    mmd_test,
)


def covariate(seed: int) -> dict[str, float]:
    """A straight line fitted to a curve, used where old rows are rare: weights move it there (D2L 4.7)."""
    generator = np.random.default_rng(seed)
    old, new = generator.normal(0, 1, (600, 1)), generator.normal(1.5, 0.5, (600, 1))
    curve = lambda x: x[:, 0] ** 2 + 0.2 * generator.normal(size=len(x))  # noqa: E731
    y, truth = curve(old), curve(new)
    weights = density_ratio(old, new, old)

    def error(w: np.ndarray) -> float:
        root = np.sqrt(w)
        design = np.c_[old, np.ones(600)] * root[:, None]
        line = np.linalg.lstsq(design, y * root, rcond=None)[0]
        return float(np.mean((np.c_[new, np.ones(600)] @ line - truth) ** 2))

    return {
        "classifier": classifier_test(old, new, seed=seed).p_value, "mmd": mmd_test(old[:200], new[:200], seed=seed).p_value,
        "column": column_shift({"x": old[:, 0]}, {"x": new[:, 0]}, seed=seed)[0].corrected,
        "plain": error(np.ones(600)), "weighted": error(weights),
    }  # fmt: skip


def labels(seed: int) -> dict[str, float]:
    """Classes in equal shares in training, nine to one in use."""
    generator = np.random.default_rng(seed)

    def draw(share: float, rows: int) -> tuple[np.ndarray, np.ndarray]:
        y = (generator.random(rows) < share).astype(int)
        return generator.normal(size=(rows, 2)) + 1.2 * y[:, None], y

    (X, y), (held, y_held), (new, truth) = draw(0.5, 1000), draw(0.5, 1000), draw(0.1, 2000)
    fit = logistic_regression(X, y)

    def probabilities(x: np.ndarray) -> np.ndarray:
        return np.exp(log_softmax(np.c_[np.zeros(len(x)), fit.logits(x).numpy()]))

    p, q = probabilities(held), probabilities(new)
    box, em = black_box_shift(p, y_held, q), em_shift(p, y_held, q)
    return {
        "box": float(box.new[1]), "em": float(em.new[1]), "before": float((q.argmax(1) == truth).mean()),
        "after": float((em.correct(q).argmax(1) == truth).mean()),
    }  # fmt: skip


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    first, second = [covariate(seed) for seed in range(10)], [labels(seed) for seed in range(10)]

    def mean(runs: list[dict[str, float]], name: str) -> float:
        return float(np.mean([one[name] for one in runs]))

    claims = [
        *(below(f"covariate shift: largest p-value of the {name} test", max(one[name] for one in first), 0.01)
          for name in ("classifier", "mmd", "column")),
        above("covariate shift: error without weights by error with them", mean(first, "plain") / mean(first, "weighted"), 3),
        below("label shift: distance of the black-box share from 0.1", abs(mean(second, "box") - 0.1), 0.03),
        below("label shift: distance of the EM share from 0.1", abs(mean(second, "em") - 0.1), 0.03),
        above("label shift: points of accuracy gained", 100 * (mean(second, "after") - mean(second, "before")), 5),
    ]  # fmt: skip
    rows = [(name, spread([one[name] for one in first])) for name in ("plain", "weighted")]
    rows += [(name, spread([one[name] for one in second])) for name in ("box", "em", "before", "after")]
    return claims, table(("what", "measured"), rows, left=2), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("shifted", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
