"""Options of series."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions


@dataclass(frozen=True)
class Options(KindOptions):
    """Numbers over time, to be continued: one or many series, one or all columns, with intervals for each step ahead."""

    target: str | None = option(
        help="the column to predict (default: inferred); for series also several, with commas between, or all",
        metavar="COLUMN",
    )
    time: str | None = option(
        help="the column of times: a table is split by it, a series runs along it (default for series: by its name)",
        metavar="COLUMN",
    )
    horizon: int | None = option(
        help="forecast so many steps ahead (default for series: one season); for environments, steps between two updates",
        least=1,
        most=100_000,
    )
    series: str | None = option(help="the column that names the series, where there are several", metavar="COLUMN")
    known: tuple[str, ...] = option(
        (), help="a column whose future values are known, such as a holiday; may be repeated", metavar="COLUMN"
    )
    past: tuple[str, ...] = option(
        (), help="a column that is measured beside the target, up to now; may be repeated", metavar="COLUMN"
    )
    season: int | None = option(help="steps of a season (default: detected; 1 for none)", least=1, most=10_000)
    context: int | None = option(help="how many past steps a forecast reads", metavar="STEPS", least=1, most=100_000)
    loss: str | None = option(
        help="what a forecasting model learns (default mse): a mean, quantiles, or the parameters of a distribution",
        choices=("mse", "mae", "quantile", "gaussian", "student", "negative_binomial"),
    )


@dataclass(frozen=True)
class PredictOptions:
    """What can be said to predict for a run of this kind."""

    anomalies: float | None = option(
        help="score the steps of DATA and flag those as unusual as at most this share of ordinary steps, such as 0.01",
        above=0,
        most=0.5,
    )
