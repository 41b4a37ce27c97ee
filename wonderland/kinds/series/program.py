"""Series as inputs of an exported model: values in the scale of the data, which are filled, scaled and dated inside."""

import math
from typing import Any

import torch
from torch import Tensor

from wonderland.data.ports import Port, Preprocessing
from wonderland.kinds.series.stamps import DAY

LAST_ERA = 3.0  # fitted on everything


class SeriesProgram(Preprocessing):
    """What `Windows.take` gives a model for the steps after a context: x, known and about.

    Missing values are NaN; steps before the first known one are taken as equal to it. The name of a series finds its scale; one that
    was not learned is scaled by its context.
    """

    mean: Tensor
    scale: Tensor
    offsets: Tensor
    periods: Tensor
    turn: Tensor
    covariate_mean: Tensor
    covariate_scale: Tensor

    def __init__(self, encoder: Any):
        layout, geometry = encoder.layout, encoder.geometry
        super().__init__(tuple(ports_of(encoder)))
        self.dated, self.named = layout.frequency.dated, layout.series is not None
        self.covariates, self.held = len(layout.covariates), layout.known_count
        self.context, self.horizon, self.season = geometry.context, geometry.horizon, layout.season
        # As tensors: the exporter writes numbers of a program in float32, where a day of this century has errors.
        cycles = torch.tensor(cycles_of(layout.frequency), dtype=torch.float64).reshape(-1, 2)
        self.register_buffer("offsets", cycles[:, 0], persistent=False)
        self.register_buffer("periods", cycles[:, 1], persistent=False)
        self.register_buffer("turn", torch.tensor(2 * math.pi, dtype=torch.float64), persistent=False)
        ones = torch.ones(1, len(layout.targets), dtype=torch.float64)
        for name, first in (("mean", 0 * ones), ("scale", ones)):
            self.register_buffer(name, torch.cat([first, encoder.saved[name]]), persistent=False)
        for name in ("covariate_mean", "covariate_scale"):
            self.register_buffer(name, encoder.saved[name], persistent=False)

    def forward(self, *values: Tensor) -> Any:
        given = dict(zip((port.name for port in self.ports), values, strict=True))
        raw = given["context"]
        row = given["series"] if self.named else torch.ones_like(raw[:, 0, 0]).long()
        new, (own_mean, own_scale) = (row == 0)[:, None], own_scales(raw)
        mean, scale = torch.where(new, own_mean, self.mean[row]), torch.where(new, own_scale, self.scale[row])
        x = ((filled_tensor(raw, self.season) - mean[:, None]) / scale[:, None]).float()
        known = [self.calendar(given["times"])] if self.dated else []
        known += [self.along(given["covariates"])] if self.covariates else []
        joined = torch.cat(known, -1) if known else x.new_zeros(x.shape[0], self.context + self.horizon, 0)
        return x, joined, torch.cat([torch.full_like(mean[:, :1], LAST_ERA), mean, scale], 1)

    def along(self, covariates: Tensor) -> Tensor:
        """Scaled covariates along context and horizon; those of the past keep their last value."""
        scaled = forward_filled((covariates - self.covariate_mean) / self.covariate_scale).float()
        before, ahead = scaled.split((self.context, self.horizon), 1)
        past = before[:, -1:, self.held :].expand(-1, self.horizon, -1)
        return torch.cat([before, torch.cat([ahead[..., : self.held], past], 2)], 1)

    def calendar(self, seconds: Tensor) -> Tensor:
        """`Frequency.calendar` of stamps: (rows, steps, k)."""
        turns = self.turn * ((seconds.double() / DAY).unsqueeze(-1) + self.offsets) / self.periods
        return torch.stack([turns.sin(), turns.cos()], -1).flatten(2).float()


def ports_of(encoder: Any) -> list[Port]:
    """The inputs: values of a context, and stamps, covariates and the name where the data have them."""
    layout, geometry = encoder.layout, encoder.geometry
    context, along = geometry.context, geometry.context + geometry.horizon
    about = f"the last {context} steps of {', '.join(layout.targets)}; NaN if missing"
    ports = [Port("context", "double", ("rows", context, len(layout.targets)), about=about)]
    if layout.frequency.dated:
        about = f"seconds since 1970 of {context} steps of context and {geometry.horizon} of the horizon"
        ports.append(Port("times", "int64", ("rows", along), about=about))
    if layout.covariates:
        about = f"{', '.join(layout.covariates)} along context and horizon; NaN if missing"
        ports.append(Port("covariates", "double", ("rows", along, len(layout.covariates)), about=about))
    if layout.series is not None:
        codes = {name: i + 1 for i, name in enumerate(encoder.names)}
        ports.append(Port("series", "string", codes=codes, about="the name of the series"))
    return ports


def cycles_of(frequency: Any) -> list[tuple[float, float]]:
    """Offset and length in days of the cycles that change along the grid, as in `Frequency.calendar`."""
    if not frequency.dated:
        return []
    seconds, business = frequency.unit == "second", frequency.unit == "business day"
    cycles = [(0.0, 1.0)] if seconds and frequency.step < DAY else []
    cycles += [(3.0, 7.0)] if business or (seconds and frequency.step < 7 * DAY) else []
    return cycles + ([] if frequency.unit == "month" and frequency.step >= 12 else [(0.0, 365.2425)])


def own_scales(raw: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the known values of each context: (rows, columns) each."""
    known = ~torch.isnan(raw)
    count = known.sum(1).clamp(min=1)
    mean = torch.where(known, raw, 0.0).sum(1) / count
    scale = (torch.where(known, raw - mean[:, None], 0.0).square().sum(1) / count).sqrt()
    return mean, torch.where(scale > 1e-12 * mean.abs().clamp(min=1.0), scale, 1.0)


def forward_filled(x: Tensor) -> Tensor:
    """Missing values along axis 1 replaced by the last known one, 0 before the first: (rows, t, ...).

    >>> forward_filled(torch.tensor([[torch.nan, 2.0, torch.nan]]))
    tensor([[0., 2., 2.]])
    """
    t, rest = x.shape[1], (1,) * (x.dim() - 2)
    known = ~torch.isnan(x)
    place = torch.arange(t, device=x.device)
    seen = known.unsqueeze(1) & (place <= place[:, None]).reshape(1, t, t, *rest)
    last = torch.where(seen, place.reshape(1, 1, t, *rest), -1).amax(2)
    values = torch.where(known, x, 0.0).gather(1, last.clamp(min=0))
    return torch.where(last < 0, 0.0, values)


def filled_tensor(raw: Tensor, season: int) -> Tensor:
    """`grid.filled` of contexts (rows, t, c): the value a season before; in the first season, the last one."""
    t = raw.shape[1]
    first = (~torch.isnan(raw)).any(2).long().argmax(1)[:, None]
    begun = torch.maximum(torch.arange(t, device=raw.device), first)
    raw = raw.gather(1, begun[..., None].expand(-1, -1, raw.shape[2]))
    if season <= 1 or season >= t:
        return forward_filled(raw)
    rounds = -(-t // season)
    spare = torch.full_like(raw[:, :1], torch.nan).expand(-1, rounds * season - t, -1)
    seasons = torch.cat([forward_filled(raw[:, :season]), raw[:, season:], spare], 1).unflatten(1, (rounds, season))
    return forward_filled(seasons).flatten(1, 2)[:, :t]
