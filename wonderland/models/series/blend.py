"""ForecastBlend: cheap forecasts, each fitted in closed form or by a small search, weighted by their validation errors."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.series.forecaster import Forecaster, baseline
from wonderland.models.series.smoothing import fit_smoothing, seasonal, smooth
from wonderland.ops.over_time import is_exporting

PERIODS = 4  # of fitting: the training part, and validation, and calibration, and everything
NAMES = (
    "last",
    "season",
    "long season",
    "smoothing",
    "log smoothing",
    "autoregression",
    "log autoregression",
    "linear",
    "log linear",
)
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
SEARCHED = 192  # windows that settings of smoothing are searched on
CHANGES = 200_000  # steps that effects of what is known ahead are fitted to
FLOOR = 1e-9

Windows = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # x, y, mask, about and known of windows


@part
class ForecastBlend(Forecaster):
    r"""A weighted mean of cheap forecasts.

    .. math:: \hat y = \sum_j w_j f_j(x), \qquad w \ge 0, \quad \sum_j w_j = 1

    `forecasts` names them: "last" value, "season" before, a "long season" before (a week of hours, where the season is a day), exponential "smoothing", "autoregression" (one step ahead, iterated),
    "linear" (each step from the whole context); with "log ", of the logarithm of the values. Each has its weights four times: fitted
    to the training part, to validation as well, to calibration as well, and to everything, and a window takes the latest ones that
    were fitted before it (`about`). The shares w come from errors on windows before it, too. Columns share weights.

    Shapes: x (b, context, c), known (b, context + horizon, k) -> (b, horizon, c, 1). Papers: Winters, 1960; Bates and Granger, 1969;
    Toner and Darlow, 2024.

    >>> model = ForecastBlend(context=8, horizon=3, season=4, forecasts=["last", "season"])
    >>> model(torch.arange(8.0).reshape(1, 8, 1))[0, :, 0, 0].tolist()
    [5.5, 6.0, 6.5]
    """

    def __init__(self, context: int, horizon: int, channels: int = 1, known: int = 0, outputs: int = 1, *, season: int = 1, long_season: int = 1,
                 forecasts: Sequence[str] = ("last", "season", "smoothing", "autoregression", "linear")):  # fmt: skip
        super().__init__(context, horizon, channels, known, outputs)
        if outputs != 1:
            raise WonderlandError("ForecastBlend forecasts one number for each step: leave loss out, or say mse.")
        unknown = [name for name in forecasts if name not in NAMES]
        if unknown or not forecasts:
            raise WonderlandError(
                f"A ForecastBlend is made of {', '.join(NAMES)}, not {unknown[0] if unknown else 'nothing'}."
            )
        self.forecasts, self.season, self.long_season = tuple(forecasts), season, long_season
        self.lags = lags(context, season)
        self.shares = nn.Parameter(torch.full((PERIODS, len(forecasts)), 1 / len(forecasts)))
        if known:
            self.effects = nn.Parameter(torch.zeros(PERIODS, 2, known, channels))  # of values, and of their logarithms
        self.weights = nn.ParameterDict()
        for name in self.forecasts:
            shape = self._shape(name)
            if shape is not None:
                self.weights[name.replace(" ", "_")] = nn.Parameter(torch.zeros(PERIODS, *shape))

    def _shape(self, name: str) -> tuple[int, ...] | None:
        kind = name.removeprefix("log ")
        return {
            "smoothing": (4,),
            "autoregression": (len(self.lags) + 2,),
            "linear": (self.horizon, self.context + 2),
        }.get(kind)

    def forward(self, x: Tensor, known: Tensor | None = None, about: Tensor | None = None) -> Tensor:
        # In double precision: single precision is as coarse as intervals of series that are forecast well are narrow, and other
        # libraries round it otherwise.
        x, known = x.double(), None if known is None else known.double()
        if is_exporting():
            return self._exported(x, known, about)
        period = self.periods(x, about)
        total = x.new_zeros(x.shape[0], self.horizon, x.shape[2])
        for i, name in enumerate(self.forecasts):
            shares = self.shares[period, i]
            if bool((shares > 0).any()):
                with torch.no_grad():  # these weights are fitted without gradients
                    forecast = self.one(name, x, about, known).to(x.dtype)
                total = total + shares[:, None, None] * forecast
        return total[..., None]

    def _exported(self, x: Tensor, known: Tensor | None, about: Tensor | None) -> Tensor:
        """`forward` by the weights of the last period, which are those for steps after the data; nothing depends on a value."""
        total = x.new_zeros(x.shape[0], self.horizon, x.shape[2])
        for i, name in enumerate(self.forecasts):
            rows, back = (
                logarithm(x.transpose(1, 2), about) if name.startswith("log ") else (x.transpose(1, 2), unchanged)
            )
            effect = None
            if known is not None and self.known:
                effect = (known @ self.effects[-1, int(name.startswith("log "))].to(known.dtype)).transpose(1, 2)
                rows = rows - effect[..., : self.context].to(rows.dtype)
            forecast = (
                self.forecast(name, rows.flatten(0, 1), PERIODS - 1).to(rows.dtype).unflatten(0, (-1, rows.shape[1]))
            )
            if effect is not None:
                forecast = forecast + effect[..., self.context :].to(rows.dtype)
            share = self.shares[-1, i]
            total = total + torch.where(share > 0, share * back(forecast).transpose(1, 2).to(x.dtype), 0.0)
        return total[..., None]

    def periods(self, x: Tensor, about: Tensor | None) -> Tensor:
        """The period of fitting of each window: (b,); the last one where nothing is said."""
        return torch.full((x.shape[0],), PERIODS - 1) if about is None else about[:, 0].long().clamp(0, PERIODS - 1)

    def one(self, name: str, x: Tensor, about: Tensor | None, known: Tensor | None = None) -> Tensor:
        """One forecast: (b, context, c) -> (b, horizon, c)."""
        rows = x.transpose(1, 2)
        period = self.periods(x, about)
        rows, back = logarithm(rows, about) if name.startswith("log ") else (rows, unchanged)
        effect = self.effect(name, known, period)
        if effect is not None:
            rows = rows - effect[..., : self.context].to(rows.dtype)
        forecast = torch.empty(*rows.shape[:2], self.horizon, dtype=rows.dtype)
        for era in period.unique().tolist():
            chosen = period == era
            flat = rows[chosen].flatten(0, 1)
            forecast[chosen] = self.forecast(name, flat, era).to(rows.dtype).unflatten(0, (-1, rows.shape[1]))
        if effect is not None:
            forecast = forecast + effect[..., self.context :].to(rows.dtype)
        return back(forecast).transpose(1, 2)

    def effect(self, name: str, known: Tensor | None, period: Tensor | int) -> Tensor | None:
        """The effects of what is known ahead, along context and horizon: (b, c, context + horizon); None where there are none."""
        if known is None or not self.known or not bool(self.effects.any()):
            return None
        weight = self.effects[period, int(name.startswith("log "))].to(known.dtype)
        return (known @ weight).transpose(1, 2)

    def forecast(self, name: str, rows: Tensor, era: int) -> Tensor:
        """One forecast of rows (n, context) by the weights of one period: (n, horizon)."""
        kind = name.removeprefix("log ")
        if kind == "last":
            return seasonal(rows, self.horizon, 1)
        if kind in ("season", "long season"):
            return seasonal(rows, self.horizon, self.season if kind == "season" else self.long_season)
        weight = self.weights[name.replace(" ", "_")][era]
        return self._applied(kind, rows, weight.to(rows.dtype))

    def _applied(self, kind: str, rows: Tensor, weight: Tensor) -> Tensor:
        """The forecast of a kind by some weights: (n, context) -> (n, horizon)."""
        if kind == "smoothing":
            return smooth(rows, self.horizon, self.season, weight[None])
        if kind == "autoregression":
            return iterate(rows, self.horizon, self.season, self.lags, weight)
        return linear(rows, self.horizon, self.season, weight)

    @torch.no_grad()
    def fit(
        self,
        name: str,
        windows: Callable[[int], Windows],
        validation: Windows,
    ) -> None:
        """Fit one forecast for every period; `windows(period)` and `validation` are x, y, mask, about and known of windows.

        How strongly weights are shrunk is chosen on the validation windows.
        """
        kind = name.removeprefix("log ")
        if kind in ("last", "season", "long season"):
            return
        target = self.weights[name.replace(" ", "_")]
        if kind == "smoothing":
            for era in range(PERIODS):
                x, y, mask = self._rows(name, windows(era), era, SEARCHED)
                target[era] = fit_smoothing(x, y, mask, self.season).to(target.dtype)
            return
        gram = self._autoregression if kind == "autoregression" else self._linear
        best, least = None, float("inf")
        x, y, mask = self._rows(name, validation, 0)
        systems = gram(*self._rows(name, windows(0), 0))
        for system in range(len(systems)):
            for ridge in RIDGES:
                weight = self._shaped(kind, solve(*systems[system], ridge, system))
                forecast = self._applied(kind, x, weight.to(x.dtype))
                error = float(torch.where(mask, forecast - y, 0.0).square().sum())
                if error < least:
                    best, least = (system, ridge), error
        assert best is not None
        for era in range(PERIODS):
            systems = systems if era == 0 else gram(*self._rows(name, windows(era), era))
            target[era] = self._shaped(kind, solve(*systems[best[0]], best[1], best[0])).to(target.dtype)

    def _shaped(self, kind: str, weight: Tensor) -> Tensor:
        return weight[0] if kind == "autoregression" else weight

    @torch.no_grad()
    def fit_effects(self, windows: Callable[[int], Windows], validation: Windows) -> None:
        """Fit the effects of what is known ahead, from the changes of values over a season and those of what is known.

        They are kept where they lower the squared error of the season before on validation windows by more than 2 %.
        """
        if not self.known:
            return
        for log, name in enumerate(("season", "log season")):
            if not any(other.startswith("log ") for other in self.forecasts) and log:
                continue
            features, change = self._changes(name, validation)
            gram, target = normal_equations(*self._changes(name, windows(0)))
            error = {
                ridge: float((change - features @ solve(gram, target, ridge, 0)[:, :-1].T).square().sum())
                for ridge in RIDGES
            }
            best = min(error, key=error.__getitem__)
            plain = float((change - change.mean(0)).square().sum())
            if error[best] > 0.98 * plain:
                continue
            for era in range(PERIODS):
                if era:
                    gram, target = normal_equations(*self._changes(name, windows(era)))
                self.effects[era, log] = solve(gram, target, best, 0)[:, :-2].T.to(self.effects.dtype)

    def _changes(self, name: str, windows: Windows) -> tuple[Tensor, Tensor]:
        """Changes over a season of what is known, and 1: (n, k + 1); and of values: (n, c)."""
        x, y, mask, about, known = thinned(windows, max(64, CHANGES // self.horizon))
        x, y = self._scaled(name, x, y, about)
        known = known.double()
        features = known[:, self.context :] - baseline(known[:, : self.context], self.horizon, self.season)
        change = y - seasonal(x.flatten(0, 1), self.horizon, self.season).unflatten(0, x.shape[:2])
        full = mask.all(2)
        features = torch.cat([features, torch.ones_like(features[..., :1])], 2)[full]
        return features, change.transpose(1, 2)[full]

    def _scaled(self, name: str, x: Tensor, y: Tensor, about: Tensor) -> tuple[Tensor, Tensor]:
        """Context and horizon in the scale in which a forecast works: (b, c, context) and (b, c, horizon)."""
        x, y = x.double().transpose(1, 2), y.double().transpose(1, 2)
        if name.startswith("log "):
            joined, _ = logarithm(torch.cat([x, y], -1), about)
            x, y = joined[..., : x.shape[-1]], joined[..., x.shape[-1] :]
        return x, y

    def _rows(self, name: str, windows: Windows, era: int, most: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Windows as rows of one column each, in the scale in which the forecast works, without the effects of what is known."""
        if most is not None:
            windows = thinned(windows, max(1, most // windows[0].shape[2]))
        x, y, mask, about, known = windows
        x, y = self._scaled(name, x, y, about)
        effect = self.effect(name, known, era)
        if effect is not None:
            x, y = x - effect[..., : self.context].double(), y - effect[..., self.context :].double()
        return x.flatten(0, 1), y.flatten(0, 1), mask.transpose(1, 2).flatten(0, 1)

    def _linear(self, x: Tensor, y: Tensor, mask: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Normal equations of the linear forecast: as a change of the level, and as a change of the season before."""
        full = mask.all(1)
        x, y = x[full], y[full]
        level = levels(x, self.season)
        features = torch.cat([x - level, torch.ones_like(level)], 1)
        gram = features.T @ features
        return [(gram, features.T @ (y - level)), (gram, features.T @ (y - seasonal(x, self.horizon, self.season)))]

    def _autoregression(self, x: Tensor, y: Tensor, mask: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Normal equations of one step ahead: as a change of the level, and as a change of the value one season before."""
        full = mask[:, 0]
        x, first = x[full], y[full][:, :1]
        level = levels(x, self.season)
        features = torch.cat([x[:, [-lag for lag in self.lags]] - level, torch.ones_like(level)], 1)
        gram = features.T @ features
        return [(gram, features.T @ (first - level)), (gram, features.T @ (first - seasonal(x, 1, self.season)))]


def thinned(windows: Windows, most: int) -> Windows:
    """At most so many windows, evenly chosen."""
    if len(windows[0]) <= most:
        return windows
    chosen = torch.linspace(0, len(windows[0]) - 1, most).long()
    x, y, mask, about, known = (part[chosen] for part in windows)
    return x, y, mask, about, known


def normal_equations(features: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The two sides of the normal equations of least squares."""
    return features.T @ features, features.T @ targets


def lags(context: int, season: int) -> list[int]:
    """Lags of the autoregression: the latest steps, and those around one and two seasons before."""
    near = range(1, min(context, max(4, min(season + 2, 26))) + 1)
    far = [lag for times in (1, 2) for lag in (times * season - 1, times * season, times * season + 1)]
    return sorted({*near, *(lag for lag in far if season > 1 and 1 <= lag <= context)})


def levels(x: Tensor, season: int) -> Tensor:
    """The mean of the last season: (n, t) -> (n, 1)."""
    return x[:, -min(season, x.shape[1]) :].mean(1, keepdim=True)


def linear(x: Tensor, horizon: int, season: int, weight: Tensor) -> Tensor:
    """The linear forecast: (n, t) and weights (h, t + 2), the last of which says whether it starts from the season before."""
    level = levels(x, season)
    start = torch.where(weight[0, -1] > 0.5, seasonal(x, horizon, season), level)
    return start + (x - level) @ weight[:, :-2].T + weight[:, -2]


def iterate(x: Tensor, horizon: int, season: int, lags: list[int], weight: Tensor) -> Tensor:
    """The autoregression, step after step from its own forecasts: (n, t) and weights (lags + 2), the last as in `linear`."""
    level, own, bias, starts = levels(x, season), weight[:-2], weight[-2], weight[-1] > 0.5
    seasonal_start = None if is_exporting() else bool(starts)  # exported programs do not branch on a value
    along = list((x - level).unbind(1))
    back = [lag - 1 for lag in lags]
    ring = season if len(along) >= season else 1
    for _ in range(horizon):
        recent = torch.stack([along[-1 - place] for place in back], 1)
        value = recent @ own + bias
        if seasonal_start is None:
            value = torch.where(starts, along[-ring] + value, value)
        along.append(along[-ring] + value if seasonal_start else value)
    # A recursion that grows without bound says nothing: it is kept within a few times the range of the context.
    limit = 4 * (x - level).abs().amax(1, keepdim=True) + FLOOR
    return level + torch.minimum(torch.maximum(torch.stack(along[-horizon:], 1), -limit), limit)


def logarithm(rows: Tensor, about: Tensor | None) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The logarithm of values in the scale of the data, and the way back: (b, c, t) in the scale of each series."""
    c = rows.shape[1]
    if about is None:
        mean, scale = rows.new_zeros(1, c, 1).double(), rows.new_ones(1, c, 1).double()
    else:
        mean, scale = about[:, 1 : 1 + c, None].double(), about[:, 1 + c : 1 + 2 * c, None].double()
    least = 1e-3 * (mean.abs() + scale)
    logs = torch.maximum(rows.double() * scale + mean, least).log()
    top = logs.amax(-1, keepdim=True) + 2.0

    def back(log_forecast: Tensor) -> Tensor:
        return ((torch.minimum(log_forecast.double(), top).exp() - mean) / scale).to(rows.dtype)

    return logs, back


def unchanged(forecast: Tensor) -> Tensor:
    """The way back from the scale of each series: none."""
    return forecast


def solve(gram: Tensor, target: Tensor, ridge: float, start: int) -> Tensor:
    """Weights (outputs, features + 1) of ridge regression, the bias among the features unshrunk; the last column is `start`."""
    size = gram.diagonal()[:-1].mean().clamp_min(FLOOR)
    shrink = torch.full((len(gram),), ridge, dtype=gram.dtype) * size
    shrink[-1] = FLOOR * size
    weight = torch.linalg.solve(gram + torch.diag(shrink), target).T
    return torch.cat([weight, torch.full((len(weight), 1), float(start), dtype=gram.dtype)], 1)


@torch.no_grad()
def shares_of(errors: Tensor, overlap: int) -> Tensor:
    r"""Weights of forecasts from their validation errors: of those near the best, and nearer to equal where there are few windows.

    The weights with the least squared error are mixed with weights :math:`\propto 1 / \text{MAE}^3`, which count as 30 windows; forecasts
    whose absolute error is more than twice the least have none. Shapes: errors (n, forecasts, k), of windows of which `overlap` share
    their steps -> (forecasts,). Papers: Bates and Granger, 1969; Clemen, 1989 (equal weights are hard to beat).
    """
    gram = torch.einsum("nrk,nsk->rs", errors, errors).double() / max(1, errors.shape[0])
    size = errors.abs().mean((0, 2)).double().clamp_min(FLOOR)
    prior = torch.where(size <= 2 * size.min(), (size.min() / size) ** 3, 0.0)
    prior, kept = prior / prior.sum(), prior > 0
    shares = prior.clone()
    step = 1 / gram.abs().max().clamp_min(FLOOR)
    for _ in range(1000):
        gradient = gram @ shares
        shares = torch.where(kept, shares * torch.exp(-step * (gradient - shares @ gradient)), 0.0)
        shares = shares / shares.sum()
    alone = errors.shape[0] / max(1, overlap)
    mixed = (alone * shares + 30 * prior) / (alone + 30)
    mixed = torch.where(mixed < 0.01, 0.0, mixed)
    return mixed / mixed.sum()
