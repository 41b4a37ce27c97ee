"""Linear models of sparse rows: softmax regression and ridge regression by a quasi-Newton method."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


class SparseMatrix:
    """A sparse matrix (n, f) by rows and by columns, for products with dense ones from both sides.

    >>> rows = SparseMatrix(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1]), torch.tensor([1.0, 2.0, 3.0]), 2)
    >>> rows.times(torch.eye(2)).tolist(), rows.transposed_times(torch.ones(2, 1)).tolist()
    ([[1.0, 2.0], [0.0, 3.0]], [[1.0], [5.0]])
    """

    def __init__(self, starts: Tensor, columns: Tensor, values: Tensor, width: int):
        self.starts, self.columns, self.values, self.width = starts[:-1], columns, values, width
        lengths = starts[1:] - starts[:-1]
        row = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        order = torch.argsort(columns, stable=True)
        self.by_column = row[order], values[order]
        count = torch.bincount(columns, minlength=width)
        self.column_starts = count.cumsum(0) - count

    def times(self, weights: Tensor) -> Tensor:
        """X W. Shapes: (f, c) -> (n, c)."""
        return _bags(self.columns, weights, self.starts, self.values)

    def transposed_times(self, y: Tensor) -> Tensor:
        """X' Y. Shapes: (n, c) -> (f, c)."""
        row, values = self.by_column
        return _bags(row, y, self.column_starts, values)


class DenseMatrix:
    """A matrix (n, f) of numbers with the products of `SparseMatrix`."""

    def __init__(self, values: Tensor):
        self.values, self.width = values, values.shape[1]

    def times(self, weights: Tensor) -> Tensor:
        """X W. Shapes: (f, c) -> (n, c)."""
        return self.values @ weights

    def transposed_times(self, y: Tensor) -> Tensor:
        """X' Y. Shapes: (n, c) -> (f, c)."""
        return self.values.T @ y


def _bags(index: Tensor, table: Tensor, starts: Tensor, values: Tensor) -> Tensor:
    if not len(index):
        return table.new_zeros(len(starts), table.shape[1])
    return F.embedding_bag(index, table, starts, mode="sum", per_sample_weights=values)


def lbfgs(function: Callable[[Tensor], tuple[float, Tensor]], start: Tensor, *, steps: int = 100, memory: int = 10,
          tolerance: float = 1e-4) -> tuple[Tensor, int]:  # fmt: skip
    r"""The limited-memory BFGS method with a backtracking line search.

    .. math:: \theta \leftarrow \theta - \alpha H \nabla L(\theta)

    H approximates the inverse Hessian from the last `memory` steps and changes of the gradient. It stops when the gradient is
    smaller than `tolerance` times the first one, or after `steps`. `function` returns the loss and its gradient.

    Shapes: start (...) -> (...), and the number of steps. Paper: Liu and Nocedal, 1989.

    >>> lbfgs(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), torch.zeros(2), tolerance=1e-6)[0].round(decimals=4)
    tensor([3., 3.])
    """
    theta = start
    value, gradient = function(theta)
    first = float(gradient.norm())
    pairs: list[tuple[Tensor, Tensor, float]] = []
    done = 0
    for done in range(1, steps + 1):
        direction, kept = gradient.clone(), []
        for s, y, rho in reversed(pairs):
            alpha = rho * float((s * direction).sum())
            direction -= alpha * y
            kept.append(alpha)
        if pairs:
            s, y, rho = pairs[-1]
            direction *= 1 / (rho * float((y * y).sum()))
        for (s, y, rho), alpha in zip(pairs, reversed(kept), strict=True):
            direction += s * (alpha - rho * float((y * direction).sum()))
        slope = float((gradient * direction).sum())
        size = 1.0 if pairs else min(1.0, 1 / max(float(gradient.abs().sum()), 1e-12) * max(1.0, theta.numel() ** 0.5))
        for _ in range(30):
            new = theta - size * direction
            new_value, new_gradient = function(new)
            if new_value <= value - 1e-4 * size * slope:
                break
            size /= 2
        else:
            return theta, done
        s, y = new - theta, new_gradient - gradient
        curvature = float((s * y).sum())
        if curvature > 1e-10 * float((y * y).sum()):
            pairs = [*pairs[1 - memory :], (s, y, 1 / curvature)]
        theta, value, gradient = new, new_value, new_gradient
        if float(gradient.norm()) <= tolerance * first:
            break
    return theta, done


