"""Task: the contract of everything that depends on what is learned: loss, metrics, calibration, predictions, report."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd
from torch import Tensor, nn

from wonderland.core import Part
from wonderland.core.batch import Batch
from wonderland.tasks.view import View
from wonderland.tasks.wanted import Wanted, check_wanted
from wonderland.understand.sections import SECTIONS, Section


class Trust(ABC):
    """Calibration fitted on held-out examples, applied to every prediction; `level` is the coverage of its sets and intervals."""

    level: float

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """As plain JSON, for trust.json."""


class Task(Part, ABC):
    """A task to learn from data.

    `watch` names the metric (lower is better) that decides which weights are kept; `unit` is the name of what examples are
    counted in. `abilities` are verbs beyond predict and evaluate, such as "generate": name -> class, constructed with a run.
    """

    name: ClassVar[str]
    watch: ClassVar[str]
    keeps_best: ClassVar[bool] = True  # keep the weights with the best watched measure; False for the last ones
    unit: ClassVar[str] = "row"
    several: ClassVar[bool] = False  # whether one example has any number of rows in a table of predictions
    abilities: ClassVar[Mapping[str, type]] = {}
    classes: list[str] | None = None
    outputs: int
    trust_options: ClassVar[tuple[str, ...]] = ()  # options of trust that the task has, by name
    conformal_methods: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """The arguments that build this task again."""

    def model_arguments(self) -> dict[str, Any]:
        """Arguments of models that the task decides, by their usual names, such as classes or vocab."""
        return {"outputs": self.outputs, "classes": self.outputs}

    def inputs(self, batch: Batch) -> tuple[Any, ...]:
        """The arguments of the model's forward pass."""
        return (batch["x"],)

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """The mean loss of a batch, and its weight in the mean over the micro-batches of a step (number of examples or tokens)."""

    @abstractmethod
    def measure(self, view: View) -> dict[str, float]:
        """Metrics of a held-out part during training, by name; `watch` is one of them."""

    def check_wanted(self, wanted: Wanted) -> None:
        """Refuse options of trust that the task lacks."""
        check_wanted(wanted, self.trust_options, self.conformal_methods, self.name)

    def for_wanted(self, wanted: Wanted) -> "Task":
        """The task with the outputs that options of trust need."""
        return self

    def with_options(self, trust: Any, validation: View, calibration: View, wanted: Wanted) -> Trust:
        """Trust with what was asked for beyond the default, fitted on the same held-out parts."""
        return trust

    @abstractmethod
    def calibrate(self, validation: View, calibration: View, level: float) -> Trust:
        """Calibration from two held-out parts: temperature and weights from the first, conformal scores from the second."""

    @abstractmethod
    def trust(self, saved: Any) -> Trust:
        """Read trust back from its JSON; damaged content is refused."""

    @abstractmethod
    def evaluate(self, view: View, trust: Any, level: float | None = None) -> dict[str, Any]:
        """Evaluate a part with known targets: {"rows", "metrics", "conformal", ...}."""

    @abstractmethod
    def predictions(self, view: View, trust: Any, level: float | None = None) -> pd.DataFrame:
        """One row for each example: the prediction with its probability, set or interval."""

    def answers(self, trust: Any, level: float) -> nn.Module | str:
        """From the outputs of the model to predictions, as a torch module with `names` and `classes`, for export; or why there is none."""
        return f"The predictions of {self.name} are not written as one torch program."

    def expected(self, run: Any, source: Any, level: float) -> Any:
        """What the outputs of an exported model are compared with: the table of `predict`, or where it says less, what it is made from."""
        return run.predict(source, level=level)

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """The largest difference between predictions and the outputs of an exported model; infinite where a class or set differs."""
        raise NotImplementedError

    def point(self, view: View, trust: Any) -> Any:
        """The predictions of a part, to be measured beside those of simple methods."""
        raise NotImplementedError

    def truth(self, view: View) -> Any:
        """What predictions of a part are compared with in the leaderboard: its targets."""
        return view.targets()

    def leaderboard_row(self, name: str, predicted: Any, ours: Any, y: Any) -> dict[str, Any]:
        """The row of a method: its measures, and the differences of this model (`ours`) from it."""
        raise NotImplementedError

    def leaderboard_sentence(self, rows: list[dict[str, Any]], count: int) -> str:
        """What the leaderboard says, in a sentence; empty where there is nothing to say."""
        return ""

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        """A message if the model's output for a batch does not fit the task, else None."""
        return None

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        """A message if the files of a run do not fit together, else None."""
        return None

    def facts(self, view: View, trust: Any, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """Facts of the test part for the report, by the keys of `wonderland.understand.report`."""
        return {}

    def curves(self) -> list[tuple[str, str, bool]]:
        """Learning curves: (name in the records, label, logarithmic)."""
        return [("loss", "loss", True)]

    def sections(self, record: Mapping[str, Any]) -> tuple[Section, ...]:
        """The sections of the report, in order."""
        return SECTIONS

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        """Suggested commands for a finished run: (description, command)."""
        return [
            ("Predict", f"wonderland predict {folder} NEWDATA -o predictions.csv"),
            ("Measure on other data", f"wonderland evaluate {folder} DATA"),
        ]
