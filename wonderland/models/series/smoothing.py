"""Exponential smoothing with a damped trend and a season, run along the windows."""

import torch
from torch import Tensor

from wonderland.models.series.forecaster import baseline


def smooth(x: Tensor, horizon: int, season: int, settings: Tensor) -> Tensor:
    r"""Forecasts of additive exponential smoothing (Holt and Winters) with a damped trend.

    .. math::
        l_t = \alpha (x_t - s_{t-m}) + (1 - \alpha)(l_{t-1} + \phi b_{t-1}), \quad
        b_t = \beta (l_t - l_{t-1}) + (1 - \beta) \phi b_{t-1}, \quad
        s_t = \gamma (x_t - l_t) + (1 - \gamma) s_{t-m}, \quad
        \hat y_{t+h} = l_t + (\phi + \dots + \phi^h) b_t + s_{t+h-m}

    It starts from the means of the first two seasons. Shapes: x (b, t), settings (b, 4) or (1, 4) with alpha, beta, gamma, phi ->
    (b, horizon). Papers: Winters, 1960; Gardner and McKenzie, 1985.

    >>> x = torch.arange(12.0)[None]
    >>> smooth(x, 2, 1, torch.tensor([[0.5, 0.5, 0.0, 1.0]])).round(decimals=3).tolist()
    [[12.0, 13.0]]
    """
    steps = x.shape[-1]
    m = season if season > 1 and steps >= 2 * season else 1
    alpha, beta, gamma, phi = settings.unbind(-1)
    if m == 1:
        level, trend = x[..., 0], (x[..., min(steps - 1, 4)] - x[..., 0]) / max(1, min(steps - 1, 4))
        rings, first = [torch.zeros_like(level)], 1
    else:
        head = x[..., :m].mean(-1)
        trend = (x[..., m : 2 * m].mean(-1) - head) / m
        level = head + trend * (m - 1) / 2
        rings = list((x[..., :m] - head[..., None] - trend[..., None] * (torch.arange(m) - (m - 1) / 2)).unbind(-1))
        first = m
    for t in range(first, steps):
        value, wave = x[..., t], rings[t % m]
        before = level
        level = alpha * (value - wave) + (1 - alpha) * (before + phi * trend)
        trend = beta * (level - before) + (1 - beta) * phi * trend
        if m > 1:
            rings[t % m] = gamma * (value - level) + (1 - gamma) * wave
    forecasts, growth = [], torch.zeros_like(phi)
    for h in range(horizon):
        growth = growth + phi ** (h + 1)
        forecasts.append(level + growth * trend + rings[(steps + h) % m])
    return torch.stack(torch.broadcast_tensors(*forecasts), -1)


GRID = (
    torch.tensor([0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9]),
    torch.tensor([0.0, 0.02, 0.1, 0.3]),
    torch.tensor([0.02, 0.1, 0.3, 0.6]),
    torch.tensor([0.0, 0.8, 0.9, 0.98, 1.0]),
)


def fit_smoothing(x: Tensor, y: Tensor, mask: Tensor, season: int) -> Tensor:
    """The settings with the least squared error over the horizon: first of a spread of the grid, then one after the other.

    Shapes: x (b, t), y and mask (b, h) -> (4,).
    """
    total = mask.sum().clamp_min(1)

    def errors(settings: Tensor) -> Tensor:
        forecast = smooth(x[None], y.shape[-1], season, settings[:, None])
        return torch.where(mask, forecast - y, 0.0).square().sum((-2, -1)) / total

    place = torch.arange(36)
    spread = torch.stack(
        [axis[(place * stride) % len(axis)] for axis, stride in zip(GRID, (1, 3, 3, 2), strict=True)], -1
    )
    scores = errors(spread)
    best, least = spread[scores.argmin()], scores.min()
    for _ in range(2):
        for axis, values in enumerate(GRID):
            tried = best.repeat(len(values), 1)
            tried[:, axis] = values
            scores = errors(tried)
            if scores.min() < least:
                best, least = tried[scores.argmin()], scores.min()
    return best


def seasonal(x: Tensor, horizon: int, season: int) -> Tensor:
    """The last season again, for rows of one column: (b, t) -> (b, h)."""
    return baseline(x[..., None], horizon, season)[..., 0]
