"""Kind: a kind of data. Everything that differs between kinds is a method of its Kind, Dataset, Encoder or Task."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.dataset import MULTILABEL, Dataset
from wonderland.data.encoder import Encoder
from wonderland.data.source import Glimpse
from wonderland.data.split import Parts, Split, split
from wonderland.kinds.options import KindOptions
from wonderland.optim import FusedAdamW
from wonderland.tasks import Classification, MultiLabel, Regression, Task
from wonderland.tasks.leaderboard import Baseline
from wonderland.train.learner import GradientDescent


@dataclass(frozen=True)
class Claim:
    """How confident a kind is, from 0 to 1, that a source is of this kind, and the reason."""

    confidence: float
    reason: str


class Kind(ABC):
    """A kind of data: a folder in `wonderland/kinds` and one line in `kinds/__init__.py`.

    The folder has two modules: `options` with a dataclass `Options` (plain, since the shell reads it before torch is loaded;
    its docstring says what the kind is), and `kind` with an instance `KIND`. `wonderland.fit` calls these methods in the
    order in which they are written here.
    """

    name: ClassVar[str]
    Options: ClassVar[type] = KindOptions
    models: ClassVar[Sequence[str]] = ()  # models that `fit(model=...)` may name; the first is the default
    typical: ClassVar[
        Mapping[str, Any]
    ] = {}  # arguments that the data decides, at an ordinary size, for the listing of models

    format1_schedule: ClassVar[
        Mapping[str, Any]
    ] = {}  # schedule arguments that version 0.9 did not write into config.json

    @abstractmethod
    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        """Whether a source is of this kind; `asked` are the options that were given, `test` among them."""

    @abstractmethod
    def open(self, glimpse: Glimpse, options: Any, test: Glimpse | None = None) -> Dataset:
        """The dataset; `test` is a second source whose rows are kept for the test."""

    def split(self, dataset: Any, *, test: float, seed: int, plain: bool = False) -> Parts:
        """The parts: train, validation, calibration, test. `plain` asks for a single model, so without folds."""
        folds = None if plain or dataset.assigned is not None else self.folds(dataset)
        return split_rows(dataset, test=test, seed=seed, folds=folds)

    def folds(self, dataset: Dataset) -> int | None:
        """The number of cross-validation folds; None for a validation and a calibration part instead."""
        return None

    @abstractmethod
    def encoder(self, dataset: Any, parts: Any) -> Encoder:
        """The preprocessing, fitted on the training part only."""

    def task(self, dataset: Any, parts: Any, encoder: Any) -> Task:
        """The task, with the statistics of the training part that it needs."""
        return row_task(dataset, parts)

    @abstractmethod
    def recipe(self, dataset: Any, parts: Any, encoder: Any, task: Any) -> Recipe:
        """The default recipe for data of this size."""

    @abstractmethod
    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> Encoder:
        """A saved encoder; damaged or hostile content raises a `WonderlandError`."""

    def initial(self, dataset: Dataset, task: Task) -> nn.Module | None:
        """The model of a checkpoint to start from; None for a new model with random weights."""
        return None

    def around(self, initial: nn.Module, recipe: Recipe) -> nn.Module:
        """The model of the recipe around that of a checkpoint, where the recipe has more than it."""
        return initial

    def prepare(self, model: nn.Module, plan: Any) -> nn.Module:
        """The model before the first step, with weights that are known and not random, such as vectors of words."""
        return model

    def remember(self, dataset: Any, folder: Path, config: Mapping[str, Any] | None) -> None:
        """Reuse what an interrupted run in this folder, with this config, has already prepared."""
        return

    def for_epochs(self, recipe: Recipe, epochs: float) -> Recipe | None:
        """Another recipe where a time budget allows so many passes over the training rows; None to keep this one."""
        return None

    def adjust_to_steps(self, recipe: Recipe) -> Recipe:
        """The recipe once the number of steps is known."""
        return recipe

    def named_recipe(self, recipe: Recipe, name: str, dataset: Any, parts: Any) -> Recipe:
        """The recipe for a model that the user names in place of the default one: `name`, or "" for a module of the user's own."""
        return recipe

    def check_recipe(self, dataset: Any, parts: Any, encoder: Any, recipe: Recipe, asked: Mapping[str, Any]) -> None:
        """Refuse a recipe that does not fit the data; `asked` are the numbers in it that the user gave."""
        return

    def baselines(self, plan: Any) -> list[Baseline]:
        """Simple methods to measure beside a finished run of this plan, on its test rows."""
        return []

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """Facts that the report shows for this kind of data, in addition to those of the task."""
        return {}

    def explain(self, run: Any, plan: Any, facts: dict[str, Any]) -> dict[str, Any]:
        """Facts that build on those of the task, such as what mattered in each of its mistakes; they replace facts of the same name."""
        return {}

    def space(self, recipe: Recipe) -> dict[str, Any]:
        """The search space: ranges and choices by the path of a setting in the recipe."""
        space: dict[str, Any] = {"lr": ("log", recipe.lr / 10, recipe.lr * 10)}
        if "weight_decay" in recipe.optimizer.arguments:
            space["optimizer.weight_decay"] = ("log", 1e-4, 0.3)
        if isinstance(recipe.model, Spec) and "dropout" in inspect.signature(recipe.model.part).parameters:
            space["model.dropout"] = ("float", 0.0, 0.5)
        return space

    def refuse_test(self, test: Glimpse | None, instead: str) -> None:
        """Refuse a separate test set."""
        if test is not None:
            raise WonderlandError(f"A test set of its own is for tables and labelled lines; {instead}.")


