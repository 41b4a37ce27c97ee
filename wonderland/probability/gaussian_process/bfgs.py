"""BFGS in a box: a few parameters, costly values, gradients at hand."""

from collections.abc import Callable

import numpy as np
from numpy import ndarray


def bfgs(
    function: Callable[[ndarray], tuple[float, ndarray]],
    start: ndarray,
    low: ndarray,
    high: ndarray,
    *,
    steps: int = 200,
    tolerance: float = 1e-5,
) -> tuple[ndarray, float, int]:
    r"""The minimum of a smooth function in a box, and the number of evaluations.

    .. math:: \theta \leftarrow P(\theta - a H \nabla f), \qquad H \leftarrow (I - \rho s y^\top) H (I - \rho y s^\top) + \rho s s^\top

    with P the projection onto the box; parameters at an end that the gradient pushes outward are held. A step is
    shortened until it gains enough (Armijo), by quadratic interpolation. Values that are not finite count as too high.

    >>> bfgs(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), np.full(2, -9.0), np.full(2, 9.0))[0]
    array([3., 3.])
    """
    here = np.clip(start, low, high)
    value, gradient = function(here)
    calls, inverse = 1, np.eye(len(here))
    fresh = True
    for _ in range(steps):
        held = ((here <= low) & (gradient > 0)) | ((here >= high) & (gradient < 0))
        free = ~held
        if not free.any() or np.abs(gradient[free]).max() < tolerance:
            break
        move = np.zeros_like(here)
        move[free] = -inverse[np.ix_(free, free)] @ gradient[free]
        if gradient @ move >= 0:
            inverse = np.eye(len(here))
            move[free] = -gradient[free]
        if fresh:
            move *= min(1.0, 1.0 / max(np.abs(move).max(), 1e-12))
        move *= min(1.0, 3.0 / max(np.abs(move).max(), 1e-12))
        share, slope = 1.0, float(gradient @ move)
        for _ in range(20):
            there = np.clip(here + share * move, low, high)
            tried, tried_gradient = function(there)
            calls += 1
            if np.isfinite(tried) and tried <= value + 1e-4 * share * slope:
                break
            bend = tried - value - share * slope
            best = -slope * share * share / (2 * bend) if np.isfinite(bend) and bend > 0 else 0.0
            share = min(max(best, 0.1 * share), 0.5 * share)
        else:
            break
        s, y = there - here, tried_gradient - gradient
        gained = value - tried
        here, value, gradient = there, tried, tried_gradient
        curvature = float(s @ y)
        if curvature > 1e-10 * float(np.sqrt((s @ s) * (y @ y))):
            if fresh:
                inverse = np.eye(len(here)) * curvature / float(y @ y)
                fresh = False
            rho = 1 / curvature
            left = np.eye(len(here)) - rho * np.outer(s, y)
            inverse = left @ inverse @ left.T + rho * np.outer(s, s)
        if gained < 2e-9 * max(1.0, abs(value)):
            break
    return here, float(value), calls
