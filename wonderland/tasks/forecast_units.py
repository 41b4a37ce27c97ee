"""Scales of series and units of errors, as tensors: shared by forecasts and their exported programs."""

from torch import Tensor


def scales(about: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """Mean and scale of the series of each window: (b, 1, c)."""
    return about[:, None, 1 : 1 + channels], about[:, None, 1 + channels : 1 + 2 * channels]


def unit_tensor(unit: str, x: Tensor, about: Tensor, season: int, channels: int) -> Tensor | float:
    """What errors are measured in, beside the scale of the series: nothing more, how much the context changed from season to season,
    or its level in the last season. Shapes: x (b, t, c) -> (b, 1, c)."""
    if unit == "scale":
        return 1.0
    x = x.double()
    season = season if season < x.shape[1] else 1
    if unit == "changes":
        if x.shape[1] < 2:
            return 1.0
        return (x[:, season:] - x[:, :-season])[:, -3 * season - 8 :].abs().mean(1, keepdim=True).clamp_min(0.05)
    mean, scale = (part.double() for part in scales(about, channels))
    level = (x[:, -season:].mean(1, keepdim=True) + mean / scale).abs()
    return level.clamp_min(0.05)
