"""Simple methods for the leaderboard of a table: a constant, a linear model, and boosting where scikit-learn is installed."""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor

from wonderland.core import mix, permutation
from wonderland.tasks.leaderboard import Baseline

MOST_ROWS = 100_000  # that a method is fitted to
MOST_ENTRIES = 40_000_000  # of the matrix of the linear model
MOST_LEVELS = 2000  # of a category that the linear model distinguishes; the rarest are pooled


def baselines(plan: Any) -> list[Baseline]:
    """A constant, a linear model and boosting, fitted to all rows that the run used: training, validation, calibration."""
    parts, task = plan.parts, plan.task
    rows = np.concatenate([parts.parts[name] for name in ("train", "validation", "calibration")])
    rows = np.sort(sampled(rows, MOST_ROWS, plan.seed))
    x, y = plan.examples.x, plan.examples.y
    if not isinstance(x, Tensor) or y is None or len(parts.test) < 2 or len(rows) < 2:
        return []
    numbers, levels = len(plan.encoder.numbers), [count for _, count in plan.encoder.categories]
    train, test, targets = x[rows].numpy(), x[parts.test].numpy(), y[rows]
    classes = None if task.classes is None else len(task.classes)
    fitted = [
        Baseline("majority" if classes else "mean", lambda: constant(targets, len(test), classes)),
        Baseline("linear model", lambda: linear(train, test, targets, classes, numbers, levels, plan.seed)),
    ]
    if importlib.util.find_spec("sklearn") is not None:
        boosted: Callable[[], ndarray] = lambda: boosting(train, test, targets, classes, numbers, levels)  # noqa: E731
        fitted.append(Baseline("boosting", boosted))
    return fitted


def sampled(rows: ndarray, most: int, seed: int) -> ndarray:
    """At most so many of the rows, the same for the same seed."""
    return rows if len(rows) <= most else rows[permutation(mix(seed, 7), 0, len(rows))[:most]]


def constant(y: ndarray, count: int, classes: int | None) -> ndarray:
    """The shares of the classes, or the mean, for every row."""
    if classes is None:
        return np.full(count, y.mean())
    shares = (np.bincount(y, minlength=classes) + 1e-9) / (len(y) + 1e-9 * classes)
    return np.tile(np.log(shares), (count, 1))


def linear(
    train: ndarray, test: ndarray, y: ndarray, classes: int | None, numbers: int, levels: list[int], seed: int
) -> ndarray:
    r"""Ridge regression or logistic regression of standardised numbers and one-hot categories, with a penalty of 1.

    .. math::
        \min_W \tfrac12 \lVert W \rVert^2 + \sum_i \ell(x_i W + b, y_i)
    """
    kept = [_kept_levels(train[:, numbers + i], count) for i, count in enumerate(levels)]
    width = numbers + sum(map(len, kept)) + 1
    chosen = np.sort(sampled(np.arange(len(train)), max(1000, MOST_ENTRIES // width), seed))
    center, scale = train[chosen, :numbers].mean(0), train[chosen, :numbers].std(0)
    scale[scale == 0] = 1

    def design(rows: ndarray) -> Tensor:
        blocks = [(rows[:, :numbers] - center) / scale]
        blocks += [(rows[:, numbers + i, None] == known[None]).astype(np.float32) for i, known in enumerate(kept)]
        return torch.from_numpy(np.concatenate(blocks, 1)).double()

    X, targets = design(train[chosen]), torch.as_tensor(y[chosen])
    if classes is None:
        mean, target_mean = X.mean(0), targets.double().mean()
        centred, gaps = X - mean, targets.double() - target_mean
        if centred.shape[1] <= len(centred):
            gram = centred.T @ centred
            gram.diagonal().add_(1.0)
            weights = torch.linalg.solve(gram, centred.T @ gaps)
        else:
            gram = centred @ centred.T
            gram.diagonal().add_(1.0)
            weights = centred.T @ torch.linalg.solve(gram, gaps)
        return ((design(test) - mean) @ weights + target_mean).numpy()
    weights = torch.zeros(X.shape[1], classes, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights, bias], max_iter=100, history_size=10, line_search_fn="strong_wolfe",
                                  tolerance_grad=1e-5 * len(X))  # fmt: skip

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(X @ weights + bias, targets, reduction="sum") + weights.square().sum() / 2
        loss.backward()
        return loss

    optimizer.step(closure)  # pyright: ignore[reportArgumentType]
    with torch.no_grad():
        return (design(test) @ weights + bias).log_softmax(1).numpy()


def _kept_levels(codes: ndarray, count: int) -> ndarray:
    """The codes of a category that occur, or the most frequent of them."""
    counts = np.bincount(codes.astype(np.int64), minlength=count)
    order = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
    return np.sort(order[counts[order] > 0]).astype(np.float32)


def boosting(
    train: ndarray, test: ndarray, y: ndarray, classes: int | None, numbers: int, levels: list[int]
) -> ndarray:
    """scikit-learn's HistGradientBoosting at its defaults; categories as such where they have at most 255 codes."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    options: dict[str, Any] = {"random_state": 0}
    categories = [numbers + i for i, count in enumerate(levels) if count <= 255]
    if categories:
        options["categorical_features"] = categories
    with threadpool_limits(torch.get_num_threads()):  # sums in another order would give other bits
        if classes is None:
            return HistGradientBoostingRegressor(**options).fit(train, y).predict(test)
        model = HistGradientBoostingClassifier(**options)
        if len(y) > 10_000 and np.bincount(y, minlength=classes).min() == 1:
            model.set_params(early_stopping=False)  # its own split needs two rows of each class
        model.fit(train, y)
        shares = np.full((len(test), classes), 1e-15)
        shares[:, np.asarray(model.classes_, np.int64)] = model.predict_proba(test)
        return np.log(np.maximum(shares / shares.sum(1, keepdims=True), 1e-15))
