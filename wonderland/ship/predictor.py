"""Predictor: a run that answers rows of fields with plain records, for the server and the page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, sha256
from wonderland.data.read import read_text
from wonderland.data.reading import Reading
from wonderland.ship.run import Run
from wonderland.ship.tables import as_csv

CSV_ROWS = 100_000
CSV_CHUNK = 2_048


class Predictor:
    """A run under a name. `version` is the digest of its trust.json, which names the digests of all files it was measured with.

    >>> from wonderland.ship import load
    >>> predictor = Predictor(load("runs/iris"))  # doctest: +SKIP
    >>> predictor.answer([{"petal length": 1.4, "petal width": 0.2}])  # doctest: +SKIP
    [{'prediction': 'setosa', 'probability': 0.99, 'set': ['setosa'], 'probabilities': {'setosa': 0.99, ...}}]
    """

    def __init__(self, run: Run, name: str | None = None):
        self.run = run
        run.model.eval()
        self.name = name or run.folder.resolve().name
        self.version = sha256(run.folder / "trust.json")[:12]
        with run.guarded():
            self.fields = run.encoder.schema()
            self.level = float(run.trust.level)
            self.columns = {f"p({label})": label for label in run.classes or []}

    def about(self) -> dict[str, Any]:
        """What a client needs to know about the run, as plain JSON."""
        fields = [
            {"name": field.name, "kind": field.kind, "unit": field.unit, "levels": list(field.levels)}
            | ({} if field.low is None else {"low": field.low})
            | ({} if field.high is None else {"high": field.high})
            for field in self.fields
        ]
        metrics = {name: plain(value) for name, value in self.run.metrics.items()}
        return {
            "name": self.name,
            "version": self.version,
            "task": self.run.task.name,
            "classes": self.run.classes,
            "level": self.level,
            "fields": fields,
            "metrics": metrics,
            "abilities": self.run.abilities,
            "together": self.run.encoder.together,
        }

    def answer(self, rows: Sequence[Mapping[str, Any]], level: float | None = None) -> list[dict[str, Any]]:
        """One record for each row: the prediction, and its probabilities and set, or its interval.

        Where a row has any number of answers, such as the boxes of a picture, they are a list under `found`. Where rows are parts of
        one example, such as the steps of a series, all records are about that.
        """
        if self.run.encoder.together:
            return self._records(rows, level)
        if self.run.task.several:
            return [{"found": self._records([row], level)} for row in rows]
        answers = self._records(rows, level)
        if len(answers) != len(rows):
            raise WonderlandError(
                f"There are {len(answers):,} answers for {len(rows):,} rows: send rows that hold something to predict, one by one."
            )
        return answers

    def _records(self, rows: Sequence[Mapping[str, Any]], level: float | None) -> list[dict[str, Any]]:
        return records(self._predict(self.run.encoder.collect(rows), level), self.columns)

    def answer_table(self, content: bytes, level: float | None = None) -> "Chunks":
        """The rows of a CSV file, to be predicted a chunk at a time; texts of categories stay as they are written."""
        texts = [field.name for field in self.fields if field.kind != "number"]
        frame, _ = read_text(content, Path("the CSV text"), ".csv", texts, Reading(encoding="utf-8"))
        if len(frame) > CSV_ROWS:
            raise WonderlandError(f"The CSV text has {len(frame):,} rows; the limit is {CSV_ROWS:,}. Send it in parts.")
        return Chunks(self, frame, level)

    def _predict(self, source: Any, level: float | None) -> pd.DataFrame:
        try:
            return self.run.predict(source, level=level)
        except WonderlandError as error:  # where the run lies is nothing to a client
            raise WonderlandError(str(error).replace(str(self.run.folder), repr(self.name))) from error


class Chunks:
    """A table that is predicted in chunks, so that others get their turn in between."""

    def __init__(self, predictor: Predictor, frame: pd.DataFrame, level: float | None):
        self.predictor, self.frame, self.level = predictor, frame, level
        self.size = max(1, len(frame)) if predictor.run.encoder.together else CSV_CHUNK
        self.starts = range(0, max(1, len(frame)), self.size)

    def __len__(self) -> int:
        return len(self.frame)

    def predict(self, start: int) -> bytes:
        """The predictions of the chunk that starts here, as CSV; the first one has the header."""
        chunk = self.frame.iloc[start : start + self.size].reset_index(drop=True)
        return as_csv(self.predictor._predict(chunk, self.level), header=start == 0).encode()


def records(table: pd.DataFrame, probabilities: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of predictions as plain JSON; columns of `probabilities` go into one object, and NaN becomes null.

    >>> records(pd.DataFrame({"prediction": ["a"], "p(a)": [0.75], "low": [np.nan]}), {"p(a)": "a"})
    [{'prediction': 'a', 'low': None, 'probabilities': {'a': 0.75}}]
    """
    names = [name for name in table.columns if name not in probabilities]
    columns = [_plain_column(pd.Series(table[name])) for name in names]
    rows = [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    shares = [name for name in table.columns if name in probabilities]
    if shares:
        labels = [probabilities[name] for name in shares]
        values = [table[name].tolist() for name in shares]
        for row, cells in zip(rows, zip(*values, strict=True), strict=True):
            row["probabilities"] = dict(zip(labels, cells, strict=True))
    return rows


def _plain_column(column: pd.Series) -> list[Any]:
    values = column.tolist()
    if column.dtype.kind in "bi" or (column.dtype.kind == "f" and np.isfinite(column.to_numpy()).all()):
        return values
    return values if all(type(value) is str for value in values) else [plain(value) for value in values]


def plain(value: Any) -> Any:
    """A value as plain JSON: no NaN, no arrays.

    >>> plain(float("nan")), plain(np.float32(0.5)), plain((1, None)), plain(pd.Timestamp("2020-01-01"))
    (None, 0.5, [1, None], '2020-01-01 00:00:00')
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if -1.8e308 < value < 1.8e308 else None
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return str(value)
