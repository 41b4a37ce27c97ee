r"""Schedules: the learning rate as a pure function of the step, as a factor of its peak."""

import math
from collections.abc import Callable

from wonderland.core import part

Schedule = Callable[[int, int], float]


@part
def constant(step: int, steps: int) -> float:
    """The peak, always."""
    return 1.0


@part
def warmup_cosine(step: int, steps: int, *, warmup: float = 0.05, floor: float = 0.0) -> float:
    r"""A straight rise over the first part, then half a cosine down to the floor.

    .. math::
        f(s) = \frac{s + 1}{w}\ (s < w), \qquad
        f(s) = f_0 + \frac{1 - f_0}{2}\Bigl(1 + \cos \pi \frac{s - w}{S - w}\Bigr)

    Book: D2L 12.11. Paper: Loshchilov and Hutter, 2017.

    >>> [round(warmup_cosine(step, 10, warmup=0.2), 3) for step in (0, 1, 2, 6, 10)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    rise = max(1, round(warmup * steps))
    if step < rise:
        return (step + 1) / rise
    done = (step - rise) / max(1, steps - rise)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
