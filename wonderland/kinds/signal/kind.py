"""The kind signal: thousands of fixed convolutions under linear models, or a network of convolutions, for series with an answer each."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Ensemble, Recipe
from wonderland.data.bundle import read_bundle
from wonderland.data.columns import read_column
from wonderland.data.dataset import stop_if_strict
from wonderland.data.source import Glimpse
from wonderland.data.target import read_target
from wonderland.kinds.kind import Claim, Kind, simple_recipe
from wonderland.kinds.signal.encoder import SignalEncoder
from wonderland.kinds.signal.learner import FitSignals
from wonderland.kinds.signal.opening import TABLES, csv_column, is_ts_source, read_signals
from wonderland.kinds.signal.options import Options as SignalOptions
from wonderland.kinds.signal.signals import Signals
from wonderland.kinds.table.table import names_of_groups, read_groups
from wonderland.models import Rocket
from wonderland.models.signal.rocket import PATTERNS
from wonderland.optim import FusedAdamW
from wonderland.tasks import Task
from wonderland.train.learner import GradientDescent

SMALL, MEDIUM = 400, 4000  # series; fewer are fitted in ten folds, or in three
MOST_FEATURES = 1 << 27  # numbers that features of all training series may have


class SignalKind(Kind):
    """Many series with a class or a number each."""

    name = "signal"
    Options = SignalOptions
    models = ("models.Rocket", "models.InceptionTime", "models.WaveConvNet")
    typical = {"outputs": 3, "channels": 1, "length": 150, "members": 1}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if is_ts_source(glimpse):
            return Claim(0.99, "it holds series in the format .ts")
        path = glimpse.path
        if path is not None and path.is_dir():
            bundle = read_bundle(path, TABLES)
            named = bundle.labels and all(member.label for member in bundle.members) and not bundle.foreign
            plain = not any("=" in label or label.isdecimal() for label in bundle.labels)
            many = len(bundle.labels) > 1 and len(bundle.members) >= 3 * len(bundle.labels)
            return Claim(0.4, "it has a folder of tables for each class") if named and plain and many else None
        if path is None or glimpse.plain_text is not None or glimpse.frame is None:
            return None
        if csv_column(glimpse.frame, path.parent) is not None:
            return Claim(0.98, "it names a table for each series")
        series, target = asked.get("series"), asked.get("target")
        if series in glimpse.frame and target in glimpse.frame and series != target and not asked.get("horizon"):
            answers = glimpse.frame.groupby(series)[target].nunique(dropna=False)
            if 2 <= len(answers) < len(glimpse.frame) and bool(np.all(answers == 1)):
                return Claim(0.98, f"each series has one value of {target!r}")
        return None

    def open(self, glimpse: Glimpse, options: SignalOptions, test: Glimpse | None = None) -> Signals:
        read = read_signals(glimpse, options)
        assert read.answers is not None
        findings = read.findings
        column = read_column(str(read.answers.name), read.answers)
        y, task, classes, rows = read_target(column, options.task or read.task, findings)
        values, names = [read.values[row] for row in rows], [read.names[row] for row in rows]
        origin = {"path": str(glimpse.path.absolute())} if glimpse.path is not None else {"memory": "signals"}
        name = glimpse.path.stem if glimpse.path is not None else "signals"
        signals = Signals(values, name=name, origin=origin, findings=findings, names=names, channels=read.channels)
        signals.y = y[rows].astype(np.int64) if classes is not None else y[rows]
        signals.classes, signals.task = classes, task
        if read.frame is not None:
            signals.frame = read.frame.iloc[rows].reset_index(drop=True)
        if read.test is not None:
            signals.test_rows = read.test[rows]
        if options.group is not None:
            group = read_column(options.group, pd.Series(signals.texts_of(options.group)))
            signals.group, signals.groups, signals.group_names = (
                options.group,
                read_groups(group),
                names_of_groups(group),
            )
        stop_if_strict(signals.findings, options.strict)
        if test is not None:
            signals.options = options
            signals = with_test(signals, test)
        return signals

    def folds(self, dataset: Any) -> int | None:
        """Ten folds for few series, three for more, so that every one is learned from."""
        rows = len(dataset) if dataset.test_rows is None else int((~dataset.test_rows).sum())
        if rows >= MEDIUM:
            return None
        return 3 if rows >= SMALL else int(np.clip(rows // 4, 2, 10))

    def encoder(self, dataset: Signals, parts: Any) -> SignalEncoder:
        return SignalEncoder.fit(dataset, parts.train)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> SignalEncoder:
        return SignalEncoder.from_json(saved)

    def recipe(self, dataset: Signals, parts: Any, encoder: SignalEncoder, task: Task) -> Recipe:
        rows = len(parts.train)
        folds = None if parts.folds is None else int(parts.folds.max()) + 1
        kernels = PATTERNS * int(np.clip(MOST_FEATURES // rows // (8 * PATTERNS), 2, 24))
        model = Rocket.spec(outputs=task.outputs, **encoder.arguments(), kernels=kernels, members=folds or 1)
        recipe = simple_recipe(model, task, rows)
        ensemble = None if folds is None else Ensemble(folds, folds, 1)
        return replace(
            recipe,
            learner=FitSignals.spec(),
            steps=1,
            batch_size=rows,
            evaluate_every=1,
            patience=None,
            ensemble=ensemble,
        )

    def named_recipe(self, recipe: Recipe, name: str, dataset: Any, parts: Any) -> Recipe:
        """Gradient descent on batches, for a network."""
        rows = len(parts.train)
        batch = 64 if rows >= 1000 else 16
        epoch = max(1, rows // batch)
        steps = int(np.clip(60 * epoch, 300, 4000))
        return replace(
            recipe, learner=GradientDescent.spec(), steps=steps, batch_size=batch, lr=2e-3, patience=8, ensemble=None,
            evaluate_every=max(1, steps // 20), optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.999]),
            schedule=Spec("optim.warmup_cosine", {"warmup": 0.05}),
        )  # fmt: skip

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"noun": "series"}


def with_test(signals: Signals, test: Glimpse) -> Signals:
    """The series with those of a test set after them, marked in `test_rows`."""
    encoder = SignalEncoder.fit(signals, np.arange(len(signals)))
    new = encoder.open(test, need_target=True)
    if len(new.channels) != len(signals.channels):
        raise WonderlandError(
            f"The test series have {len(new.channels)} channels, and those to learn from {len(signals.channels)}."
        )
    joined = Signals(
        [*signals.values, *new.values], name=signals.name, origin=signals.origin, findings=signals.findings,
        names=[*signals.names, *(f"test {name}" for name in new.names)], channels=signals.channels,
    )  # fmt: skip
    joined.origin["test"] = {"memory": test.name} if test.path is None else {"path": str(test.path.absolute())}
    assert signals.y is not None
    assert new.y is not None
    joined.y, joined.classes, joined.task = np.concatenate([signals.y, new.y]), signals.classes, signals.task
    joined.test_rows = np.arange(len(joined)) >= len(signals)
    joined.frame = pd.concat([signals.frame, new.frame], ignore_index=True)
    if signals.groups is not None:
        joined.group, joined.group_names = signals.group, signals.group_names
        joined.groups = np.append(signals.groups, np.full(len(new), signals.groups.max() + 1))
    return joined


KIND = SignalKind()
