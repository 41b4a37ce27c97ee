"""Forecast: the next steps of series, as numbers or distributions, with conformal intervals for each step."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.models.series.forecaster import baseline
from wonderland.ops.softplus import softplus
from wonderland.tasks.forecast_answers import ForecastAnswers
from wonderland.tasks.forecast_measures import QUANTILES, Measures
from wonderland.tasks.forecast_trust import FEW, UNITS, ForecastTrust, usual_sizes
from wonderland.tasks.forecast_units import scales, unit_tensor
from wonderland.tasks.losses import absolute, gaussian_nll, negative_binomial_nll, quantile, squared, student_nll
from wonderland.tasks.task import Task
from wonderland.tasks.view import View
from wonderland.trust.conformal import check_level
from wonderland.understand.format import number, percent
from wonderland.understand.sections import SECTIONS, Section
from wonderland.understand.sections.forecast import backtest, forecast

LOSSES = {"mse": 1, "mae": 1, "quantile": 9, "gaussian": 2, "student": 3, "negative_binomial": 2}
LEVELS = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
ALONE = 10  # windows that share no step; with fewer of them in the calibration part, validation serves as well
WATCHED, DRAWN, LEAST_SPREAD = 2000, 8, 1e-3


@part
class Forecast(Task):
    r"""Forecast `horizon` steps of `channels` columns.

    A model gives (b, horizon, channels, outputs), in the scale of each series; `loss` says what the outputs are: the mean (mse), the
    median (mae), nine quantiles, mean and log variance (gaussian), location, log scale and degrees of freedom (student), or mean and
    dispersion of counts (negative_binomial). Missing targets are masked. Intervals are conformal for each step, in the unit of the
    predicted spread where the model predicts one. Naive forecasts (the last value, and the value one season before) are measured
    beside the model. Book: Alice 8; D2L 9.1. Paper for the likelihoods: Salinas et al., 2020.

    >>> Forecast(horizon=24, channels=1, loss="gaussian").outputs
    2
    """

    name, watch, unit = "forecast", "loss", "window"

    def __init__(self, horizon: int, channels: int = 1, season: int = 1, loss: str = "mse"):
        sizes = (horizon, channels, season)
        if not all(isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= 200_000 for size in sizes):
            raise WonderlandError(
                f"A Forecast needs at least one step, one column and a season of at least 1, not {sizes}."
            )
        if loss not in LOSSES:
            raise WonderlandError(f"A Forecast learns one of {', '.join(LOSSES)}, not {loss!r}.")
        self.horizon, self.channels, self.season, self.kind = horizon, channels, season, loss
        self.outputs = LOSSES[loss]

    def arguments(self) -> dict[str, Any]:
        return {"horizon": self.horizon, "channels": self.channels, "season": self.season, "loss": self.kind}

    def model_arguments(self) -> dict[str, Any]:
        return {"horizon": self.horizon, "channels": self.channels, "outputs": self.outputs, "season": self.season}

    def inputs(self, batch: Batch) -> tuple[Any, ...]:
        return (batch["x"], batch["known"], batch["about"])

    def outputs_of(self, model: nn.Module, batch: Batch) -> Tensor:
        """What the model gives for a batch: (b, horizon, channels, outputs)."""
        outputs = model(*self.inputs(batch))
        return outputs[..., None] if outputs.dim() == 3 and self.outputs == 1 else outputs

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        mask = batch["mask"]
        weight = float(mask.sum())
        if hasattr(model, "training_outputs"):
            outputs = model.training_outputs(*self.inputs(batch), batch["y"])  # pyright: ignore
        else:
            outputs = self.outputs_of(model, batch)
        if not weight:
            return outputs.sum() * 0, 0.0
        return self.loss_of(outputs, batch["y"].to(outputs.dtype), mask, batch["about"]), weight

    def loss_of(self, outputs: Tensor, y: Tensor, mask: Tensor, about: Tensor) -> Tensor:
        """The mean loss over known targets."""
        first = outputs[..., 0]
        if self.kind == "mse":
            return squared(first, y, mask=mask)
        if self.kind == "mae":
            return absolute(first, y, mask=mask)
        if self.kind == "quantile":
            outputs = ordered(outputs)
            losses = [quantile(outputs[..., i], y, level=level, mask=mask) for i, level in enumerate(LEVELS)]
            return 2 * torch.stack(losses).mean()
        if self.kind == "gaussian":
            return gaussian_nll(first, y, log_variance=outputs[..., 1].clamp(-12, 12), mask=mask)
        if self.kind == "student":
            return student_nll(
                first, y, log_scale=outputs[..., 1].clamp(-8, 8), freedom=2 + F.softplus(outputs[..., 2]), mask=mask
            )
        mean, scale = scales(about, self.channels)
        rate, dispersion = counts(outputs, mean, scale)
        truth = (y * scale + mean).round().clamp_min(0).to(outputs.dtype)
        return negative_binomial_nll(rate, truth, dispersion=dispersion, mask=mask)

    def point_forecasts(self, outputs: Tensor, about: Tensor) -> tuple[ndarray, ndarray]:
        """Forecasts and their spread in the scale of the data: (b, horizon, channels) each."""
        forecasts, spread = self.located(outputs, about)
        return forecasts.numpy(), spread.numpy()

    def located(self, outputs: Tensor, about: Tensor) -> tuple[Tensor, Tensor]:
        """`point_forecasts` as tensors."""
        mean, scale = (part.double() for part in scales(about, self.channels))
        outputs = outputs.double()
        if self.kind == "negative_binomial":
            rate, dispersion = counts(outputs, mean, scale)
            return rate, torch.sqrt(rate + dispersion * rate.square())
        middle, spread = outputs[..., 0], torch.ones_like(outputs[..., 0])
        if self.kind == "quantile":
            outputs = ordered(outputs)
            middle, spread = outputs[..., 4], (outputs[..., 6] - outputs[..., 2]) / 2.563
        elif self.kind == "gaussian":
            spread = (outputs[..., 1].clamp(-12, 12) / 2).exp()
        elif self.kind == "student":
            spread = outputs[..., 1].clamp(-8, 8).exp()
        return middle * scale + mean, spread.clamp_min(LEAST_SPREAD) * scale

    def walk(
        self, view: View, part: Any = None, most: int | None = None, unit: str = "scale"
    ) -> Iterator[tuple[Any, Batch, ndarray, ndarray, ndarray]]:
        """Batches of a part: the windows, the batch, forecasts, spreads, and true values (n, h, c) in the scale of the data."""
        # Spreads are relative to the unit in which intervals were calibrated.
        examples: Any = view.examples
        series, origins = examples.rows(view.part if part is None else part)
        if most is not None and len(origins) > most:
            chosen = np.linspace(0, len(origins) - 1, most).astype(np.int64)
            series, origins = series[chosen], origins[chosen]
        view.model.eval()
        size = max(1, min(512, 1_000_000 // (self.horizon * self.channels)))
        with torch.inference_mode():
            for first in range(0, len(origins), size):
                rows = (series[first : first + size], origins[first : first + size])
                batch = examples.take(rows)
                outputs = self.outputs_of(view.model, batch)
                forecasts, spread = self.point_forecasts(outputs, batch["about"])
                spread = spread * unit_of(unit, batch, self.season, self.channels)
                yield rows, batch, forecasts, spread, examples.targets(rows)

    def measure(self, view: View) -> dict[str, float]:
        measures, loss, weight = Measures(self.horizon, self.channels), 0.0, 0.0
        examples: Any = view.examples
        for rows, batch, forecasts, _, truth in self.walk(view, most=WATCHED):
            measures.add(truth, forecasts, examples.naive[rows[0]], examples.scale[rows[0]])
            with torch.inference_mode():
                outputs, count = self.outputs_of(view.model, batch), float(batch["mask"].sum())
                if count:
                    loss += (
                        float(self.loss_of(outputs, batch["y"].to(outputs.dtype), batch["mask"], batch["about"]))
                        * count
                    )
                    weight += count
        return {"loss": loss / weight if weight else 0.0, "mae": measures.mean(measures.absolute) or 0.0}

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        shape, wanted = (
            tuple(self.outputs_of(model, batch).shape),
            (len(batch), self.horizon, self.channels, self.outputs),
        )
        if shape != wanted:
            return f"returns {shape} for two windows, where this task needs {wanted}"
        return None

    def errors(self, view: View, most: int | None = None) -> dict[str, tuple[ndarray, ndarray]]:
        """Errors (n, h, c) in each unit that intervals may have, NaN where the truth is unknown; and the units (n, 1, c)."""
        kept_errors: dict[str, list[tuple[ndarray, ndarray]]] = {unit: [] for unit in UNITS}
        for _, batch, forecasts, spread, truth in self.walk(view, most=most):
            for unit, kept in kept_errors.items():
                size = np.broadcast_to(unit_of(unit, batch, self.season, self.channels), (len(truth), 1, self.channels))
                kept.append(((truth - forecasts) / (spread * size), size))
        return {
            unit: (np.concatenate([errors for errors, _ in kept]), np.concatenate([size for _, size in kept]))
            for unit, kept in kept_errors.items()
        }

    def calibrate(self, validation: View, calibration: View, level: float) -> ForecastTrust:
        """From windows of the calibration part; of validation as well, where there are few.

        The unit is the one in which the errors of both parts are likeliest; how much the context changes is a noisy one, which counts
        only where there are many windows. Shares and penalties were chosen on the validation part, so its errors are scaled up where
        they are smaller than those of calibration.
        """
        most = max(FEW, 30_000_000 // (self.horizon * self.channels))
        before, errors = self.errors(validation, most), self.errors(calibration, most)
        few = len(errors["scale"][0]) < max(FEW, ALONE * self.horizon)
        units = [unit for unit in UNITS if not (few and unit == "changes")]
        unit = min(units, key=lambda name: (round(surprise(before[name], errors[name]), 6), UNITS.index(name)))
        chosen = errors[unit][0]
        if few:
            chosen = np.concatenate([raised(before[unit][0], chosen), chosen])
        return ForecastTrust.of(chosen, level, unit)

    def trust(self, saved: Any) -> ForecastTrust:
        return ForecastTrust.from_json(saved, self.horizon, self.channels)

    def evaluate(self, view: View, trust: ForecastTrust, level: float | None = None) -> dict[str, Any]:
        """Measures of every window of a part, rolling its origin step by step; naive forecasts beside it."""
        level = trust.level if level is None else check_level(level)
        measures = self.measures(view, trust, level)
        own, metrics = measures["model"], {}
        metrics = own.of_point() | own.of_distribution()
        for name in ("naive", "seasonal_naive"):
            metrics |= {
                f"{name}_{key}": value for key, value in measures[name].of_point().items() if key in ("mae", "mase")
            }
        metrics |= {"scaled_mse": own.mean(own.standard), "scaled_mae": own.mean(own.standard_absolute)}
        width = own.mean(own.width)
        note = (
            ""
            if width is not None
            else "There are too few calibration windows for intervals of this level: they are infinite."
        )
        conformal = {"level": level, "coverage": own.mean(own.inside), "mean_width": width, "note": note}
        return {"rows": view.count, "metrics": metrics, "conformal": conformal}

    def measures(self, view: View, trust: ForecastTrust, level: float) -> dict[str, Measures]:
        """Sums of errors of the model and of naive forecasts over a part."""
        examples: Any = view.examples
        measures = {name: Measures(self.horizon, self.channels) for name in ("model", "naive", "seasonal_naive")}
        radius, quantiles = trust.radius(level), trust.quantiles(QUANTILES)
        for rows, batch, forecasts, spread, truth in self.walk(view, unit=trust.unit):
            naive, scale = examples.naive[rows[0]], examples.scale[rows[0]]
            own = measures["model"]
            own.add(truth, forecasts, naive, scale)
            own.add_intervals(truth, forecasts - spread * radius, forecasts + spread * radius)
            own.add_quantiles(truth, forecasts + spread * quantiles[:, None])
            mean, unit = scales(batch["about"], self.channels)
            for name, season in (("naive", 1), ("seasonal_naive", self.season)):
                simple = baseline(batch["x"].double(), self.horizon, season) * unit.double() + mean.double()
                measures[name].add(truth, simple.numpy(), naive, scale)
        return measures

    def predictions(self, view: View, trust: ForecastTrust, level: float | None = None) -> pd.DataFrame:
        """A row for each step ahead of each series and column, with its interval; or scores of steps that are known."""
        level = trust.level if level is None else check_level(level)
        share = getattr(view.asked, "anomalies", None)
        if share is not None:
            return self.anomalies(view, trust, share)
        examples: Any = view.examples
        radius, tables = trust.radius(level), []
        for (series, origins), _, forecasts, spread, _ in self.walk(view, unit=trust.unit):
            low, high = forecasts - spread * radius, forecasts + spread * radius
            places = origins[:, None] + np.arange(self.horizon)
            tables.append(
                examples.table(series, places, {"prediction": forecasts, "low": low, "high": high}, steps=True)
            )
        return pd.concat(tables, ignore_index=True)

    def answers(self, trust: ForecastTrust, level: float) -> nn.Module | str:
        return ForecastAnswers(self, trust, level)

    def difference(self, table: pd.DataFrame, exported: Mapping[str, Any]) -> float:
        """Of forecasts and ends of intervals, in units of half the width of each interval, or of the size of the forecast."""
        columns = {name: table[name].to_numpy().reshape(exported[name].shape) for name in ("prediction", "low", "high")}
        size, width = np.abs(columns["prediction"]), (columns["high"] - columns["low"]) / 2
        unit = np.where(np.isfinite(width), np.maximum(width, 1e-3 * size), size)
        largest = 0.0
        for name, values in columns.items():
            gap = np.where(values == exported[name], 0.0, np.abs(values - exported[name]))
            largest = max(largest, float((gap / np.maximum(unit, 1e-12)).max(initial=0.0)))
        return largest

    def anomalies(self, view: View, trust: ForecastTrust, share: float) -> pd.DataFrame:
        """Each known step with its forecast one step ahead, a p-value, and whether it is at most `share`.

        Of steps that are as ordinary as the calibration part, at most this share is flagged on average.
        """
        examples: Any = view.examples
        least = math.ceil(1 / share) - 1
        if trust.first.shape[1] < least:
            raise WonderlandError(
                f"Flagging at most {share:g} of ordinary steps takes {least} calibration windows, and this run has {trust.first.shape[1]}: "
                f"allow a share of {1 / (1 + trust.first.shape[1]):.2g}."
            )
        tables = []
        for (series, origins), _, forecasts, spread, truth in self.walk(view, examples.each_step(), unit=trust.unit):
            sizes = np.abs(truth[:, 0] - forecasts[:, 0]) / spread[:, 0]
            chances = np.stack([trust.unusual(np.nan_to_num(sizes[:, c]), c) for c in range(self.channels)], 1)
            chances = np.where(np.isfinite(sizes), chances, 1.0)
            columns = {
                "value": truth[:, :1],
                "prediction": forecasts[:, :1],
                "p": chances[:, None],
                "anomaly": (chances <= share)[:, None],
            }
            tables.append(examples.table(series, origins[:, None], columns, steps=False))
        if not tables:
            raise WonderlandError("There is no step to score: give new data with values of the target.")
        return pd.concat(tables, ignore_index=True)

    def check_run(self, model: Any, encoder: Any, trust: Any, folds: int) -> str | None:
        geometry, layout = encoder.geometry, encoder.layout
        if (geometry.horizon, len(layout.targets), layout.season) != (self.horizon, self.channels, self.season):
            return "preprocess.json has another horizon, season or other columns than config.json: the two do not belong together."
        known = encoder.arguments()
        if any(
            getattr(model, name, known[name]) != known[name] for name in ("context", "horizon", "channels", "known")
        ):
            return "preprocess.json has other windows than the model: the two do not belong together."
        return None

    def facts(self, view: View, trust: ForecastTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        metrics, conformal = record["metrics"], record["conformal"]
        measures = self.measures(view, trust, trust.level)
        steps = {
            "model": measures["model"].by_step(measures["model"].absolute),
            "naive": measures["naive"].by_step(measures["naive"].absolute),
            "seasonal naive": measures["seasonal_naive"].by_step(measures["seasonal_naive"].absolute),
        }
        cover = measures["model"].by_step(measures["model"].inside)
        beside = (
            f"MASE {number(metrics['mase'], 3)}" if metrics["mase"] is not None else f"MAE {number(metrics['mae'])}"
        )
        simple = [f"{number(metrics[f'{name}_mase'], 3)} for the {words}" for name, words in (("naive", "last value"), ("seasonal_naive", "season before"))
                  if metrics[f"{name}_mase"] is not None and (name == "naive" or self.season > 1)]  # fmt: skip
        verdict = f"{beside} over {record['rows']:,} unseen windows of {self.horizon} steps" + (
            f" ({', '.join(simple)})" if simple else ""
        )
        if conformal["coverage"] is not None:
            verdict += f"; intervals at the {percent(trust.level, 0)} level cover {percent(conformal['coverage'])}"
        drawn = {"examples": self.drawn(view, trust), "steps": steps, "coverage": cover, "level": trust.level}
        return {"verdict": verdict + ".", "conformal": None, "answers": f"{self.horizon} steps ahead", "forecast": drawn,
                "columns_title": "Series", "season": self.season}  # fmt: skip

    def drawn(self, view: View, trust: ForecastTrust) -> list[dict[str, Any]]:
        """The steps to come of a few series, and their last test window with what then happened."""
        examples: Any = view.examples
        return examples.pictures(
            lambda rows: list(self.walk(view, rows, unit=trust.unit)), view.part, trust.radius(trust.level), DRAWN
        )

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", self.kind in ("mse", "mae", "quantile"))]

    def sections(self, record: Mapping[str, Any]) -> tuple[Section, ...]:
        own = (
            Section("forecast", "Forecast", "Forecast", forecast),
            Section("backtest", "Backtest", "Backtest", backtest),
        )
        return (SECTIONS[0], *own, *SECTIONS[1:])

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Continue the series", f"wonderland predict {folder} -o forecast.csv"),
            ("Continue them after new data", f"wonderland predict {folder} NEWDATA -o forecast.csv"),
            ("Backtest on other data", f"wonderland evaluate {folder} DATA"),
            ("Find unusual steps", f"wonderland predict {folder} DATA --anomalies 0.01 -o scores.csv"),
        ]


def unit_of(unit: str, batch: Batch, season: int, channels: int) -> ndarray | float:
    """`unit_tensor` of a batch, for arrays: (b, 1, c)."""
    units = unit_tensor(unit, batch["x"], batch["about"], season, channels)
    return units.numpy() if isinstance(units, Tensor) else units


def surprise(*parts: tuple[ndarray, ndarray]) -> float:
    """The negative log-likelihood of errors (n, h, c) that are normal with a size for each step, in some unit (n, 1, c), each the mean."""
    errors, units = (np.concatenate([part[place] for part in parts]) for place in range(2))
    return float(np.log(units).mean() + np.log(usual_sizes(errors)).mean())


def raised(before: ndarray, errors: ndarray) -> ndarray:
    """Errors (n, h, c) scaled up to the root mean square of others (m, h, c) for each column, where it is larger."""
    squares = [
        np.nan_to_num(part**2).sum((0, 1)) / np.maximum(np.isfinite(part).sum((0, 1)), 1) for part in (before, errors)
    ]
    return before * np.sqrt(np.maximum(squares[1] / np.where(squares[0] > 0, squares[0], np.inf), 1.0))


def ordered(outputs: Tensor) -> Tensor:
    """Quantiles that do not cross: sorted."""
    return outputs.sort(-1).values


def counts(outputs: Tensor, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and dispersion of counts from the outputs of a model."""
    rate = softplus(outputs[..., 0] + (mean / scale).to(outputs.dtype)) * scale.to(outputs.dtype)
    return rate.clamp_min(1e-6), softplus(outputs[..., 1]).clamp_min(1e-6)
