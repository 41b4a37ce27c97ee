"""Inference for least squares: the variance of the noise, intervals of coefficients and of predictions."""

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

    The first is the maximum-likelihood estimate, as in the book, too small on average by the factor (n - c')/n, where c' is the
    number of coefficients, bias included; `unbiased` gives the second.

    Shapes: X (n, c), y (n,) -> one number. Book: Alice 4.1.3 (E.4.9).

    >>> round(noise_variance([[0.0], [1.0], [2.0]], [0.0, 3.0, 0.0]), 9)
    2.0
    >>> round(noise_variance([[0.0], [1.0], [2.0]], [0.0, 3.0, 0.0], unbiased=True), 9)
    6.0
    """
    matrix = rows("X", X)
    fit = least_squares(matrix, y, bias=bias)
    residual = torch.as_tensor(y, dtype=torch.float64) - fit.predict(matrix)
    return float(residual @ residual) / (_degrees_of_freedom(matrix, bias) if unbiased else len(matrix))


def coefficient_intervals(X: Numbers, y: Numbers, *, bias: bool = True, confidence: float = 0.95) -> Intervals:
    r"""Confidence intervals of the weights, the bias last, exact under Gaussian noise.

    .. math::
        w_j \in \hat w_j \pm t_{n - c'}^{(1 + \gamma)/2} \, s \sqrt{[(X^\top X)^{-1}]_{jj}}

    Shapes: X (n, c), y (n,) -> (c + 1,), or (c,) without bias. Book: Alice 4.1.3; D2L 22.7 (confidence intervals).

    >>> intervals = coefficient_intervals([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9])
    >>> torch.stack([intervals.low, intervals.high])
    tensor([[ 0.7166, -0.3953],
            [ 1.2034,  0.5153]], dtype=torch.float64)
    """
    matrix, fit, deviation, t_quantile = _fitted(X, y, bias, confidence)
    design = append_one(matrix) if bias else matrix
    estimate = torch.cat([fit.weights, fit.weights.new_tensor([fit.bias])]) if bias else fit.weights
    error = deviation * _standard_errors(design, torch.eye(design.shape[1], dtype=torch.float64))
    return _intervals(estimate, error, t_quantile)


def prediction_intervals(
    X: Numbers, y: Numbers, x_new: Numbers, *, bias: bool = True, confidence: float = 0.95, of: str = "target"
) -> Intervals:
    r"""Intervals around predictions: of the regression line ("mean"), or of a new noisy target ("target").

    .. math::
        \hat y \pm t_{n - c'}^{(1 + \gamma)/2} \, s \sqrt{\delta + x^\top (X^\top X)^{-1} x}, \qquad
        \delta = 0 \text{ for the mean, } 1 \text{ for a target}

    The second never becomes narrower than the noise, however many rows there are.

    Shapes: X (n, c), y (n,), x_new (k, c) -> (k,). Book: Alice 4.1.3; D2L 22.7.

    >>> intervals = prediction_intervals([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9], [[1.5]], of="mean")
    >>> intervals.estimate, intervals.high - intervals.low
    (tensor([1.5000], dtype=torch.float64), tensor([0.5442], dtype=torch.float64))
    """
    choice("of", of, ("target", "mean"))
    matrix, fit, deviation, t_quantile = _fitted(X, y, bias, confidence)
    new = rows("x_new", x_new, matrix.shape[1])
    design, points = (append_one(matrix), append_one(new)) if bias else (matrix, new)
    error = deviation * (_standard_errors(design, points).square() + (of == "target")).sqrt()
    return _intervals(fit.predict(new), error, t_quantile)


def _fitted(X: Numbers, y: Numbers, bias: bool, confidence: float) -> tuple[Tensor, LinearFit, float, float]:
    """The rows, their fit, the standard deviation of the noise, and the quantile of Student's t for a confidence."""
    matrix = rows("X", X)
    deviation = noise_variance(matrix, y, bias=bias, unbiased=True) ** 0.5
    t_quantile = _student(_degrees_of_freedom(matrix, bias), (1 + level("confidence", confidence)) / 2)
    return matrix, least_squares(matrix, y, bias=bias), deviation, t_quantile


@lru_cache(maxsize=256)
def _student(degrees: int, probability: float) -> float:
    return float(quantile(distributions.StudentT(torch.tensor(float(degrees), dtype=torch.float64)), probability))


def _degrees_of_freedom(X: Tensor, bias: bool) -> int:
    coefficients = X.shape[1] + bias
    if len(X) <= coefficients:
        raise WonderlandError(
            f"`X` has {len(X)} rows for {coefficients} coefficients: the fit is exact, and there are no residuals to estimate "
            "the noise from."
        )
    return len(X) - coefficients


def _standard_errors(design: Tensor, points: Tensor) -> Tensor:
    """The square root of x'(D'D)^-1 x for each row x of points: the norm of R^-T x, where D = QR."""
    size = design.norm(dim=0)
    r = torch.linalg.qr(design / size).R
    return torch.linalg.solve_triangular(r.T, (points / size).T, upper=False).norm(dim=0)


def _intervals(estimate: Tensor, error: Tensor, t_quantile: float) -> Intervals:
    return Intervals(estimate, error, estimate - t_quantile * error, estimate + t_quantile * error)
