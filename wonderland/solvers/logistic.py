"""Logistic regression: log-odds of two classes as a linear function."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, choice, count
from wonderland.solvers.data import append_one, full_rank, labels, rows, strength
from wonderland.solvers.minimize import SOLVERS, gradient_descent, newton


@dataclass(frozen=True)
class LogisticFit:
    """A fitted logistic regression. Shapes: weights (c,); `loss` is the mean cross-entropy of the training rows."""

    weights: Tensor
    bias: float
    loss: float
    steps: int

    def logits(self, X: Numbers) -> Tensor:
        """Log-odds of class 1: Xw + b. Shapes: (n, c) -> (n,)."""
        return rows("X", X, len(self.weights)) @ self.weights + self.bias

    def probabilities(self, X: Numbers) -> Tensor:
        """The probability of class 1. Shapes: (n, c) -> (n,)."""
        return self.logits(X).sigmoid()

    def predict(self, X: Numbers) -> Tensor:
        """Class 1 where its probability is above 0.5; exactly 0.5 is class 0. Shapes: (n, c) -> (n,)."""
        return (self.logits(X) > 0).long()


def logistic_regression(
    X: Numbers, y: Numbers, *, ridge: float = 0.0, bias: bool = True, solver: str = "newton", steps: int = 100_000
) -> LogisticFit:
    r"""The weights with the smallest cross-entropy for labels 0 and 1.

    .. math::
        \min_{w, b} \sum_i \left[ -y_i \log \hat y_i - (1 - y_i) \log(1 - \hat y_i) \right] + \frac{\lambda}{2} \|w\|^2,
        \qquad \hat y = \sigma(w^\top x + b)

    A sum over rows, as in scikit-learn with C = 1/λ; the bias is not penalised. The gradient is
    :math:`X^\top (\hat y - y) + \lambda w`, the Hessian :math:`X^\top S X + \lambda I` with
    :math:`S = \operatorname{diag}(\hat y (1 - \hat y))`. "newton" is iteratively reweighted least squares: each step
    solves least squares with the weights S. "gradient" never forms a (c, c) matrix. Without a ridge,
    linearly separable classes have no finite solution, and dependent columns no unique one; both are refused.

    Shapes: X (n, c), y (n,) in {0, 1} -> weights (c,). Book: Alice 4.3.1 (E.4.19-E.4.20); D2L 4.1.

    >>> fit = logistic_regression([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]], [0, 0, 1, 0, 1, 1])
    >>> fit.probabilities([[0.0], [1.0]])
    tensor([0.3333, 0.6667], dtype=torch.float64)
    """
    matrix = rows("X", X)
    target = labels(matrix, y, 2).to(torch.float64)
    ridge = strength(ridge)
    choice("solver", solver, SOLVERS)
    if ridge == 0:
        full_rank(matrix, bias)
        if target.min() == target.max():
            raise WonderlandError(f"`y` holds only label {int(target[0])}: two classes are needed, or pass ridge > 0.")
    if bias and target.min() == target.max():
        raise WonderlandError(
            f"`y` holds only label {int(target[0])}: the bias, which is not penalised, would diverge."
        )
    design = append_one(matrix) if bias else matrix
    penalty = torch.full((design.shape[1],), ridge, dtype=torch.float64)
    if bias:
        penalty[-1] = 0.0

    def loss(theta: Tensor) -> Tensor:
        fit = F.binary_cross_entropy_with_logits(design @ theta, target, reduction="sum")
        return fit + (penalty * theta.square()).sum() / 2

    def gradient(theta: Tensor) -> Tensor:
        return design.T @ ((design @ theta).sigmoid() - target) + penalty * theta

    def hessian(theta: Tensor) -> Tensor:
        probability = (design @ theta).sigmoid()
        return (design.T * (probability * (1 - probability))) @ design + torch.diag(penalty)

    start = torch.zeros(design.shape[1], dtype=torch.float64)
    if solver == "newton":
        theta, iterations = newton(loss, gradient, hessian, lambda step: design @ step, start, penalised=ridge > 0)
    else:
        smoothness = float(torch.linalg.matrix_norm(design, 2)) ** 2 / 4 + ridge
        theta, iterations = gradient_descent(gradient, smoothness, start, count("steps", steps))
    weights, offset = (theta[:-1], float(theta[-1])) if bias else (theta, 0.0)
    mean = F.binary_cross_entropy_with_logits(design @ theta, target)
    return LogisticFit(weights, offset, float(mean), iterations)
