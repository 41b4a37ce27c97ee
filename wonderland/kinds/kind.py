"""Kind: a kind of data. Whatever differs between kinds is a method here, on its dataset, its encoder or its task."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.dataset import Dataset
from wonderland.data.encoder import Encoder
from wonderland.data.source import Glimpse
from wonderland.data.split import Parts, Split, split
from wonderland.kinds.options import KindOptions
from wonderland.optim import FusedAdamW
from wonderland.tasks import Classification, Regression, Task
from wonderland.train.learner import GradientDescent


@dataclass(frozen=True)
class Claim:
    """How sure a kind is that a source is its own, from 0 to 1, and a sentence why."""

    sure: float
    why: str


class Kind(ABC):
    """A kind of data: a folder in `wonderland/kinds` and one line in `kinds/__init__.py`.

    The folder has two modules: `options` with a dataclass `Options` (plain, since the shell reads it before torch is loaded;
    its docstring says what the kind is), and `kind` with an instance `KIND`. The road from a source to a run calls these
    methods from top to bottom; none of them asks which kind another is.
    """

    name: ClassVar[str]
    Options: ClassVar[type] = KindOptions
    models: ClassVar[Sequence[str]] = ()  # names of models that can be asked for; the first is the one of the recipe
    typical: ClassVar[Mapping[str, Any]] = {}  # arguments of models that data of an ordinary size would decide

    format1_schedule: ClassVar[Mapping[str, Any]] = {}  # what version 0.9 did not write into config.json

    @abstractmethod
    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        """Whether a source is of this kind; `asked` are the options that were given, `test` among them."""

    @abstractmethod
    def open(self, glimpse: Glimpse, options: Any, test: Glimpse | None = None) -> Dataset:
        """The dataset; `test` is a second source whose rows are kept for the test."""

    def split(self, dataset: Any, *, test: float, seed: int, plain: bool = False) -> Parts:
        """The parts: train, validation, calibration, test. `plain` asks for one model, so for no folds."""
        folds = None if plain or dataset.assigned is not None else self.folds(dataset)
        return split_rows(dataset, test=test, seed=seed, folds=folds)

    def folds(self, dataset: Dataset) -> int | None:
        """In how many folds the training rows are learned from; None for a validation and a calibration part."""
        return None

    @abstractmethod
    def encoder(self, dataset: Any, parts: Any) -> Encoder:
        """The preprocessing, fitted on the training part only."""

    def task(self, dataset: Any, parts: Any, encoder: Any) -> Task:
        """What is learned, with what it needs to know of the training part."""
        return row_task(dataset, parts)

    @abstractmethod
    def recipe(self, dataset: Any, parts: Any, encoder: Any, task: Any) -> Recipe:
        """Defaults for data of this size."""

    @abstractmethod
    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> Encoder:
        """A saved encoder; damaged or hostile content is refused in a sentence."""

    def initial(self, dataset: Dataset, task: Task) -> nn.Module | None:
        """The model to begin with where it comes from a checkpoint; None for random weights."""
        return None

    def remember(self, dataset: Any, folder: Path, config: Mapping[str, Any] | None) -> None:
        """Use what a run that was begun in this folder, with this config, has prepared already."""
        return

    def settled(self, recipe: Recipe) -> Recipe:
        """The recipe once the number of steps is known."""
        return recipe

    def check_recipe(self, dataset: Any, parts: Any, encoder: Any, recipe: Recipe, asked: Mapping[str, Any]) -> None:
        """Refuse a recipe that does not go with the data; `asked` are the numbers in it that the user gave."""
        return

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """What the report shows of this kind of data beside what its task says."""
        return {}

    def space(self, recipe: Recipe) -> dict[str, Any]:
        """What a search may change: ranges of numbers and choices by the path of a setting in the recipe."""
        return {"lr": ("log", recipe.lr / 10, recipe.lr * 10)}

    def refuse_test(self, test: Glimpse | None, instead: str) -> None:
        """Say that this kind takes no test set of its own."""
        if test is not None:
            raise WonderlandError(f"A test set of its own is for tables and labelled lines; {instead}.")


def split_rows(dataset: Dataset, *, test: float, seed: int, folds: int | None = None) -> Split:
    """Parts of the sizes this library uses; the calibration part stops growing where it has rows enough."""
    if folds:
        return split(dataset, seed=seed, test=test, folds=folds)
    share = min(0.1, 20_000 / len(dataset))
    return split(dataset, seed=seed, test=test, validation=share, calibration=share)


def row_task(dataset: Dataset, parts: Split) -> Classification | Regression:
    """Classes where the dataset has them, else a number."""
    if dataset.y is None:
        raise WonderlandError(
            f"{dataset.name} has no target to learn: name a column, or sort images into class folders."
        )
    if dataset.classes is not None:
        return Classification(dataset.classes)
    y = dataset.y[parts.train]
    scale = float(y.std())
    if not scale > 0:
        raise WonderlandError("The target is the same in every training row, so there is nothing to learn.")
    return Regression(mean=float(y.mean()), scale=scale, low=float(y.min()), high=float(y.max()))


def task_spec(task: Task, **changes: Any) -> Spec:
    """The task as a recipe keeps it."""
    return type(task).spec(**(task.arguments() | changes))


def simple_recipe(model: Spec, task: Task, rows: int, *, epochs: int = 30, lr: float = 1e-3, **numbers: Any) -> Recipe:
    """A recipe to begin with for a new kind: one model, AdamW, warm-up and cosine, early stopping."""
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


EVALUATIONS = 15


def evaluations(steps: int) -> int:
    """Every how many steps a model of tokens is evaluated: often enough for a curve, seldom enough to cost little."""
    return max(1, min(20, steps // 6), steps // EVALUATIONS)
