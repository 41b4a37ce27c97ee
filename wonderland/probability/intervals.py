"""Confidence intervals for means and proportions, and Chebyshev's bound."""

import torch
from torch.distributions import Beta, Normal, StudentT

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers, choice, count, level, numbers, positive
from wonderland.probability.cumulative import quantile


def mean_interval(x: Numbers, *, confidence: float = 0.95, deviation: float | None = None) -> tuple[float, float]:
    r"""An interval for the mean of Gaussian samples.

    .. math:: \bar x \pm z \frac{\sigma}{\sqrt n} \text{ with a known deviation}, \qquad
        \bar x \pm t_{n-1} \frac{s}{\sqrt n} \text{ with an estimated one}

    The book's 1.96 is z at 95 %; with few samples and an estimated deviation its coverage is too low, and t is correct.

    Shapes: x (n,) -> two numbers. Book: D2L 22.7 (confidence intervals).

    >>> low, high = mean_interval([1.0, 2.0, 3.0, 4.0], deviation=1.0)
    >>> round(low, 4), round(high, 4)
    (1.52, 3.48)
    """
    values = numbers("x", x, 1)
    probability = (1 + level("confidence", confidence)) / 2
    if deviation is not None:
        spread, z = positive("deviation", deviation), float(quantile(_standard(), probability))
    elif len(values) < 2:
        raise WonderlandError("`x` holds one value: pass its known `deviation`, or more values.")
    else:
        spread = float(values.std())
        z = float(quantile(StudentT(torch.tensor(len(values) - 1.0, dtype=torch.float64)), probability))
    half_width = z * spread / len(values) ** 0.5
    return float(values.mean()) - half_width, float(values.mean()) + half_width


def proportion_interval(
    successes: int, trials: int, *, confidence: float = 0.95, method: str = "wilson"
) -> tuple[float, float]:
    r"""An interval for a probability from a count.

    .. math::
        \frac{\hat p + \frac{z^2}{2n} \pm z \sqrt{\frac{\hat p (1 - \hat p)}{n} + \frac{z^2}{4 n^2}}}{1 + \frac{z^2}{n}}

    is Wilson's, close to the stated level on average; "exact" (Clopper and Pearson, from quantiles of the beta
    distribution) covers at least as often as stated for every probability, and is wider.

    Book: D2L 22.7. Papers: Wilson, 1927; Clopper and Pearson, 1934.

    >>> low, high = proportion_interval(7, 10)
    >>> round(low, 4), round(high, 4)
    (0.3968, 0.8922)
    """
    choice("method", method, ("wilson", "exact"))
    n = count("trials", trials)
    if not 0 <= successes <= n:
        raise WonderlandError(f"`successes` has to lie between 0 and `trials`; they are {successes} and {n}.")
    probability = (1 + level("confidence", confidence)) / 2
    if method == "exact":
        low = float(quantile(_beta(successes, n - successes + 1), 1 - probability)) if successes > 0 else 0.0
        high = float(quantile(_beta(successes + 1, n - successes), probability)) if successes < n else 1.0
        return low, high
    z, p = float(quantile(_standard(), probability)), successes / n
    centre, half_width = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, (centre - half_width) / (1 + z * z / n)), min(1.0, (centre + half_width) / (1 + z * z / n))


def chebyshev_bound(deviations: float) -> float:
    r"""An upper bound, for any distribution, on the probability of being that many standard deviations from the mean.

    .. math:: P(|X - \mu| \ge \alpha \sigma) \le \frac{1}{\alpha^2}

    Book: D2L 22.4 (Chebyshev's inequality).

    >>> chebyshev_bound(10)
    0.01
    """
    return min(1.0, 1 / positive("deviations", deviations) ** 2)


def _standard() -> Normal:
    return Normal(torch.tensor(0.0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64))


def _beta(a: int, b: int) -> Beta:
    return Beta(torch.tensor(float(a), dtype=torch.float64), torch.tensor(float(b), dtype=torch.float64))
