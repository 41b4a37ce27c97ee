"""The kind series: forecasts of numbers over time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.dataset import stop_if_strict
from wonderland.data.source import Glimpse
from wonderland.data.split import Parts, Split
from wonderland.kinds.kind import Claim, Kind, simple_recipe
from wonderland.kinds.series.encoder import SeriesEncoder, read_encoder
from wonderland.kinds.series.options import Options as SeriesOptions
from wonderland.kinds.series.panel import Panel
from wonderland.kinds.series.windows import Geometry, enumerate_windows, measure, split_by_time
from wonderland.models.series import ForecastBlend
from wonderland.models.series.blend import NAMES
from wonderland.optim import FusedAdamW
from wonderland.tasks import Forecast, Task
from wonderland.train.forecasts import FitForecasts
from wonderland.train.learner import GradientDescent

HINTS = ("horizon", "series", "known", "past", "season")


class SeriesKind(Kind):
    """Tables in long form: a column of times, and columns of numbers that are to be continued."""

    name = "series"
    Options = SeriesOptions
    models = ("models.ForecastBlend", "models.DLinear", "models.NLinear", "models.LinearAutoregression", "models.TCN",
              "models.SequenceForecaster", "models.Seq2SeqForecaster", "models.DeepAR", "models.PatchTST", "models.NBeats")  # fmt: skip
    typical = {"context": 96, "horizon": 24, "channels": 1, "known": 4, "season": 24, "outputs": 1}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if not any(asked.get(name) for name in HINTS) or glimpse.plain_text is not None or glimpse.frame is None:
            return None
        return Claim(0.95, "it has rows, and options of a forecast were given")

    def open(self, glimpse: Glimpse, options: SeriesOptions, test: Glimpse | None = None) -> Panel:
        self.refuse_test(test, "series are tested on their last steps")
        contents = glimpse.contents
        if contents.frame is None:
            raise WonderlandError(f"{contents.name} is not a table of series: it has no columns.")
        asked = {name: getattr(options, name) for name in ("time", "target", "series", "known", "past", "season")}
        if contents.target is not None and asked["target"] is None and contents.target != asked["time"]:
            asked["target"] = contents.target
        panel = Panel.read(
            contents.frame, asked, name=contents.name, origin=contents.origin, findings=contents.findings
        )
        stop_if_strict(panel.findings, options.strict)
        if options.loss == "negative_binomial" and any((track.values < 0).any() for track in panel.tracks):
            raise WonderlandError(
                "loss negative_binomial is for counts 0, 1, 2 ..., and there are values below 0: choose student."
            )
        return panel

    def split(self, dataset: Panel, *, test: float, seed: int, plain: bool = False) -> Parts:
        geometry = measure(dataset, test)
        return split_by_time(dataset, geometry, *enumerate_windows(dataset, geometry), seed)

    def encoder(self, dataset: Panel, parts: Any) -> SeriesEncoder:
        return SeriesEncoder.fitted(dataset, geometry_of(parts))

    def task(self, dataset: Panel, parts: Any, encoder: SeriesEncoder) -> Task:
        loss = (dataset.options or SeriesOptions()).loss or "mse"
        layout = dataset.layout
        return Forecast(horizon=encoder.geometry.horizon, channels=len(layout.targets), season=layout.season, loss=loss)

    def recipe(self, dataset: Panel, parts: Split, encoder: SeriesEncoder, task: Any) -> Recipe:
        arguments = encoder.arguments()
        positive = all(np.nanmin(track.values) > 0 for track in dataset.tracks)
        names = [name for name in NAMES if positive or not name.startswith("log ")]
        names = [name for name in names if name != "season" or dataset.layout.season > 1]
        longer = [
            length
            for length in dataset.layout.frequency.seasons()
            if 1 < dataset.layout.season < length <= arguments["context"]
        ]
        names = [name for name in names if name != "long season" or longer]
        model = ForecastBlend.spec(**arguments, long_season=max(longer, default=1), forecasts=names)
        recipe = simple_recipe(model, task, len(parts.train))
        learner = FitForecasts.spec()
        return replace(recipe, learner=learner, steps=len(names), evaluate_every=len(names), patience=None)

    def named_recipe(self, recipe: Recipe, name: str, dataset: Any, parts: Any) -> Recipe:
        """Gradient descent on windows, for a model that learns by it."""
        batch = next(
            size for least, size in ((100_000, 256), (20_000, 128), (2_000, 64), (0, 32)) if len(parts.train) >= least
        )
        epoch = max(1, len(parts.train) // batch)
        steps = int(np.clip(epoch * 10, 300, 6000))
        return replace(
            recipe, learner=GradientDescent.spec(), steps=steps, batch_size=batch, lr=2e-3, patience=6,
            evaluate_every=max(1, min(epoch, steps // 10)), optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.999]),
            schedule=Spec("optim.warmup_cosine", {"warmup": 0.05}),
        )  # fmt: skip

    def check_recipe(self, dataset: Panel, parts: Any, encoder: Any, recipe: Recipe, asked: Mapping[str, Any]) -> None:
        """The default model has no likelihood."""
        loss = recipe.task.arguments.get("loss", "mse")
        if loss != "mse" and isinstance(recipe.model, Spec) and recipe.model.name == self.models[0]:
            raise WonderlandError(
                f"The default model forecasts means: for loss {loss} name a model, such as --model 'DeepAR()'."
            )

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> SeriesEncoder:
        return read_encoder(saved, tensors)

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"choice": choice(run.model, run.encoder.layout.known)}


def geometry_of(parts: Any) -> Geometry:
    """The sizes of windows and the cuts that a split was made with."""
    settings = parts.settings
    first, second, third, last = settings["cuts"]
    return Geometry(settings["context"], settings["horizon"], (first, second, third, last))


def choice(model: Any, known: tuple[str, ...] = ()) -> str:
    """Which forecasts a blend is made of, and why; `known` names the covariates that are known ahead."""
    if not isinstance(model, ForecastBlend):
        return ""
    shares = sorted(zip(model.shares[-1].tolist(), model.forecasts, strict=True), reverse=True)
    used = ", ".join(f"{name} {share:.0%}" for share, name in shares if share > 0)
    left = ", ".join(name for share, name in shares if share <= 0)
    why = "Shares come from errors on windows that the forecasts were not fitted to"
    ahead = " and ".join(["the calendar", *([", ".join(known)[:80]] if known else [])])
    if not model.known:
        effects = ""
    elif bool(model.effects.any()):
        effects = f" Effects of {ahead} are taken off before and added again: they lower errors on validation windows."
    else:
        effects = f" Effects of {ahead} do not lower errors on validation windows, and are left out."
    return (
        f"The forecast is a mean of {used}. {why}{f'; not used, because worse there: {left}' if left else ''}.{effects}"
    )


KIND = SeriesKind()
