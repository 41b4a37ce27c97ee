"""Calibrators: maps from a classifier's logits to probabilities that come true, fitted on rows it did not learn from."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.arrays import class_labels, class_logits, same_rows
from wonderland.trust.isotonic import isotonic_regression
from wonderland.trust.temperature import fit_temperature, log_softmax


@dataclass(frozen=True)
class Calibrator:
    """A fitted calibrator: its method and the arrays that define it, which JSON can hold.

    >>> Calibrator("temperature", {"temperature": np.array(2.0)})(np.array([[2.0, 0.0]])).round(3)
    array([[0.731, 0.269]])
    """

    method: str
    arrays: dict[str, ndarray]

    def __call__(self, logits: Any) -> ndarray:
        """Calibrated probabilities. Shapes: (n, c) -> (n, c)."""
        return APPLY[self.method](self.arrays, class_logits(logits))

    def to_json(self) -> dict[str, Any]:
        """As lists of numbers."""
        return {"method": self.method, "arrays": {name: array.tolist() for name, array in self.arrays.items()}}

    @staticmethod
    def from_json(value: Any) -> "Calibrator":
        """From `to_json`; anything else is refused."""
        try:
            arrays = {str(name): np.asarray(array, np.float64) for name, array in value["arrays"].items()}
            if value["method"] not in APPLY or not all(np.isfinite(array).all() for array in arrays.values()):
                raise ValueError
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise WonderlandError("The calibrator cannot be read: the file is damaged.") from error
        return Calibrator(value["method"], arrays)


def _data(logits: Any, y: Any) -> tuple[ndarray, ndarray]:
    array = class_logits(logits)
    labels = class_labels(y, array.shape[1])
    same_rows("logits", array, "y", labels)
    return array, labels


def identity_scaling(logits: Any, y: Any) -> Calibrator:
    """No calibration at all: softmax of the logits, the one to beat."""
    _data(logits, y)
    return Calibrator("none", {})


def temperature_scaling(logits: Any, y: Any) -> Calibrator:
    r"""One temperature for all classes: :math:`\mathrm{softmax}(z / T)`. Paper: Guo et al., 2017.

    >>> logits = 3 * np.log(np.array([[0.8, 0.2]] * 10_000))
    >>> fit = temperature_scaling(logits, [0] * 8_000 + [1] * 2_000)
    >>> float(fit.arrays["temperature"].round(2))
    3.0
    """
    array, labels = _data(logits, y)
    return Calibrator("temperature", {"temperature": np.array(fit_temperature(array, labels))})


def vector_scaling(logits: Any, y: Any, *, ridge: float = 1.0) -> Calibrator:
    r"""A scale and a shift for each class.

    .. math:: \min_{w, b} -\sum_i \log \mathrm{softmax}(w \odot z_i + b)_{y_i}
              + \tfrac{\lambda}{2} \|w - \tfrac1T\|^2 + \tfrac{\lambda}{2} \|b\|^2

    The penalty draws towards temperature scaling, so that a class without calibration rows keeps a finite answer.
    Paper: Guo et al., 2017.

    >>> logits = np.log(np.array([[0.5, 0.5]] * 1000))
    >>> vector_scaling(logits, [0] * 800 + [1] * 200)(logits[:1]).round(2)
    array([[0.8, 0.2]])
    """
    array, labels = _data(logits, y)
    return _affine("vector", array, labels, _strength(ridge), math.inf)


def matrix_scaling(logits: Any, y: Any, *, ridge: float = 1.0, off_diagonal: float = 10.0) -> Calibrator:
    r"""A full affine map of the logits, with off-diagonal and intercept regularisation.

    .. math:: \min_{W, b} -\sum_i \log \mathrm{softmax}(W z_i + b)_{y_i} + \tfrac{\lambda}{2} \|\mathrm{diag}\, W - \tfrac1T\|^2
              + \tfrac{\lambda}{2} \|b\|^2 + \tfrac{\mu}{2} \sum_{j \ne k} W_{jk}^2

    Papers: Guo et al., 2017; Kull et al., 2019 (ODIR).

    >>> generator = np.random.default_rng(0)
    >>> logits = generator.normal(size=(500, 3))
    >>> matrix_scaling(logits, logits.argmax(1)).arrays["weights"].shape
    (3, 3)
    """
    array, labels = _data(logits, y)
    return _affine("matrix", array, labels, _strength(ridge), _strength(off_diagonal))


def _strength(ridge: float) -> float:
    if not (isinstance(ridge, int | float) and math.isfinite(ridge) and ridge > 0):
        raise WonderlandError(f"The strength of a penalty has to be a positive number, not {ridge}.")
    return float(ridge)


def _affine(method: str, logits: ndarray, y: ndarray, ridge: float, off_diagonal: float) -> Calibrator:
    classes = logits.shape[1]
    # Subtracting the mean changes no softmax, and makes the answer independent of it.
    z = torch.from_numpy(logits - logits.mean(1, keepdims=True))
    target = torch.from_numpy(y)
    start = torch.full((classes,), 1 / fit_temperature(logits, y), dtype=torch.float64)
    scale, shift = start.clone().requires_grad_(), torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    parameters = [scale, shift]
    mixing = torch.zeros(classes, classes, dtype=torch.float64, requires_grad=method == "matrix")
    off = 1 - torch.eye(classes, dtype=torch.float64)
    if method == "matrix":
        parameters.append(mixing)
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=500, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        outputs = z * scale + shift
        penalty = ridge / 2 * ((scale - start).square().sum() + shift.square().sum())
        if method == "matrix":
            outputs = outputs + z @ (mixing * off).T
            penalty = penalty + off_diagonal / 2 * (mixing * off).square().sum()
        value = (torch.nn.functional.cross_entropy(outputs, target, reduction="sum") + penalty) / len(z)
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    weights = torch.diag(scale.detach()) + mixing.detach() * off
    return Calibrator(method, {"weights": weights.numpy(), "bias": shift.detach().numpy()})


def log_odds(logits: ndarray) -> ndarray:
    """Log-odds of each class against the others. Shapes: (n, c) -> (n, c)."""
    from wonderland.trust.conformal import misfit

    return -misfit(logits)


def _one_against_rest(logits: ndarray, y: ndarray, fit: Callable[[ndarray, ndarray], ndarray]) -> ndarray:
    """Parameters of a binary calibrator for each class; two classes share one, of the second. Shapes: -> (c or 1, k)."""
    odds = log_odds(logits)
    classes = [1] if logits.shape[1] == 2 else range(logits.shape[1])
    return np.stack([fit(odds[:, k], (y == k).astype(np.float64)) for k in classes])


def _together(chances: ndarray) -> ndarray:
    """Chances of one class against the rest as probabilities of all. Shapes: (n, c) or (n, 1) -> (n, c)."""
    if chances.shape[1] == 1:
        return np.concatenate([1 - chances, chances], 1)
    total = chances.sum(1, keepdims=True)
    return np.where(total > 0, chances / np.where(total > 0, total, 1), 1 / chances.shape[1])


def platt_targets(y: ndarray) -> ndarray:
    """Platt's targets: with n rows of a class, (n + 1) / (n + 2) for it and 1 / (n + 2) against it. Shapes: (n,) -> (n,)."""
    positive = y.sum()
    negative = len(y) - positive
    return np.where(y > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))


