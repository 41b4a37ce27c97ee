"""Forecaster: what models of series share: their sizes, and forecasts by the last value or the last season."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.arguments import Checked


class Forecaster(Checked, nn.Module, ABC):
    r"""A model that continues series.

    `forward(x, known, about)`: x (b, context, channels) are past values in the scale of each series; known (b, context + horizon,
    known) are the calendar and covariates along the past and the future; about (b, 1 + 2 channels) holds the period that a
    forecast may be fitted on, and mean and scale of the series. Both may be None where a model does not read them. The answer is
    (b, horizon, channels, outputs).
    """

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 1):
        super().__init__()
        sizes = {"context": context, "horizon": horizon, "channels": channels, "outputs": outputs}
        for name, size in sizes.items():
            if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= 1 << 20:
                raise WonderlandError(f"{type(self).__name__} needs {name} of at least 1, not {size!r}.")
        if not isinstance(known, int) or isinstance(known, bool) or not 0 <= known <= 1 << 20:
            raise WonderlandError(f"{type(self).__name__} needs known of at least 0, not {known!r}.")
        self.context, self.horizon, self.channels, self.known, self.outputs = context, horizon, channels, known, outputs

    @abstractmethod
    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        """Forecasts (b, horizon, channels, outputs)."""

    def covariates(self, x: Tensor, known: Tensor | None) -> Tensor:
        """What is known along context and horizon; zeros where nothing was given."""
        if known is None:
            return x.new_zeros(x.shape[0], self.context + self.horizon, self.known)
        return known.to(x.dtype)


def baseline(x: Tensor, horizon: int, season: int = 1) -> Tensor:
    r"""The seasonal-naive forecast: the last season again; with season 1, the last value.

    .. math:: \hat y_{t+h} = x_{t + h - m \lceil h / m \rceil}

    Shapes: x (b, t, c) -> (b, horizon, c). A season longer than t counts as 1.

    >>> baseline(torch.arange(5.0).reshape(1, 5, 1), 3, season=2)[0, :, 0].tolist()
    [3.0, 4.0, 3.0]
    """
    season = season if season <= x.shape[1] else 1
    place = x.shape[1] - season + torch.arange(horizon, device=x.device) % season
    return x[:, place]


def check_width(name: str, **sizes: Any) -> None:
    """Refuse sizes of layers that are not whole numbers of at least 1."""
    for argument, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= 1 << 20:
            raise WonderlandError(f"{name} needs {argument} of at least 1, not {size!r}.")