def penalised_minimum(
    X: "SparseMatrix | DenseMatrix",
    outputs: int,
    loss: Callable[[Tensor], tuple[float, Tensor]],
    *,
    ridge: float,
    start: Tensor | None,
    steps: int,
    tolerance: float,
) -> Tensor:
    r"""The minimum of a loss of linear scores with a ridge penalty on the weights, not on the bias: (f + 1, outputs), the bias last.

    .. math:: \min_{W, b} \ell(X W + b) + \frac{\lambda}{2} \|W\|^2

    `loss` gives the value at scores (n, outputs) and its gradient there.
    """

    def objective(theta: Tensor) -> tuple[float, Tensor]:
        weights, bias = theta[:-1], theta[-1]
        value, residual = loss(X.times(weights) + bias)
        value += ridge / 2 * float(weights.square().sum(dtype=torch.float64))
        return value, torch.cat([X.transposed_times(residual) + ridge * weights, residual.sum(0, keepdim=True)])

    begin = torch.zeros(X.width + 1, outputs, dtype=X.values.dtype) if start is None else start
    return lbfgs(objective, begin, steps=steps, tolerance=tolerance)[0]


def sparse_softmax(
    X: SparseMatrix | DenseMatrix,
    y: Tensor,
    classes: int,
    *,
    ridge: float,
    start: Tensor | None = None,
    steps: int = 100,
    tolerance: float = 1e-3,
) -> Tensor:
    r"""Softmax regression on sparse rows.

    .. math:: \min_{W, b} -\sum_i \log \operatorname{softmax}(W^\top x_i + b)_{y_i} + \frac{\lambda}{2} \|W\|^2

    As in scikit-learn with C = 1/λ; the bias, the last row of the result, is not penalised. Shapes: y (n,) -> (f + 1, c).
    """
    target = F.one_hot(y, classes).to(X.values.dtype)

    def loss(scores: Tensor) -> tuple[float, Tensor]:
        log_p = scores.log_softmax(1)
        return -float((log_p * target).sum(dtype=torch.float64)), log_p.exp() - target

    return penalised_minimum(X, classes, loss, ridge=ridge, start=start, steps=steps, tolerance=tolerance)


def sparse_logistic(
    X: SparseMatrix | DenseMatrix,
    y: Tensor,
    *,
    ridge: float,
    start: Tensor | None = None,
    steps: int = 100,
    tolerance: float = 1e-3,
) -> Tensor:
    r"""Logistic regression on sparse rows, for several labels that may hold together.

    .. math:: \min_{W, b} \sum_{ik} \log(1 + e^{-(2 y_{ik} - 1)(W_k^\top x_i + b_k)}) + \frac{\lambda}{2} \|W\|^2

    Shapes: y (n, k) of 0 and 1 -> (f + 1, k), the bias last.
    """
    target = y.to(X.values.dtype)

    def loss(scores: Tensor) -> tuple[float, Tensor]:
        return float(F.binary_cross_entropy_with_logits(scores, target, reduction="sum")), scores.sigmoid() - target

    return penalised_minimum(X, y.shape[1], loss, ridge=ridge, start=start, steps=steps, tolerance=tolerance)


def sparse_ridge(
    X: SparseMatrix | DenseMatrix,
    y: Tensor,
    *,
    ridge: float,
    start: Tensor | None = None,
    steps: int = 100,
    tolerance: float = 1e-3,
) -> Tensor:
    r"""Ridge regression on sparse rows, for several targets at once.

    .. math:: \min_{W, b} \frac12 \sum_i \|W^\top x_i + b - y_i\|^2 + \frac{\lambda}{2} \|W\|^2

    Shapes: y (n, k) -> (f + 1, k), the bias last.
    """

    def loss(scores: Tensor) -> tuple[float, Tensor]:
        residual = scores - y
        return 0.5 * float(residual.square().sum(dtype=torch.float64)), residual

    return penalised_minimum(X, y.shape[1], loss, ridge=ridge, start=start, steps=steps, tolerance=tolerance)