def fit_logistic(features: ndarray, targets: ndarray, *, ridge: float = 1e-10) -> ndarray:
    """Weights of a logistic regression on soft targets, by Newton's method. Shapes: (n, k), (n,) -> (k,)."""
    weights = np.zeros(features.shape[1])

    def loss(w: ndarray) -> float:
        z = features @ w
        return float(np.sum(np.logaddexp(0, z) - targets * z) + ridge / 2 * w @ w)

    value = loss(weights)
    for _ in range(200):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -700, 700)))
        gradient = features.T @ (chance - targets) + ridge * weights
        curvature = (features.T * (chance * (1 - chance))) @ features + (ridge + 1e-12) * np.eye(len(weights))
        move = -np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        if np.abs(gradient).max() < 1e-12 * len(features) or np.abs(features @ move).max() < 1e-12:
            break
        share = 1.0
        while (tried := loss(weights + share * move)) > value and share > 1e-10:
            share /= 2
        if share <= 1e-10:
            break
        weights, value = weights + share * move, tried
    return weights


def platt_scaling(logits: Any, y: Any) -> Calibrator:
    r"""A logistic curve on the log-odds of each class: :math:`\sigma(a s_k + b)`, normalised over classes.

    The targets are Platt's, so that rows of one class alone give a finite answer. Paper: Platt, 1999.

    >>> logits = np.log(np.array([[0.5, 0.5]] * 100 + [[0.2, 0.8]] * 100))
    >>> y = [0] * 50 + [1] * 50 + [0] * 20 + [1] * 80
    >>> platt_scaling(logits, y)(logits[[0, 100]]).round(2)
    array([[0.5, 0.5],
           [0.2, 0.8]])
    """
    array, labels = _data(logits, y)

    def fit(odds: ndarray, true: ndarray) -> ndarray:
        return fit_logistic(np.stack([odds, np.ones_like(odds)], 1), platt_targets(true))

    return Calibrator("platt", {"weights": _one_against_rest(array, labels, fit)})


