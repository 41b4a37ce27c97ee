"""Softmax regression: a linear score for each class, and their softmax."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, choice, count
from wonderland.solvers.data import append_one, full_rank, labels, rows, strength
from wonderland.solvers.minimize import SOLVERS, gradient_descent, newton


@dataclass(frozen=True)
class SoftmaxFit:
    """A fitted softmax regression. Shapes: weights (m, c), bias (m,); `loss` is the mean training cross-entropy.

    Adding the same vector to every class changes no probability; here weights and biases sum to zero over classes.
    """

    weights: Tensor
    bias: Tensor
    loss: float
    steps: int

    def logits(self, X: Numbers) -> Tensor:
        """Scores XW' + b. Shapes: (n, c) -> (n, m)."""
        return rows("X", X, self.weights.shape[1]) @ self.weights.T + self.bias

    def probabilities(self, X: Numbers) -> Tensor:
        """Probabilities of the classes. Shapes: (n, c) -> (n, m), rows sum to 1."""
        return self.logits(X).softmax(-1)

    def predict(self, X: Numbers) -> Tensor:
        """The most probable class. Shapes: (n, c) -> (n,)."""
        return self.logits(X).argmax(-1)


def softmax_regression(
    X: Numbers,
    y: Numbers,
    *,
    classes: int | None = None,
    ridge: float = 0.0,
    bias: bool = True,
    solver: str = "newton",
    steps: int = 100_000,
) -> SoftmaxFit:
    r"""The weights with the smallest cross-entropy for labels 0 to m - 1.

    .. math::
        \min_{W, b} -\sum_i \log \operatorname{softmax}(W x_i + b)_{y_i} + \frac{\lambda}{2} \|W\|^2, \qquad
        \nabla_W = (P - Y)^\top X + \lambda W

    A sum over rows, as in scikit-learn with C = 1/λ; biases are not penalised. The Hessian has m x m blocks
    :math:`X^\top \operatorname{diag}(p_k (\delta_{kl} - p_l)) X`. With two classes it is logistic regression with half
    the ridge: :math:`w = W_1 - W_0`.

    Shapes: X (n, c), y (n,) -> weights (m, c), bias (m,). Book: Alice 4.2.1-4.2.2 (E.4.10-E.4.18), 4.3.2; D2L 4.1.

    >>> fit = softmax_regression([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]], [2, 1, 2, 0, 0, 1], ridge=0.1)
    >>> fit.probabilities([[0.0]]).sum().round(decimals=9), fit.predict([[0.0], [5.0]])
    (tensor(1., dtype=torch.float64), tensor([2, 0]))
    """
    matrix = rows("X", X)
    m = int(labels(matrix, y).max()) + 1 if classes is None else count("classes", classes, 2)
    target = labels(matrix, y, m)
    ridge = strength(ridge)
    choice("solver", solver, SOLVERS)
    if ridge == 0:
        full_rank(matrix, bias)
    missing = [label for label in range(m) if not bool((target == label).any())]
    if m < 2 or (missing and (bias or ridge == 0)):
        raise WonderlandError(
            f"`y` has no row of class {missing[0] if missing else 1}: every class needs at least one."
        )
    design = append_one(matrix) if bias else matrix
    n, width = design.shape
    one_hot = F.one_hot(target, m).to(torch.float64)
    penalty = torch.full((width,), ridge, dtype=torch.float64)
    if bias:
        penalty[-1] = 0.0
    # Adding one vector to all classes changes nothing, so the Hessian is singular there. This term makes it regular without
    # changing the steps, because the gradient has no component in that direction.
    shared = torch.kron(torch.full((m, m), 1.0 / m, dtype=torch.float64), torch.diag((penalty == 0).to(torch.float64)))

    def logits(theta: Tensor) -> Tensor:
        return design @ theta.reshape(m, width).T

    def loss(theta: Tensor) -> Tensor:
        fit = F.cross_entropy(logits(theta), target, reduction="sum")
        return fit + (penalty * theta.reshape(m, width).square()).sum() / 2

    def gradient(theta: Tensor) -> Tensor:
        residual = logits(theta).softmax(-1) - one_hot
        return (residual.T @ design + penalty * theta.reshape(m, width)).flatten()

    def hessian(theta: Tensor) -> Tensor:
        probability = logits(theta).softmax(-1)
        covariance = torch.diag_embed(probability) - probability.unsqueeze(2) * probability.unsqueeze(1)
        blocks = torch.einsum("nkl,nc,nd->kcld", covariance, design, design).reshape(m * width, m * width)
        return blocks + torch.diag(penalty.repeat(m)) + n * shared

    start = torch.zeros(m * width, dtype=torch.float64)
    if solver == "newton":
        theta, iterations = newton(loss, gradient, hessian, logits, start, penalised=ridge > 0)
    else:
        smoothness = float(torch.linalg.matrix_norm(design, 2)) ** 2 / 2 + ridge
        theta, iterations = gradient_descent(gradient, smoothness, start, count("steps", steps))
    coefficients = theta.reshape(m, width)
    coefficients = coefficients - coefficients.mean(0)
    weights, offset = coefficients, coefficients.new_zeros(m)
    if bias:
        weights, offset = coefficients[:, :-1], coefficients[:, -1]
    return SoftmaxFit(weights, offset, float(F.cross_entropy(logits(theta), target)), iterations)
