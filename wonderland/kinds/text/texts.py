"""Texts with classes: one text a row, from a table with a text column, labelled lines, or folders of text files."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.limits import check
from wonderland.data.columns import read_column
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.folders import natural
from wonderland.data.split import read_assigned
from wonderland.data.target import TARGET_NAMES, infer_task, read_target
from wonderland.data.text.recognise import ColumnRoles
from wonderland.data.text.sources import read_documents
from wonderland.kinds.table.table import unknown_column


class Texts(Dataset):
    """Texts and their classes; `column` and `target` are the names of the columns they came from."""

    kind = "text"
    noun = "texts"

    def __init__(
        self,
        name: str,
        texts: list[str],
        *,
        column: str = "text",
        target: str | None = None,
        task: str | None = None,
        classes: list[str] | None = None,
        y: np.ndarray | None = None,
        findings: list[Finding] | None = None,
        origin: dict[str, Any] | None = None,
    ):
        self.name, self.texts, self.column, self.target = name, texts, column, target
        self.task, self.classes, self.y, self.findings = task, classes, y, findings or []
        self.origin = origin or {}
        total = hashlib.sha256()
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            total.update(f"{len(data)}:".encode() + data)
        if y is not None:
            total.update(np.ascontiguousarray(y).tobytes() + "\0".join(classes or []).encode())
        self.fingerprint = total.hexdigest()

    def __len__(self) -> int:
        return len(self.texts)

    def summary(self) -> list[dict[str, Any]]:
        """The texts of each class, and how long they are."""
        words = np.array([len(text.split()) for text in self.texts])
        if self.y is None or self.classes is None:
            return [{"class": "(none)", "texts": len(self), "median words": float(np.median(words))}]
        return [
            {
                "class": name,
                "texts": int((self.y == code).sum()),
                "share": f"{100 * (self.y == code).mean():.1f} %",
                "median words": float(np.median(words[self.y == code])) if (self.y == code).any() else 0.0,
            }
            for code, name in enumerate(self.classes)
        ]

    def example(self, i: int) -> dict[str, Any]:
        """One text, and its class when there is one."""
        shown = {self.column: self.texts[i]}
        if self.y is not None and self.classes is not None:
            shown[self.target or "class"] = self.classes[self.y[i]]
        return shown

    def labels(self) -> dict[str, list[Any]]:
        """The texts."""
        return {self.column: self.texts}

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        column: str,
        target: str,
        *,
        task: str | None = None,
        strict: bool = False,
        name: str = "frame",
        origin: dict[str, Any] | None = None,
        findings: list[Finding] | None = None,
        test_rows: np.ndarray | None = None,
        split: str | None = None,
        note_text: bool = True,
    ) -> "Texts":
        """A text column and a target column of a frame."""
        findings = list(findings or [])
        if note_text:
            text = (
                f"Column {column!r} holds free text and {target!r} the classes, so this is read as texts with classes; "
                "the kind table reads it as a table."
            )
            findings.append(Finding("text", column, len(frame), text))
        y, task_name, classes, rows = read_target(read_column(target, pd.Series(frame[target])), task, findings)
        if task_name == "regression" or classes is None:
            raise WonderlandError(
                f"The target {target!r} holds numbers, and texts are sorted into classes here. "
                "Say task='multiclass' if the numbers are classes, or kind='table' to predict them."
            )
        cells = frame[column].iloc[rows]
        empty = int(cells.isna().sum())
        if empty:
            rows_have = counted(empty, "row has", "rows have")
            findings.append(Finding("missing", column, empty, f"{rows_have} no text and read as an empty one."))
        texts = ["" if pd.isna(cell) else str(cell) for cell in cells]
        dataset = cls(
            name,
            texts,
            column=column,
            target=target,
            task=task_name,
            classes=classes,
            y=y[rows],
            findings=findings,
            origin=origin,
        )
        dataset.test_rows = None if test_rows is None else test_rows[rows]
        if split is not None:
            if split not in frame.columns:
                raise unknown_column("split", split, list(frame.columns))
            dataset.assigned = read_assigned(pd.Series(frame[split]).iloc[rows], split)
        return _checked(dataset, strict)

    @classmethod
    def from_lines(
        cls, path: Path, *, strict: bool = False, task: str | None = None, test: Path | None = None
    ) -> "Texts":
        """Lines that begin with their label; those of `test` are kept for the test."""
        documents = read_documents(path, lines=True, strict=strict)
        pairs = [line.split(None, 1) for line in documents.documents()]
        train_count = len(pairs)
        if test is not None:
            pairs += [line.split(None, 1) for line in read_documents(test, lines=True, strict=strict).documents()]
        frame = pd.DataFrame({"text": [pair[1] if len(pair) > 1 else "" for pair in pairs]})
        frame["label"] = [pair[0].removeprefix("__label__") for pair in pairs]
        text = f"Each line of {path.name} begins with a label: it is read as texts with classes; the kind corpus reads it as plain text."
        findings = [Finding("text", path.name, len(frame), text), *documents.findings]
        origin: dict[str, Any] = {"path": str(path.absolute())}
        test_rows = None
        if test is not None:
            test_rows = np.arange(len(pairs)) >= train_count
            origin["test"] = {"path": str(test.absolute())}
        return cls.from_frame(
            frame, "text", "label", task=task or "multiclass", test_rows=test_rows, strict=strict, name=path.name, origin=origin,
            findings=findings, note_text=False,
        )  # fmt: skip

    @classmethod
    def from_folder(cls, root: Path, *, strict: bool = False) -> "Texts":
        """One folder for each class, one file for each text."""
        texts, labels, findings = read_folder(root, strict)
        classes = sorted(set(labels), key=natural)
        if len(classes) < 2:
            raise WonderlandError(f"{root} has texts of one class only: make one folder for each class.")
        y = np.array([classes.index(label) for label in labels], np.int64)
        text = f"{root.name} has texts in {len(classes)} class folders: they are sorted into these classes."
        return _checked(
            cls(
                root.resolve().name,
                texts,
                target="class",
                task="binary" if len(classes) == 2 else "multiclass",
                classes=classes,
                y=y,
                findings=[Finding("text", root.name, len(texts), text), *findings],
                origin={"path": str(root.absolute())},
            ),
            strict,
        )


def read_folder(root: Path, strict: bool) -> tuple[list[str], list[str], list[Finding]]:
    """The texts of a folder, the class folder of each, and findings."""
    documents = read_documents(root, strict=strict)
    labels = [path.relative_to(root).parts[0] for path in documents.files]
    check("texts_bytes", sum(path.stat().st_size for path in documents.files), root)
    texts = []
    for path in documents.files:
        file_documents = read_documents(path, strict=strict)
        texts.append("\n".join(file_documents.documents()))
        documents.invalid_bytes += file_documents.invalid_bytes
        documents.crlf_lines += file_documents.crlf_lines
        documents.first_invalid = documents.first_invalid or file_documents.first_invalid
    return texts, labels, documents.findings


def _checked(dataset: Texts, strict: bool) -> Texts:
    """The dataset, with a finding about duplicates; refused if every text is empty."""
    if not any(text.strip() for text in dataset.texts):
        raise WonderlandError(f"{dataset.name} has no text in column {dataset.column!r}: every text is empty.")
    copies = len(dataset.texts) - len(set(dataset.texts))
    if copies:
        text = (
            f"{counted(copies, 'text is a copy', 'texts are copies')} of another: scores may look better than they are."
        )
        dataset.findings.append(Finding("copies", dataset.name, copies, text))
    stop_if_strict(dataset.findings, strict)
    return dataset


def text_column(
    frame: pd.DataFrame, target: str | None, roles: ColumnRoles, *, task: str | None, column: str | None, asked: bool
) -> tuple[str, str] | None:
    """The text column and the target of a table whose only other column is free text; None where it is another table.

    Uninformative columns, such as identifiers, are ignored. With `asked`, the longest text column is used even if there are
    other informative columns.
    """
    for name in (column, target):
        if name is not None and name not in frame.columns:
            raise unknown_column("column" if name == column else "target", name, list(frame.columns))
    names = (*roles.free_text, *roles.informative, *roles.uninformative)
    free = [name for name in roles.free_text if name != target]
    if column is not None:
        free = [column]
    elif asked:
        free = [
            _longest_text_column(frame, free or [name for name in names if name != target and _is_text(frame[name])])
        ]
    if len(free) != 1:
        return None
    others = [name for name in (*roles.free_text, *roles.informative) if name != free[0]]
    if target is None:
        folded = {name.strip().casefold(): name for name in reversed(others)}
        named = next((folded[name] for name in TARGET_NAMES if name in folded), None)
        target = others[0] if len(others) == 1 else named
    if target is None or target == free[0]:
        return None
    alone = not [name for name in others if name != target]
    if asked or column or (alone and (task is not None or not _is_regression_target(frame[target]))):
        return free[0], target
    return None


def _is_text(cells: Any) -> bool:
    return pd.Series(cells).map(lambda cell: isinstance(cell, str)).mean() > 0.5


def _longest_text_column(frame: pd.DataFrame, names: list[str]) -> str:
    if not names:
        raise WonderlandError("No column holds text. Name it with the option column, or leave kind out.")
    return max(names, key=lambda name: float(pd.Series(frame[name]).astype(str).str.len().mean()))


def _is_regression_target(cells: Any) -> bool:
    """Whether a target is a number to be predicted, not a class."""
    column = read_column("target", pd.Series(cells))
    present = len(column) - column.missing
    return present > 0 and infer_task(column, present) == "regression"
