"""Matches: queries, and the text that belongs to each."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.data.text.recognise import is_free_text
from wonderland.kinds.table.table import unknown_column


class Matches(Dataset):
    """Queries and documents, a pair for each row; `documents` is None for queries alone."""

    kind = "matches"
    noun = "pairs"
    task = "matching"
    classes = None
    target = None

    def __init__(
        self,
        name: str,
        queries: Sequence[str],
        documents: Sequence[str] | None,
        *,
        names: tuple[str, str] = ("query", "text"),
        findings: Sequence[Finding] = (),
        origin: dict[str, Any] | None = None,
    ):
        self.name, self.names, self.y = name, names, None
        self.queries, self.documents = list(queries), None if documents is None else list(documents)
        self.findings, self.origin = list(findings), origin or {}
        total = hashlib.sha256()
        for text in (*self.queries, "\1", *(self.documents or ())):
            total.update(text.encode("utf-8", "surrogatepass") + b"\0")
        self.fingerprint = total.hexdigest()

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        column: str | None,
        target: str | None,
        *,
        name: str,
        origin: dict[str, Any],
        findings: Sequence[Finding],
    ) -> "Matches":
        """Two columns of texts; rows where one of them is empty are left out."""
        for option, asked in (("column", column), ("target", target)):
            if asked is not None and asked not in frame.columns:
                raise unknown_column(option, asked, list(frame.columns))
        free = [str(own) for own in frame.columns if is_free_text(pd.Series(frame[own]))]
        first = column or next((own for own in free if own != target), None)
        second = target or next((own for own in free if own != first), None)
        if first is None or second is None:
            raise WonderlandError(f"{name} has no two columns of texts: name them with the options column and target.")
        kept = frame[[first, second]].dropna()
        findings = list(findings)
        if len(kept) < len(frame):
            count = len(frame) - len(kept)
            findings.append(
                Finding(
                    "missing",
                    first,
                    count,
                    f"{counted(count, 'row has', 'rows have')} only one text and {'is' if count == 1 else 'are'} left out.",
                )
            )
        text = f"Each row of {name} pairs {first!r} with the text {second!r} that it is to find."
        findings.append(Finding("text", name, len(kept), text))
        if len(kept) < 8:
            raise WonderlandError(f"{name} has {counted(len(kept), 'pair', 'pairs')} of texts: at least 8 are needed.")
        texts = [[str(cell) for cell in kept[own]] for own in (first, second)]
        dataset = cls(name, *texts, names=(first, second), findings=findings, origin=origin)
        codes = np.unique(texts[1], return_inverse=True)[1]
        if len(np.unique(codes)) < len(codes):  # a text that several queries find is in one part
            dataset.groups, dataset.group = codes, second
        return dataset

    def __len__(self) -> int:
        return len(self.queries)

    def headline(self) -> str:
        """The pairs in one line."""
        return f"{self.name}: {counted(len(self), 'pair', 'pairs')} of texts that belong together"

    def summary(self) -> list[dict[str, Any]]:
        """How long the texts of each side are."""
        sides = zip(self.names, (self.queries, self.documents or []), strict=True)
        return [
            {
                "column": column,
                "different": len(set(texts)),
                "median words": float(np.median([len(text.split()) for text in texts])) if texts else 0.0,
            }
            for column, texts in sides
        ]

    def example(self, i: int) -> dict[str, Any]:
        """One pair."""
        shown = {self.names[0]: self.queries[i]}
        return shown if self.documents is None else shown | {self.names[1]: self.documents[i]}