def beta_scaling(logits: Any, y: Any) -> Calibrator:
    r"""The ratio of two beta densities as a map of each class's probability, normalised over classes.

    .. math:: p \mapsto \sigma\bigl(a \log p - b \log(1 - p) + c\bigr), \qquad a, b \ge 0

    The identity is among its curves (a = b = 1, c = 0), which Platt's on probabilities are not. Paper: Kull et al., 2017.

    >>> logits = np.log(np.array([[0.5, 0.5]] * 100 + [[0.2, 0.8]] * 100))
    >>> y = [0] * 50 + [1] * 50 + [0] * 20 + [1] * 80
    >>> beta_scaling(logits, y)(logits[[0, 100]]).round(2)
    array([[0.5, 0.5],
           [0.2, 0.8]])
    """
    array, labels = _data(logits, y)

    def fit(odds: ndarray, true: ndarray) -> ndarray:
        targets = platt_targets(true)
        features = _beta_features(odds)
        for used in ([0, 1, 2], [0, 2], [1, 2], [2]):
            weights = np.zeros(3)
            weights[used] = fit_logistic(features[:, used], targets, ridge=1e-6)
            if weights[:2].min() >= 0:
                return weights
        raise AssertionError

    return Calibrator("beta", {"weights": _one_against_rest(array, labels, fit)})


def _beta_features(odds: ndarray) -> ndarray:
    return np.stack([-np.logaddexp(0, -odds), np.logaddexp(0, odds), np.ones_like(odds)], -1)


def isotonic_scaling(logits: Any, y: Any) -> Calibrator:
    """A rising staircase on the log-odds of each class, normalised over classes.

    Steps stay within 1 / (n + 2) of 0 and 1: that every row of a step was right does not make the next one certain.
    Paper: Zadrozny and Elkan, 2002.

    >>> logits = np.log(np.array([[0.5, 0.5]] * 100 + [[0.2, 0.8]] * 100))
    >>> y = [0] * 60 + [1] * 40 + [0] * 10 + [1] * 90
    >>> isotonic_scaling(logits, y)(logits[[0, 100]]).round(2)
    array([[0.6, 0.4],
           [0.1, 0.9]])
    """
    array, labels = _data(logits, y)
    odds = log_odds(array)
    arrays: dict[str, ndarray] = {}
    for k in [1] if array.shape[1] == 2 else range(array.shape[1]):
        knots, values = isotonic_regression(odds[:, k], (labels == k).astype(np.float64))
        inner = np.ones(len(knots), bool)
        inner[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
        edge = 1 / (len(labels) + 2)
        arrays[f"knots{k}"], arrays[f"values{k}"] = knots[inner], np.clip(values[inner], edge, 1 - edge)
    return Calibrator("isotonic", arrays)


def _apply_platt(arrays: dict[str, ndarray], logits: ndarray) -> ndarray:
    odds = log_odds(logits)[:, -len(arrays["weights"]) :]
    return _together(_sigmoid(odds * arrays["weights"][:, 0] + arrays["weights"][:, 1]))


def _apply_beta(arrays: dict[str, ndarray], logits: ndarray) -> ndarray:
    odds = log_odds(logits)[:, -len(arrays["weights"]) :]
    return _together(_sigmoid((_beta_features(odds) * arrays["weights"]).sum(-1)))


def _apply_isotonic(arrays: dict[str, ndarray], logits: ndarray) -> ndarray:
    odds = log_odds(logits)
    classes = [int(name.removeprefix("knots")) for name in arrays if name.startswith("knots")]
    return _together(np.stack([np.interp(odds[:, k], arrays[f"knots{k}"], arrays[f"values{k}"]) for k in classes], 1))


def _sigmoid(x: ndarray) -> ndarray:
    return np.exp(-np.logaddexp(0, -x))


def _apply_affine(arrays: dict[str, ndarray], logits: ndarray) -> ndarray:
    centred = logits - logits.mean(1, keepdims=True)
    return np.exp(log_softmax(centred @ arrays["weights"].T + arrays["bias"]))


APPLY: dict[str, Callable[[dict[str, ndarray], ndarray], ndarray]] = {
    "none": lambda arrays, logits: np.exp(log_softmax(logits)),
    "temperature": lambda arrays, logits: np.exp(log_softmax(logits / arrays["temperature"])),
    "vector": _apply_affine,
    "matrix": _apply_affine,
    "platt": _apply_platt,
    "beta": _apply_beta,
    "isotonic": _apply_isotonic,
}
CALIBRATORS: dict[str, Callable[[Any, Any], Calibrator]] = {
    "none": identity_scaling,
    "temperature": temperature_scaling,
    "vector": vector_scaling,
    "matrix": matrix_scaling,
    "platt": platt_scaling,
    "beta": beta_scaling,
    "isotonic": isotonic_scaling,
}
