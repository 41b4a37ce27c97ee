"""Encoder: preprocessing fitted on the training examples, which also opens and encodes new data."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.tensors import digest
from wonderland.data.cells import label
from wonderland.data.dataset import Dataset, Finding
from wonderland.data.examples import Examples, RowExamples
from wonderland.data.ports import BATCHES, ODD_ROWS, Preprocessing, Trial


@dataclass(frozen=True)
class Field:
    """One field of an input, for forms, servers and generated test rows.

    `kind` is "number", "category", "boolean", "date", "text", "image", "sound", "series" or "tokens"; `levels` are the known
    categories, `low` and `high` the range seen in training, `shape` that of an array (None: any length).
    """

    name: str
    kind: str
    unit: str = ""
    levels: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    shape: tuple[int | None, ...] = ()


def texts_of_field(rows: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """The texts of one field, "" where there is none."""
    return ["" if row.get(name) is None else str(row[name]) for row in rows]


def cells_of_field(rows: Sequence[Mapping[str, Any]], field: Field) -> pd.Series:
    """One field of rows as a column whose type depends on the field alone, so that a row reads the same whatever came with it.

    >>> cells_of_field([{"age": 3}, {"age": None}], Field("age", "number")).tolist()
    [3.0, nan]
    >>> cells_of_field([{"paid": True}, {"paid": "no"}], Field("paid", "boolean", levels=("no", "yes"))).tolist()
    ['yes', 'no']
    """
    values = [row.get(field.name) for row in rows]
    if field.kind == "number":
        return pd.Series([np.nan if value is None else value for value in values], dtype=np.float64)
    if field.kind == "boolean":
        words = field.levels if len(field.levels) == 2 else ("0", "1")
        values = [words[value] if isinstance(value, bool) else value for value in values]
    return pd.Series([None if value is None else label(value) for value in values], dtype=object)


class Encoder(ABC):
    """Turns a dataset into examples for a model, and opens new data the way the training data was opened.

    `kind` is the name of the kind of data that loads it again; `noticed` lists findings of the last encoding, such as filled cells.
    """

    kind: str
    noticed: list[Finding]
    classes: list[str] | None  # names of the classes, where classes are predicted
    reads_tables: bool = (
        False  # whether `open` reads tables (`read_source`), so that columns and file options can be named
    )

    together: bool = False  # whether the rows of a request are parts of one example, such as the steps of a series

    @abstractmethod
    def examples(self, dataset: Any) -> Examples:
        """The encoded examples of a dataset."""

    @abstractmethod
    def open(self, source: Any, *, need_target: bool = False) -> Dataset:
        """New data, opened as the training data was; with `need_target` the target as well."""

    def open_stored(self) -> Dataset:
        """The data that the run keeps, where it keeps any."""
        raise WonderlandError("This run keeps no data: name those to predict.")

    @abstractmethod
    def schema(self) -> list[Field]:
        """The fields of one input."""

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Inputs given as values of the fields of `schema`, by name, as a source for `open`: a request to a server, a form."""
        return pd.DataFrame({field.name: cells_of_field(rows, field) for field in self.schema()})

    def module(self, *, double: bool = False) -> Preprocessing | str:
        """The preprocessing as a torch module with named inputs, or a sentence that says why there is none.

        With `double`, numbers come in as float64, where float32 is not precise enough.
        """
        return "The preprocessing of this kind of data is not written as a torch module."

    def beside(self) -> dict[str, bytes]:
        """Files that a program needs beside an exported model, by name, such as tokenizer.json."""
        return {}

    def feed(self, dataset: Any, *, double: bool = False) -> dict[str, np.ndarray]:
        """The arrays of the inputs of `module` for a dataset, by name."""
        raise NotImplementedError

    def samples(self, count: int, seed: int = 0) -> Any:
        """Inputs made from the schema, odd ones among them: a source for `open`."""
        raise NotImplementedError

    def trials(self, *, double: bool = False) -> Iterable[Trial]:
        """What an exported model is compared with `predict` on."""
        source = self.samples(ODD_ROWS)
        return [Trial.of_rows(source, self.feed(self.open(source), double=double))]

    trial_words: str = (
        f"{ODD_ROWS} rows made from the schema, in batches of {', '.join(map(str, BATCHES[:-1]))} and {BATCHES[-1]}"
    )

    def traits(self, dataset: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
        """What a person can compare of these rows, by name: numbers, or text. Tests of shift look at each of them."""
        return {}

    def arguments(self) -> dict[str, Any]:
        """Arguments of models that follow from the data, by name, such as vocab, channels or features."""
        return {}

    def for_model(self, model: Any) -> "Encoder":
        """The encoder for this model, a spec or the class name of a user's own module, without fields that it does not read."""
        return self

    def describe(self) -> str:
        """What was fitted to the training examples, as a sentence followed by a space; empty if there is nothing to report."""
        return ""

    def batch_words(self, size: int, noun: str) -> str:
        """The size of a batch in words, such as "64 rows"."""
        return f"{size} {noun}"

    def digest(self) -> str:
        """SHA-256 of everything that was fitted."""
        return digest(self.tensors(), self.to_json())

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """All but the tensors, for preprocess.json."""

    def tensors(self) -> dict[str, Tensor]:
        """The arrays, for preprocess.safetensors."""
        return {}


class RowEncoder(Encoder):
    """An encoder of rows: `encode` turns some of them into one tensor, rows first."""

    @abstractmethod
    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        """These rows (all by default) as a tensor."""

    def in_memory(self, dataset: Any) -> bool:
        """Whether all rows are encoded at once; otherwise each batch is, when it is asked for."""
        return True

    def examples(self, dataset: Any) -> Examples:
        x = self.encode(dataset) if self.in_memory(dataset) else lambda rows: self.encode(dataset, rows)
        return RowExamples(x, dataset.y, len(dataset), dataset.weights)
