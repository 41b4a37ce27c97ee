"""Cumulative distribution functions and quantiles that torch.distributions lacks."""

import torch
from torch import Tensor, distributions

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, numbers


def incomplete_beta(a: Numbers, b: Numbers, x: Numbers) -> Tensor:
    r"""The regularised incomplete beta function, the integral behind the t, beta, F and binomial distributions.

    .. math:: I_x(a, b) = \frac{1}{B(a, b)} \int_0^x t^{a-1} (1 - t)^{b-1} dt

    By Lentz's continued fraction, on the side of the mean where it converges fast:
    :math:`I_x(a, b) = 1 - I_{1-x}(b, a)`. About 1e-13 in float64.

    Shapes: a, b, x broadcast. Used for the intervals of D2L 22.7.

    >>> incomplete_beta(2.0, 2.0, 0.25)
    tensor(0.1562, dtype=torch.float64)
    """
    a, b, x = torch.broadcast_tensors(numbers("a", a), numbers("b", b), numbers("x", x))
    if bool((a <= 0).any()) or bool((b <= 0).any()):
        raise WonderlandError("`a` and `b` have to be positive.")
    if bool((x < 0).any()) or bool((x > 1).any()):
        raise WonderlandError("`x` has to lie between 0 and 1.")
    swap = x > (a + 1) / (a + b + 2)
    a, b, x = torch.where(swap, b, a), torch.where(swap, a, b), torch.where(swap, 1 - x, x)
    log_front = torch.xlogy(a, x) + torch.xlogy(b, 1 - x) + torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
    below = log_front.exp() / a * _fraction(a, b, x)
    return torch.where(swap, 1 - below, below)


def _fraction(a: Tensor, b: Tensor, x: Tensor, iterations: int = 400) -> Tensor:
    """Lentz's method for the continued fraction; each iteration adds one even and one odd term."""
    tiny = 1e-300
    numerator = torch.ones_like(x)
    denominator = 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = denominator.clone()
    for m in range(1, iterations):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = torch.ones_like(x)
        for term in (even, odd):
            denominator = 1 / _away_from_zero(1 + term * denominator, tiny)
            numerator = _away_from_zero(1 + term / numerator, tiny)
            change = denominator * numerator
            fraction = fraction * change
        if bool(((change - 1).abs() < 1e-15).all()):
            break
    return fraction


def _away_from_zero(x: Tensor, tiny: float) -> Tensor:
    return torch.where(x.abs() < tiny, tiny, x)


def cdf(distribution: distributions.Distribution, x: Numbers) -> Tensor:
    r"""The cumulative distribution function at x: torch's where it has one, else the formulas for the t, beta, binomial,
    Poisson, Bernoulli, categorical and geometric distributions.

    .. math::
        F(x) = P(X \le x) = \int_{-\infty}^x p(t) \, dt

    The lower limit is :math:`-\infty`; the book prints 0. Binomial: :math:`I_{1-p}(n - k, k + 1)`; Poisson:
    :math:`Q(k + 1, \lambda)`, the upper incomplete gamma function; Student: with
    :math:`z = \nu / (\nu + t^2)`, :math:`1 - \frac12 I_z(\frac{\nu}{2}, \frac12)` for t > 0.

    Shapes: x broadcasts with the batch of the distribution. Book: Alice A.2; D2L 22.4-22.5.

    >>> cdf(distributions.Poisson(2.0), [0, 1, 2])
    tensor([0.1353, 0.4060, 0.6767], dtype=torch.float64)
    >>> cdf(distributions.StudentT(1.0), 1.0)
    tensor(0.7500, dtype=torch.float64)
    """
    point = numbers("x", x)
    match distribution:
        case distributions.StudentT():
            return _student(
                (point - _float64(distribution.loc)) / _float64(distribution.scale), _float64(distribution.df)
            )
        case distributions.Beta():
            return incomplete_beta(
                _float64(distribution.concentration1), _float64(distribution.concentration0), point.clamp(0, 1)
            )
        case distributions.Binomial():
            return _binomial(point.floor(), _float64(distribution.total_count), _float64(distribution.probs))
        case distributions.Bernoulli():
            return _binomial(point.floor(), torch.ones((), dtype=torch.float64), _float64(distribution.probs))
        case distributions.Poisson():
            whole = point.floor().clamp_min(0.0)
            upper = torch.special.gammaincc(whole + 1, _float64(distribution.rate))
            return torch.where(point < 0, 0.0, upper)
        case distributions.Geometric():
            failures = point.floor().clamp_min(-1.0) + 1
            return -torch.expm1(failures * torch.log1p(-_float64(distribution.probs)))
        case distributions.Categorical():
            probs = _float64(distribution.probs)
            steps = torch.cat([torch.zeros_like(probs[..., :1]), probs.cumsum(-1)], -1)
            index = (point.floor() + 1).clamp(0, probs.shape[-1]).long()
            shape = torch.broadcast_shapes(index.shape, probs.shape[:-1])
            expanded = steps.expand(*shape, steps.shape[-1])
            return expanded.gather(-1, index.expand(shape).unsqueeze(-1)).squeeze(-1).clamp_max(1.0)
    try:
        return distribution.cdf(point).to(torch.float64)
    except NotImplementedError as error:
        raise WonderlandError(f"There is no cumulative distribution for {type(distribution).__name__}.") from error


