"""Task: what is learned. Everything that depends on it is a method here: loss, measures, trust, predictions, report."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd
from torch import Tensor, nn

from wonderland.core import Part
from wonderland.core.batch import Batch
from wonderland.tasks.view import View
from wonderland.understand.sections import SECTIONS, Section


class Trust(ABC):
    """What was measured on held-out examples, and is applied to every prediction; `level` is that of its sets and intervals."""

    level: float

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """As trust.json keeps it."""


class Task(Part, ABC):
    """What is learned from data.

    `watch` names the measure, smaller is better, that decides which weights are kept; `unit` is what is counted when the
    examples are. `abilities` are verbs beyond predict and evaluate, such as "generate": a class for each, made from a run.
    """

    name: ClassVar[str]
    watch: ClassVar[str]
    unit: ClassVar[str] = "row"
    abilities: ClassVar[Mapping[str, type]] = {}
    classes: list[str] | None = None
    outputs: int

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """What it takes to build this task again."""

    def model_arguments(self) -> dict[str, Any]:
        """What it knows of the arguments of models by their usual names, such as classes or vocab."""
        return {"outputs": self.outputs, "classes": self.outputs}

    def inputs(self, batch: Batch) -> tuple[Any, ...]:
        """What a model is called with."""
        return (batch["x"],)

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """The mean loss of a batch, and the weight of that mean among the pieces of a step (examples, tokens)."""

    @abstractmethod
    def measure(self, view: View) -> dict[str, float]:
        """Measures of a held-out part, by name, during training; `watch` is one of them."""

    @abstractmethod
    def calibrate(self, validation: View, calibration: View, level: float) -> Trust:
        """Trust from two held-out parts: the first may be fitted to, conformal scores come from the second alone."""

    @abstractmethod
    def trust(self, saved: Any) -> Trust:
        """Trust back from its JSON; damaged content is refused."""

    @abstractmethod
    def evaluate(self, view: View, trust: Any, level: float | None = None) -> dict[str, Any]:
        """All that can be said of a part whose answers are known: {"rows", "metrics", "conformal", ...}."""

    @abstractmethod
    def predictions(self, view: View, trust: Any, level: float | None = None) -> pd.DataFrame:
        """One row for each example: the answer and how far it can be trusted."""

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        """What is wrong with what a model gives for a batch, in words; None if nothing is."""
        return None

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        """What of a run's files does not belong together, in words; None if nothing is."""
        return None

    def facts(self, view: View, trust: Any, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """What the report shows of the test part, by the keys of `wonderland.understand.report`."""
        return {}

    def curves(self) -> list[tuple[str, str, bool]]:
        """Measures to draw over the steps: (name in the records, label, logarithmic)."""
        return [("loss", "loss", True)]

    def sections(self, record: Mapping[str, Any]) -> tuple[Section, ...]:
        """The sections of the report, in order."""
        return SECTIONS

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        """What to do with a finished run: (words, command)."""
        return [
            ("Predict", f"wonderland predict {folder} NEWDATA -o predictions.csv"),
            ("Measure on other data", f"wonderland evaluate {folder} DATA"),
        ]
