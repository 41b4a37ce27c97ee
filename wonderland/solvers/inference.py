"""What a least-squares fit is worth: the variance of the noise, intervals of coefficients and of predictions."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, distributions

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, choice, level
from wonderland.probability.cumulative import quantile
from wonderland.solvers.data import append_one, rows
from wonderland.solvers.least_squares import LinearFit, least_squares


@dataclass(frozen=True)
class Intervals:
    """Estimates with their standard errors and the ends of their intervals, each (k,)."""

    estimate: Tensor
    error: Tensor
    low: Tensor
    high: Tensor


def noise_variance(X: Numbers, y: Numbers, *, bias: bool = True, unbiased: bool = False) -> float:
    r"""The variance of the noise around a least-squares fit.

    .. math::
        \sigma^{2*} = \frac1n \sum_i (y_i - w^{*\top} x_i - b^*)^2, \qquad
        s^2 = \frac{1}{n - c'} \sum_i (y_i - w^{*\top} x_i - b^*)^2

    The first is the most likely one, as in the book, and on average too small by (n - c')/n, where c' counts the fitted
    numbers, bias included; `unbiased` gives the second.

    Shapes: X (n, c), y (n,) -> one number. Book: Alice 4.1.3 (E.4.9).

    >>> round(noise_variance([[0.0], [1.0], [2.0]], [0.0, 3.0, 0.0]), 9)
    2.0
    >>> round(noise_variance([[0.0], [1.0], [2.0]], [0.0, 3.0, 0.0], unbiased=True), 9)
    6.0
    """
    found = rows("X", X)
    fit = least_squares(found, y, bias=bias)
    residual = torch.as_tensor(y, dtype=torch.float64) - fit.predict(found)
    return float(residual @ residual) / (_freedom(found, bias) if unbiased else len(found))


def coefficient_intervals(X: Numbers, y: Numbers, *, bias: bool = True, confidence: float = 0.95) -> Intervals:
    r"""Confidence intervals of the weights, the bias last, exact under Gaussian noise.

    .. math::
        w_j \in \hat w_j \pm t_{n - c'}^{(1 + \gamma)/2} \, s \sqrt{[(X^\top X)^{-1}]_{jj}}

    Shapes: X (n, c), y (n,) -> (c + 1,), or (c,) without bias. Book: Alice 4.1.3; D2L 22.7 (confidence intervals).

    >>> found = coefficient_intervals([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9])
    >>> torch.stack([found.low, found.high])
    tensor([[ 0.7166, -0.3953],
            [ 1.2034,  0.5153]], dtype=torch.float64)
    """
    found, fit, spread, quantum = _fitted(X, y, bias, confidence)
    design = append_one(found) if bias else found
    estimate = torch.cat([fit.weights, fit.weights.new_tensor([fit.bias])]) if bias else fit.weights
    return _around(estimate, spread * _root_quadratic(design, torch.eye(design.shape[1], dtype=torch.float64)), quantum)


def prediction_intervals(
    X: Numbers, y: Numbers, x_new: Numbers, *, bias: bool = True, confidence: float = 0.95, of: str = "target"
) -> Intervals:
    r"""Intervals around predictions: of the regression line ("mean"), or of a new noisy target ("target").

    .. math::
        \hat y \pm t_{n - c'}^{(1 + \gamma)/2} \, s \sqrt{\delta + x^\top (X^\top X)^{-1} x}, \qquad
        \delta = 0 \text{ for the mean, } 1 \text{ for a target}

    The second stays as wide as the noise however many rows there are.

    Shapes: X (n, c), y (n,), x_new (k, c) -> (k,). Book: Alice 4.1.3; D2L 22.7.

    >>> found = prediction_intervals([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9], [[1.5]], of="mean")
    >>> found.estimate, found.high - found.low
    (tensor([1.5000], dtype=torch.float64), tensor([0.5442], dtype=torch.float64))
    """
    choice("of", of, ("target", "mean"))
    found, fit, spread, quantum = _fitted(X, y, bias, confidence)
    new = rows("x_new", x_new, found.shape[1])
    design, at = (append_one(found), append_one(new)) if bias else (found, new)
    root = (_root_quadratic(design, at).square() + (of == "target")).sqrt()
    return _around(fit.predict(new), spread * root, quantum)


def _fitted(X: Numbers, y: Numbers, bias: bool, confidence: float) -> tuple[Tensor, LinearFit, float, float]:
    found = rows("X", X)
    spread = noise_variance(found, y, bias=bias, unbiased=True) ** 0.5
    quantum = _student(_freedom(found, bias), (1 + level("confidence", confidence)) / 2)
    return found, least_squares(found, y, bias=bias), spread, quantum


@lru_cache(maxsize=256)
def _student(freedom: int, share: float) -> float:
    return float(quantile(distributions.StudentT(torch.tensor(float(freedom), dtype=torch.float64)), share))


def _freedom(X: Tensor, bias: bool) -> int:
    fitted = X.shape[1] + bias
    if len(X) <= fitted:
        raise WonderlandError(
            f"`X` has {len(X)} rows for {fitted} fitted numbers: the fit is exact, and leaves nothing to estimate noise from."
        )
    return len(X) - fitted


def _root_quadratic(design: Tensor, at: Tensor) -> Tensor:
    """The square root of x'(D'D)^-1 x for each row x: the length of R^-T x, where D = QR."""
    size = design.norm(dim=0)
    r = torch.linalg.qr(design / size).R
    return torch.linalg.solve_triangular(r.T, (at / size).T, upper=False).norm(dim=0)


def _around(estimate: Tensor, error: Tensor, quantum: float) -> Intervals:
    return Intervals(estimate, error, estimate - quantum * error, estimate + quantum * error)
