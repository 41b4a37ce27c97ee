"""Ridge regression: least squares with a penalty on squared weights."""

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers
from wonderland.solvers.data import rows, strength, targets
from wonderland.solvers.least_squares import LinearFit, centred_solution


def ridge_regression(X: Numbers, y: Numbers, ridge: float, *, bias: bool = True) -> LinearFit:
    r"""The weights with the smallest sum of squared errors plus squared weights.

    .. math::
        w^* = \arg\min_w \|y - Xw\|^2 + \lambda \|w\|^2 = (X^\top X + \lambda I)^{-1} X^\top y

    A sum, not a mean: the same convention as scikit-learn's `alpha`. The book prints the objective
    :math:`\frac2n \|y - Xw\|^2 + \frac{\lambda}{2} \|w\|^2` beside this solution; that objective has
    :math:`\frac{n \lambda}{4}` in the place of :math:`\lambda`. The bias is not penalised. The solution is the maximum a posteriori w
    under Gaussian noise of variance :math:`\sigma^2` and the prior :math:`N(0, s^2 I)` with
    :math:`\lambda = \sigma^2 / s^2`. Dependent columns, and more columns than rows, are allowed.

    Shapes: X (n, c), y (n,) -> weights (c,). Book: Alice 4.1.5; D2L 3.7.

    >>> ridge_regression([[1.0], [1.0]], [1.0, 1.0], ridge=2.0, bias=False).weights
    tensor([0.5000], dtype=torch.float64)
    """
    matrix = rows("X", X)
    target = targets(matrix, y)
    if strength(ridge) == 0:
        raise WonderlandError("`ridge` has to be above 0: for 0 use least_squares.")
    return centred_solution(matrix, target, strength(ridge), bias)
