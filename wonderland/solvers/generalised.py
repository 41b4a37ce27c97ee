"""Generalised linear models: a linear predictor, a link, and a distribution that is not Gaussian."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, choice, numbers
from wonderland.solvers.data import append_one, full_rank, rows, strength, targets

FAMILIES = ("poisson", "gamma", "probit", "logit")


def _normal_log_cdf(z: Tensor) -> Tensor:
    return torch.special.log_ndtr(z)


def _mills(z: Tensor) -> Tensor:
    r""":math:`\varphi(z) / \Phi(z)`, without underflow far below zero."""
    return (-z.square() / 2 - 0.5 * math.log(2 * math.pi) - _normal_log_cdf(z)).exp()


@dataclass(frozen=True, eq=False)
class GeneralisedFit:
    """A fitted model. Shapes: weights (c,), covariance (p, p) of weights and bias; `deviance` as statsmodels has it."""

    family: str
    weights: Tensor
    bias: float
    covariance: Tensor
    log_likelihood: float
    deviance: float
    steps: int

    def linear(self, X: Numbers) -> Tensor:
        """The linear predictor Xw + b. Shapes: (n, c) -> (n,)."""
        return rows("X", X, len(self.weights)) @ self.weights + self.bias

    def mean(self, X: Numbers) -> Tensor:
        """The expected value: a rate, or the probability of class 1. Shapes: (n, c) -> (n,)."""
        return _mean(self.family, self.linear(X))

    @property
    def errors(self) -> Tensor:
        """Standard errors of the weights, and of the bias last when there is one. Shapes: (p,)."""
        return self.covariance.diagonal().sqrt()


def _mean(family: str, eta: Tensor) -> Tensor:
    if family in ("poisson", "gamma"):
        return eta.exp()
    return torch.special.ndtr(eta) if family == "probit" else eta.sigmoid()


def _loss(family: str, eta: Tensor, y: Tensor) -> Tensor:
    """Negative log-likelihood of each row, up to what does not depend on the predictor."""
    if family == "poisson":
        return eta.exp() - y * eta
    if family == "gamma":
        return y * (-eta).exp() + eta
    sign = 2 * y - 1
    if family == "probit":
        return -_normal_log_cdf(sign * eta)
    return torch.nn.functional.softplus(-sign * eta)


def _derivatives(family: str, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """First and second derivative of the loss by the predictor; the second is never negative."""
    if family == "poisson":
        return eta.exp() - y, eta.exp()
    if family == "gamma":
        return 1 - y * (-eta).exp(), y * (-eta).exp()
    sign = 2 * y - 1
    if family == "probit":
        ratio = _mills(sign * eta)
        return -sign * ratio, ratio * (ratio + sign * eta)
    p = eta.sigmoid()
    return p - y, p * (1 - p)


def generalised_linear(
    X: Numbers,
    y: Numbers,
    *,
    family: str = "poisson",
    ridge: float = 0.0,
    bias: bool = True,
    offset: Numbers | None = None,
    sample_weight: Numbers | None = None,
) -> GeneralisedFit:
    r"""The most likely weights of a model for counts, positive amounts, or two classes, by Newton's method.

    =============  ======================================  ==========================================
    `family`       distribution of y given x               mean
    =============  ======================================  ==========================================
    "poisson"      counts, Poisson                         :math:`e^{\eta}`
    "gamma"        positive amounts, gamma                 :math:`e^{\eta}`
    "probit"       0 or 1, Bernoulli                       :math:`\Phi(\eta)`, the normal distribution
    "logit"        0 or 1, Bernoulli                       :math:`\sigma(\eta)`
    =============  ======================================  ==========================================

    with :math:`\eta = Xw + b + \text{offset}`; the offset of counts is the logarithm of the exposure. The ridge adds
    :math:`\tfrac\lambda2 \|w\|^2` to the sum of losses. All four losses are convex in the weights.

    Shapes: X (n, c), y (n,). Book: Alice 4.3.1 (probit). Book of the field: McCullagh and Nelder, 1989.

    >>> fit = generalised_linear([[0.0], [0.0], [1.0], [1.0]], [1, 3, 4, 8])
    >>> fit.mean([[0.0], [1.0]]).round(decimals=6)
    tensor([2., 6.], dtype=torch.float64)
    """
    matrix = rows("X", X)
    target = targets(matrix, y)
    choice("family", family, FAMILIES)
    strong = strength(ridge)
    if family == "poisson" and bool((target < 0).any()):
        raise WonderlandError(f"`y` holds {float(target.min()):g}: counts are 0 or more.")
    if family == "gamma" and bool((target <= 0).any()):
        raise WonderlandError(f"`y` holds {float(target.min()):g}: amounts have to be above 0.")
    if family in ("probit", "logit") and bool(((target != 0) & (target != 1)).any()):
        raise WonderlandError("`y` has to hold 0 and 1.")
    moved = torch.zeros_like(target) if offset is None else targets(matrix, offset)
    mass = torch.ones_like(target) if sample_weight is None else numbers("sample_weight", sample_weight, 1)
    if len(mass) != len(target) or bool((mass < 0).any()) or float(mass.sum()) <= 0:
        raise WonderlandError("`sample_weight` needs one weight of 0 or more for each row, not all 0.")
    if strong == 0:
        full_rank(matrix[mass > 0], bias)
    if float((target * mass).sum()) == 0 or (family in ("probit", "logit") and float(((1 - target) * mass).sum()) == 0):
        raise WonderlandError(f"`y` holds only {float(target[mass > 0][0]):g}: the weights would grow without end.")
    design = append_one(matrix) if bias else matrix
    penalty = torch.full((design.shape[1],), strong, dtype=torch.float64)
    if bias:
        penalty[-1] = 0.0
    theta = torch.zeros(design.shape[1], dtype=torch.float64)
    if bias and family in ("poisson", "gamma"):
        theta[-1] = ((target * mass).sum() / (mass * moved.exp()).sum()).log()

    def value(at: Tensor) -> float:
        return float((mass * _loss(family, design @ at + moved, target)).sum() + (penalty * at.square()).sum() / 2)

    here, done = value(theta), 0
    while done < 200:
        done += 1
        eta = design @ theta + moved
        slope, bend = _derivatives(family, eta, target)
        gradient = design.T @ (mass * slope) + penalty * theta
        curvature = (design.T * (mass * bend)) @ design + torch.diag(penalty)
        factor, failed = torch.linalg.cholesky_ex(curvature)
        if int(failed) or (strong == 0 and float(eta.abs().max()) > 300):
            raise WonderlandError(
                "The rows have no finite solution, as when a plane separates the classes: pass ridge > 0."
            )
        move = -torch.cholesky_solve(gradient.unsqueeze(1), factor).squeeze(1)
        if float((design @ move).abs().max()) < 1e-9:
            break
        share = 1.0
        while not (tried := value(theta + share * move)) <= here + 1e-12 * abs(here) and share > 1e-10:
            share /= 2
        theta, here = theta + share * move, tried
    else:
        raise WonderlandError(
            "The rows have no finite solution, as when a plane separates the classes: pass ridge > 0."
        )
    eta = design @ theta + moved
    loss = (mass * _loss(family, eta, target)).sum()
    # The best loss any predictor could have, for the deviance.
    if family == "poisson":
        perfect, constant = target - torch.special.xlogy(target, target), torch.lgamma(target + 1)
    elif family == "gamma":
        perfect, constant = 1 + target.log(), torch.zeros_like(target)
    else:
        perfect, constant = torch.zeros_like(target), torch.zeros_like(target)
    weights, shift = (theta[:-1], float(theta[-1])) if bias else (theta, 0.0)
    slope, bend = _derivatives(family, eta, target)
    curvature = (design.T * (mass * bend)) @ design + torch.diag(penalty)
    return GeneralisedFit(
        family, weights, shift, torch.linalg.inv(curvature), -float(loss + (mass * constant).sum()),
        2 * float(loss - (mass * perfect).sum()), done,
    )  # fmt: skip
