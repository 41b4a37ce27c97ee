"""Scaling laws: how a loss falls with the size of a model, of its data or of the computation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wonderland.core import WonderlandError

FLOORS = 400  # candidates for the loss that is left at any size


@dataclass(frozen=True)
class PowerLaw:
    """A fitted law: `floor + factor * size ** -exponent`, and an interval of the exponent."""

    floor: float
    factor: float
    exponent: float
    interval: tuple[float, float]

    def __call__(self, size: float) -> float:
        """The loss at a size."""
        return self.floor + self.factor * size**-self.exponent

    def size_for(self, loss: float) -> float:
        """The size at which the loss is reached; infinite at or below the floor."""
        return (self.factor / (loss - self.floor)) ** (1 / self.exponent) if loss > self.floor else float("inf")


def power_law(
    sizes: Sequence[float], losses: Sequence[float], *, floor: float | None = None, draws: int = 200, seed: int = 0
) -> PowerLaw:
    r"""Fit a power law to losses at several sizes, by least squares of logarithms.

    .. math:: L(N) = L_\infty + a N^{-\alpha}, \qquad \log(L - L_\infty) = \log a - \alpha \log N

    The floor :math:`L_\infty` is searched below the smallest loss unless it is given (0 for a pure power). The interval holds the middle 90 %
    of exponents over `draws` sets of losses with the residuals drawn again. Book: Alice 1, D2L 16.4. Paper: Kaplan et al., 2020.

    >>> sizes = [1e3, 1e4, 1e5, 1e6, 1e7]
    >>> law = power_law(sizes, [1.5 + 20 * n ** -0.4 for n in sizes])
    >>> round(law.floor, 2), round(law.exponent, 2)
    (1.5, 0.4)
    """
    n, y = np.asarray(sizes, np.float64), np.asarray(losses, np.float64)
    least = 3 if floor is None else 2
    if n.shape != y.shape or n.ndim != 1 or len(np.unique(n)) < least:
        raise WonderlandError(f"A power law is fitted to the losses of at least {least} different sizes.")
    if not (np.isfinite(n).all() and np.isfinite(y).all() and (n > 0).all()) or y.min() <= (floor or 0):
        raise WonderlandError("Sizes and losses of a power law are finite, sizes above 0, and losses above the floor.")
    best, factor, exponent, fitted = _fitted(n, y, floor)
    generator, residual = np.random.default_rng(seed), np.log(y - best) - np.log(fitted - best)
    exponents = []
    for _ in range(draws):
        again = best + (fitted - best) * np.exp(generator.choice(residual, len(y)))
        exponents.append(_fitted(n, again, floor)[2])
    low, high = np.quantile(exponents, [0.05, 0.95]) if draws else (exponent, exponent)
    return PowerLaw(best, factor, exponent, (float(low), float(high)))


def _fitted(n: np.ndarray, y: np.ndarray, floor: float | None) -> tuple[float, float, float, np.ndarray]:
    """The floor with the smallest error of logarithms, weighted so that they stand for errors of the loss."""
    if floor is None:
        floors = y.min() * (1 - np.geomspace(1e-4, 1, FLOORS))
        for _ in range(3):  # ever finer around the best
            errors = [_line(n, y, each)[3] for each in floors]
            place = int(np.argmin(errors))
            floors = np.linspace(floors[max(0, place - 1)], floors[min(len(floors) - 1, place + 1)], 41)
        floor = float(floors[int(np.argmin([_line(n, y, each)[3] for each in floors]))])
    factor, exponent, fitted, _ = _line(n, y, floor)
    return floor, factor, exponent, fitted


def _line(n: np.ndarray, y: np.ndarray, floor: float) -> tuple[float, float, np.ndarray, float]:
    """Factor, exponent, fitted losses and their relative error, for a given floor."""
    above = y - floor
    design = np.stack([np.ones_like(n), -np.log(n)], 1)
    weight = above / y  # an error of log(L - floor) is one of log L times this
    (log_factor, exponent), *_ = np.linalg.lstsq(design * weight[:, None], np.log(above) * weight, rcond=None)
    fitted = floor + np.exp(log_factor) * n**-exponent
    return float(np.exp(log_factor)), float(exponent), fitted, float(np.square(np.log(fitted / y)).sum())


def best_size(budget: float, models: PowerLaw, data: PowerLaw, *, per_token: float = 6.0) -> tuple[float, float]:
    r"""The size of a model and of its data that reach the smallest loss with so many operations.

    .. math:: \min_{N, D} a N^{-\alpha} + b D^{-\beta} \quad \text{with} \quad 6 N D = C

    Setting the derivative to zero gives :math:`\alpha a N^{-\alpha} = \beta b D^{-\beta}`. Paper: Hoffmann et al., 2022.

    >>> law = PowerLaw(1.0, 100.0, 0.5, (0.5, 0.5))
    >>> size, tokens = best_size(6e12, law, law)
    >>> round(size), round(tokens)
    (1000000, 1000000)
    """
    if budget <= 0 or min(models.exponent, data.exponent) <= 0:
        raise WonderlandError("A best size needs a budget above 0 and laws that fall.")
    product = budget / per_token
    a, b, p, q = models.factor, data.factor, models.exponent, data.exponent
    size = ((p * a) / (q * b) * product**q) ** (1 / (p + q))
    return size, product / size
