"""Out of distribution: scores that are high for rows unlike those the model learned from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.arrays import class_labels, class_logits, finite, same_rows
from wonderland.trust.conformal_quantile import conformal_quantile
from wonderland.trust.temperature import log_softmax
from wonderland.trust.two_sample import auc


def energy_scores(logits: Any, *, temperature: float = 1.0) -> ndarray:
    r"""The free energy of a classifier: :math:`-T \log \sum_k e^{z_k / T}`. Shapes: (n, c) -> (n,). Paper: Liu et al., 2020.

    >>> energy_scores([[0.0, 0.0], [9.0, 0.0]]).round(2)
    array([-0.69, -9.  ])
    """
    z = class_logits(logits) / temperature
    top = z.max(1)
    return -temperature * (top + np.log(np.exp(z - top[:, None]).sum(1)))


def confidence_scores(logits: Any) -> ndarray:
    """One minus the largest probability: the baseline. Shapes: (n, c) -> (n,). Paper: Hendrycks and Gimpel, 2017.

    >>> confidence_scores([[0.0, 0.0]])
    array([0.5])
    """
    return 1 - np.exp(log_softmax(class_logits(logits))).max(1)


@dataclass(frozen=True)
class Mahalanobis:
    """Class means and a shared precision matrix. Shapes: means (c, d), precision (d, d)."""

    means: ndarray
    precision: ndarray

    def scores(self, features: Any) -> ndarray:
        """The squared distance to the nearest class mean. Shapes: (n, d) -> (n,)."""
        rows = finite("features", features, 2)
        if rows.shape[1] != self.means.shape[1]:
            raise WonderlandError(f"`features` has {rows.shape[1]} columns where the means have {self.means.shape[1]}.")
        apart = rows[:, None] - self.means
        return np.einsum("ncd,de,nce->nc", apart, self.precision, apart).min(1)


def mahalanobis(features: Any, y: Any, *, shrinkage: float = 1e-3) -> Mahalanobis:
    r"""Gaussians of one covariance around the features of each class.

    .. math:: s(x) = \min_k (h - \mu_k)^\top \Sigma^{-1} (h - \mu_k)

    The covariance is drawn towards a multiple of the identity by `shrinkage`, so that constant features do no harm.
    Shapes: features (n, d), y (n,). Paper: Lee et al., 2018.

    >>> fit = mahalanobis([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1], shrinkage=0.0)
    >>> fit.scores([[1.0], [6.0]])
    array([ 0., 25.])
    """
    rows = finite("features", features, 2)
    labels = class_labels(y, int(np.max(y)) + 1 if np.size(y) else 1)
    same_rows("features", rows, "y", labels)
    present = np.unique(labels)
    means = np.stack([rows[labels == k].mean(0) for k in present])
    inside = rows - means[np.searchsorted(present, labels)]
    covariance = inside.T @ inside / len(rows)
    size = np.trace(covariance) / len(covariance)
    covariance = (1 - shrinkage) * covariance + (shrinkage * size + 1e-12) * np.eye(len(covariance))
    return Mahalanobis(means, np.linalg.pinv(covariance, hermitian=True))


def neighbour_scores(train: Any, features: Any, *, k: int = 10, normalise: bool = True) -> ndarray:
    """The distance to the k-th nearest training row, on features of length 1. Shapes: (n, d), (m, d) -> (m,).

    Paper: Sun et al., 2022.

    >>> neighbour_scores([[1.0, 0.0], [1.0, 0.1]], [[1.0, 0.0], [0.0, 1.0]], k=1).round(1)
    array([0. , 1.3])
    """
    old, new = finite("train", train, 2), finite("features", features, 2)
    if old.shape[1] != new.shape[1]:
        raise WonderlandError(f"`features` has {new.shape[1]} columns where `train` has {old.shape[1]}.")
    if not 1 <= k <= len(old):
        raise WonderlandError(f"`k` has to lie between 1 and the {len(old)} training rows, not at {k}.")
    if normalise:
        old, new = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (old, new))
    distances = np.empty(len(new))
    squares = (old**2).sum(1)
    for start in range(0, len(new), 1024):
        part = new[start : start + 1024]
        distance = np.maximum((part**2).sum(1)[:, None] + squares - 2 * part @ old.T, 0)
        distances[start : start + 1024] = np.sqrt(np.partition(distance, k - 1, 1)[:, k - 1])
    return distances


@dataclass(frozen=True)
class Detection:
    """How well scores tell known from strange rows: AUROC, and the share of strange rows let in when 95 % of known are."""

    auroc: float
    false_in_95: float


def detection(known: Any, strange: Any) -> Detection:
    """Judge scores on rows that are known and rows that are strange. Shapes: (n,), (m,).

    >>> detection([0.0, 1.0], [2.0, 3.0])
    Detection(auroc=1.0, false_in_95=0.0)
    """
    a, b = finite("known", known, 1), finite("strange", strange, 1)
    return Detection(auc(a, b), float((b <= np.quantile(a, 0.95, method="higher")).mean()))


def strangeness(calibration: Any, scores: Any) -> ndarray:
    r"""Conformal p-values of scores: the chance of one as high among known rows, from held-out known rows.

    .. math:: p(x) = \frac{1 + \#\{i : s_i \ge s(x)\}}{n + 1}

    Rows with p below 0.01 are flagged, and about 1 % of known rows with them. Shapes: (n,), (m,) -> (m,).
    Paper: Bates et al., 2023.

    >>> strangeness(np.arange(99.0), [200.0, 49.0])
    array([0.01, 0.51])
    """
    old, new = np.sort(finite("calibration", calibration, 1)), finite("scores", scores, 1)
    return (1 + len(old) - np.searchsorted(old, new, "left")) / (len(old) + 1)


def strange_limit(calibration: Any, level: float = 0.99) -> float:
    """The score that known rows stay below in the share `level`. Shapes: (n,).

    >>> strange_limit(np.arange(1, 200), 0.9)
    180.0
    """
    return conformal_quantile(finite("calibration", calibration, 1), level)
