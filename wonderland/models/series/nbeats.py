"""N-BEATS: blocks of linear layers that each explain a part of the window and forecast from it."""

import math

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.series.forecaster import Forecaster, check_width

BASES = ("generic", "trend", "season")


class NBeatsBlock(nn.Module):
    r"""Four linear layers with ReLU, and coefficients of a basis for the past and for the future.

    .. math:: h = \mathrm{MLP}(x), \qquad \hat x = \theta^b B^b, \quad \hat y = \theta^f B^f

    The basis is learned (generic), polynomials of time (trend), or sines and cosines (season).
    """

    past: Tensor
    future: Tensor

    def __init__(self, context: int, horizon: int, hidden: int, basis: str, degree: int):
        super().__init__()
        widths = [context, *[hidden] * 4]
        layers = [piece for i in range(4) for piece in (nn.Linear(widths[i], hidden), nn.ReLU())]
        self.body, self.basis = nn.Sequential(*layers), basis
        if basis == "generic":
            self.back, self.ahead = nn.Linear(hidden, context), nn.Linear(hidden, horizon)
            return
        rows = trend_basis(context, horizon, degree) if basis == "trend" else season_basis(context, horizon)
        self.register_buffer("past", rows[0], persistent=False)
        self.register_buffer("future", rows[1], persistent=False)
        self.back = nn.Linear(hidden, len(rows[0]), bias=False)
        self.ahead = nn.Linear(hidden, len(rows[1]), bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, context) -> what it explains of it, and its forecast (n, horizon)."""
        h = self.body(x)
        if self.basis == "generic":
            return self.back(h), self.ahead(h)
        return self.back(h) @ self.past, self.ahead(h) @ self.future


@part
class NBeats(Forecaster):
    r"""Blocks in a row: each reads what those before it have not explained, and the forecasts add up.

    .. math:: x_{l+1} = x_l - \hat x_l, \qquad \hat y = \sum_l \hat y_l

    `bases` names the basis of each stack of `blocks` blocks: generic, trend, season. Columns share weights; values are relative to the last one.

    Shapes: x (b, context, c) -> (b, horizon, c, 1). Paper: Oreshkin et al., 2020.

    >>> NBeats(context=12, horizon=4, hidden=8, bases=["trend", "season"])(torch.zeros(2, 12, 3)).shape
    torch.Size([2, 4, 3, 1])
    """

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 1, *,
                 bases: list[str] | None = None, blocks: int = 2, hidden: int = 64, degree: int = 3):  # fmt: skip
        super().__init__(context, horizon, channels, known, outputs)
        check_width("NBeats", blocks=blocks, hidden=hidden, degree=degree)
        chosen = ["generic", "generic"] if bases is None else list(bases)
        wrong = [basis for basis in chosen if basis not in BASES]
        if wrong or not chosen:
            raise WonderlandError(f"NBeats has the bases {', '.join(BASES)}, not {wrong[0] if wrong else 'none'}.")
        if outputs != 1:
            raise WonderlandError("NBeats forecasts one number for each step: choose the loss mse or mae.")
        self.blocks = nn.ModuleList(
            NBeatsBlock(context, horizon, hidden, basis, degree) for basis in chosen for _ in range(blocks)
        )

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        level = x[:, -1:]
        rest = (x - level).transpose(1, 2)
        total = rest.new_zeros(*rest.shape[:2], self.horizon)
        for block in self.blocks:
            explained, forecast = block(rest)
            rest, total = rest - explained, total + forecast
        return (total.transpose(1, 2) + level)[..., None]


def trend_basis(context: int, horizon: int, degree: int) -> tuple[Tensor, Tensor]:
    """Powers of time up to a degree: (degree + 1, context) and (degree + 1, horizon)."""
    power = torch.arange(degree + 1.0)[:, None]
    return (torch.arange(context) / context) ** power, (torch.arange(horizon) / horizon) ** power


def season_basis(context: int, horizon: int) -> tuple[Tensor, Tensor]:
    """Sines and cosines whose lengths divide the horizon: (2 k, context) and (2 k, horizon)."""
    waves = torch.arange(max(1, math.ceil(horizon / 2 - 1)) + 1.0)[:, None]

    def basis(steps: Tensor) -> Tensor:
        angle = 2 * math.pi * waves * steps / horizon
        return torch.cat([torch.cos(angle), torch.sin(angle)])

    return basis(torch.arange(context) - float(context)), basis(torch.arange(horizon).float())