def model_space(recipe: Recipe, wished: Mapping[str, Any]) -> dict[str, Any]:
    """Those ranges and choices of arguments of the model, such as "model.dim", that the recipe's model has been given."""
    known = recipe.model.arguments if isinstance(recipe.model, Spec) else {}
    return {path: about for path, about in wished.items() if path.partition(".")[2] in known}


def split_rows(dataset: Dataset, *, test: float, seed: int, folds: int | None = None) -> Split:
    """A split with the default sizes: validation and calibration are a tenth of the rows each, at most 20,000.

    From 50 rows on, calibration has ten rows at least: a level of 0.9 needs nine.
    """
    if folds:
        return split(dataset, seed=seed, test=test, folds=folds)
    share = min(0.1, 20_000 / len(dataset))
    return split(dataset, seed=seed, test=test, validation=share, calibration=max(share, min(0.2, 10 / len(dataset))))


def row_task(dataset: Dataset, parts: Split) -> Classification | Regression | MultiLabel:
    """Classification if the dataset has classes, several labels if its task says so, else regression."""
    if dataset.y is None:
        raise WonderlandError(
            f"{dataset.name} has no target to learn: name a column, or sort images into class folders."
        )
    if dataset.classes is not None:
        return MultiLabel(dataset.classes) if dataset.task == MULTILABEL else Classification(dataset.classes)
    y, weights = dataset.y[parts.train], None if dataset.weights is None else dataset.weights[parts.train]
    mean = float(np.average(y, weights=weights))
    scale = float(np.sqrt(np.average(np.square(y - mean), weights=weights)))
    if not scale > 0:
        raise WonderlandError("The target is the same in every training row, so there is nothing to learn.")
    return Regression(mean=mean, scale=scale, low=float(y.min()), high=float(y.max()))


def task_spec(task: Task, **changes: Any) -> Spec:
    """The spec of a task, for a recipe."""
    return type(task).spec(**(task.arguments() | changes))


def simple_recipe(model: Spec, task: Task, rows: int, *, epochs: int = 30, lr: float = 1e-3, **numbers: Any) -> Recipe:
    """A simple default recipe for a new kind: one model, AdamW, warm-up and cosine, early stopping."""
    batch = next(size for least, size in ((4000, 128), (600, 64), (200, 32), (0, 16)) if rows >= least)
    epoch = max(1, rows // batch)
    return Recipe(
        model=model,
        task=task_spec(task),
        learner=GradientDescent.spec(),
        optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.999]),
        schedule=Spec("optim.warmup_cosine", {"warmup": 0.05}),
        steps=epoch * epochs,
        batch_size=batch,
        lr=lr,
        evaluate_every=epoch,
        patience=8,
    ).changed(**numbers)


def evaluated_often_enough(recipe: Recipe, times: int = 10) -> Recipe:
    """The recipe with at least so many evaluations in its steps."""
    return recipe.changed(evaluate_every=max(1, min(recipe.evaluate_every, recipe.steps // times)))


EVALUATION_COUNT = 15


def evaluation_interval(steps: int) -> int:
    """The number of steps between two evaluations of a token model: about 15 evaluations in all, more in short trainings."""
    return max(1, min(20, steps // 6), steps // EVALUATION_COUNT)
