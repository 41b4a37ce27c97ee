"""Pairs of texts: a source that is read and a target to write, one pair a row."""

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.split import read_assigned
from wonderland.data.text.recognise import is_free_text

COLUMN_NAMES = (("source", "target"), ("input", "output"), ("question", "answer"), ("prompt", "response"))


class Pairs(Dataset):
    """Sources and targets; `column_names` are the names of their columns."""

    kind = "pairs"
    noun = "pairs"

    def __init__(
        self,
        name: str,
        sources: list[str],
        targets: list[str] | None,
        *,
        column_names: tuple[str, str] = ("source", "target"),
        findings: list[Finding] | None = None,
        origin: dict[str, Any] | None = None,
    ):
        self.name, self.sources, self.targets, self.column_names = name, sources, targets, column_names
        self.task, self.classes, self.y = "translation", None, None
        self.findings, self.origin = findings or [], origin or {}
        total = hashlib.sha256()
        for text in [*sources, *(targets or [])]:
            data = text.encode("utf-8", "surrogatepass")
            total.update(f"{len(data)}:".encode() + data)
        self.fingerprint = total.hexdigest()

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        column: str | None = None,
        target: str | None = None,
        split: str | None = None,
        strict: bool = False,
        name: str = "frame",
        origin: dict[str, Any] | None = None,
        findings: list[Finding] | None = None,
    ) -> "Pairs":
        """Two text columns of a frame; rows that lack one of the two are left out."""
        frame = with_first_row(frame)
        if split is not None and split not in frame.columns:
            raise WonderlandError(
                f"There is no column {split!r} (given as split).{nearest(split, list(frame.columns))}"
            )
        read, write = pair_of(frame.drop(columns=[] if split is None else [split]), column, target)
        findings = list(findings or [])
        text = f"Column {read!r} is read and column {write!r} is to be written."
        findings.append(Finding("pairs", name, len(frame), text))
        cells = frame[[read, write]]
        complete = cells.notna().all(axis=1) & (
            cells.astype(str).apply(lambda column_cells: column_cells.str.strip()) != ""
        ).all(axis=1)
        incomplete = len(cells) - int(np.asarray(complete).sum())
        if incomplete:
            text = f"{counted(incomplete, 'row lacks', 'rows lack')} one of the two texts and {'is' if incomplete == 1 else 'are'} left out."
            findings.append(Finding("missing", name, incomplete, text))
        stop_if_strict(findings, strict)
        rows = cells[complete].astype(str)
        if len(rows) < 8:
            raise WonderlandError(f"{name} has {counted(len(rows), 'pair', 'pairs')} of texts: give at least 8.")
        pairs = cls(
            name,
            rows[read].tolist(),
            rows[write].tolist(),
            column_names=(read, write),
            findings=findings,
            origin=origin,
        )
        if split is not None:
            pairs.assigned = read_assigned(pd.Series(pd.Series(frame[split])[complete]), split)
        return pairs

    def __len__(self) -> int:
        return len(self.sources)

    def headline(self) -> str:
        """The pairs in one line."""
        return f"{self.name}: {counted(len(self), 'pair', 'pairs')} of texts, {self.column_names[0]} to {self.column_names[1]}"

    def summary(self) -> list[dict[str, Any]]:
        """How long the texts of each side are."""
        sides = zip(self.column_names, (self.sources, self.targets or []), strict=True)
        return [
            {
                "column": column,
                "different": len(set(texts)),
                "median words": float(np.median([len(text.split()) for text in texts])) if texts else 0.0,
                "example": texts[0][:60] if texts else "",
            }
            for column, texts in sides
        ]

    def example(self, i: int) -> dict[str, Any]:
        """One pair."""
        shown = {self.column_names[0]: self.sources[i]}
        return shown | ({self.column_names[1]: self.targets[i]} if self.targets else {})

    def labels(self) -> dict[str, list[Any]]:
        """The texts that are read."""
        return {self.column_names[0]: self.sources}


def pair_of(frame: pd.DataFrame, column: str | None, target: str | None) -> tuple[str, str]:
    """Which column is read and which is written: as named, by well-known names, or the first two of sentences or of text."""
    names = list(frame.columns)
    for option, name in (("column", column), ("target", target)):
        if name is not None and name not in names:
            raise WonderlandError(f"There is no column {name!r} (given as {option}).{nearest(name, names)}")
    if column and target:
        return column, target
    folded = {name.strip().casefold(): name for name in names}
    for read, write in COLUMN_NAMES:
        if read in folded and write in folded:
            return column or folded[read], target or folded[write]
    texts = [name for name in names if pd.Series(frame[name]).map(lambda cell: isinstance(cell, str)).mean() > 0.5]
    free = [name for name in texts if is_free_text(pd.Series(frame[name]))]
    texts = free if len(free) > 1 else texts
    if len(texts) < 2:
        raise WonderlandError("Pairs need two columns of text: name them with the options column and target.")
    read = column or next(name for name in texts if name != target)
    return read, target or next(name for name in texts if name != read)


def with_first_row(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame read from a file without a header: column names that are sentences become its first row."""
    names = [str(name) for name in frame.columns]
    if not any(" " in name.strip() or name.strip().endswith((".", "!", "?", "。")) for name in names):
        return frame
    first = pd.DataFrame([names], columns=[f"c{i}" for i in range(len(names))])
    return pd.concat([first, frame.set_axis(first.columns, axis=1)], ignore_index=True)