def _float64(parameter: Tensor) -> Tensor:
    return parameter.to(torch.float64)


def _student(t: Tensor, df: Tensor) -> Tensor:
    tail = incomplete_beta(df / 2, 0.5, df / (df + t.square())) / 2
    return torch.where(t > 0, 1 - tail, tail)


def _binomial(k: Tensor, n: Tensor, p: Tensor) -> Tensor:
    k, n, p = torch.broadcast_tensors(k, n, p)
    inside = (k >= 0) & (k < n)
    successes = torch.where(inside, k, 0.0)
    failures = torch.where(inside, n - successes, 1.0)
    below = incomplete_beta(failures, successes + 1, 1 - p)
    return torch.where(inside, below, (k >= n).to(torch.float64))


def quantile(distribution: distributions.Distribution, probability: Numbers) -> Tensor:
    r"""The inverse of the cumulative distribution function: torch's where it has one, else a search (t and beta).

    .. math:: F(F^{-1}(q)) = q, \qquad 0 < q < 1

    The search is Newton's method inside a shrinking bracket, to about 1e-14 relative.

    Shapes: probability broadcasts with the batch of the distribution. Book: Alice A.2; D2L 22.7.

    >>> quantile(distributions.StudentT(10.0), 0.975)
    tensor(2.2281, dtype=torch.float64)
    """
    p = numbers("probability", probability)
    if bool((p <= 0).any()) or bool((p >= 1).any()):
        raise WonderlandError("`probability` has to lie strictly between 0 and 1.")
    if not isinstance(distribution, distributions.StudentT | distributions.Beta):
        try:
            return distribution.icdf(p).to(torch.float64)
        except NotImplementedError as error:
            raise WonderlandError(f"There are no quantiles for {type(distribution).__name__}.") from error
    shape = torch.broadcast_shapes(p.shape, distribution.batch_shape)
    p, zeros = p.expand(shape), torch.zeros(shape, dtype=torch.float64)
    if isinstance(distribution, distributions.Beta):
        return _invert(distribution, p, zeros, zeros + 1)
    # Only the lower half is searched: in the upper half, 1 - F loses digits.
    standard = distributions.StudentT(_float64(distribution.df))
    tail = p.minimum(1 - p)
    low = zeros - 1
    while bool((too_high := cdf(standard, low) > tail).any()):
        low = torch.where(too_high, 2 * low, low)
    lower = _invert(standard, tail, low, zeros)
    return _float64(distribution.loc) + _float64(distribution.scale) * torch.where(p > 0.5, -lower, lower)


def _invert(distribution: distributions.Distribution, p: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Newton's method inside a shrinking bracket; a step that would leave it is replaced by a bisection."""
    point = (low + high) / 2
    for _ in range(200):
        excess = cdf(distribution, point) - p
        low, high = torch.where(excess >= 0, low, point), torch.where(excess >= 0, point, high)
        density = distribution.log_prob(point).exp().to(torch.float64)
        new = point - excess / density
        new = torch.where((new > low) & (new < high), new, (low + high) / 2)
        new = torch.where(excess == 0, point, new)
        converged = (new - point).abs() <= 1e-15 * point.abs()
        point = new
        if bool(converged.all()):
            break
    return point
