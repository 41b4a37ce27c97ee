"""Texts with classes: one text a row, from a table with a text column, labelled lines, or folders of text files."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.limits import check
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.encodings import to_utf8
from wonderland.data.folders import natural
from wonderland.data.labels import flag_columns
from wonderland.data.split import read_assigned
from wonderland.data.target import TARGET_NAMES
from wonderland.data.text.recognise import ColumnRoles, class_files, holds_sentences
from wonderland.data.text.sources import read_documents
from wonderland.kinds.table.table import unknown_column
from wonderland.kinds.text.answers import read_answers

MOST_COMPARED = 200  # classes whose names are compared with each other


class Texts(Dataset):
    """Texts and their classes, or a number for each; a text may have several columns, such as a title and a body.

    `names` are the columns they came from and `cells` a tuple of strings for each row; `target` is the name of the target.
    """

    kind = "text"
    noun = "texts"

    def __init__(
        self,
        name: str,
        texts: Sequence[str | tuple[str, ...]],
        *,
        names: Sequence[str] = ("text",),
        target: str | None = None,
        task: str | None = None,
        classes: list[str] | None = None,
        y: np.ndarray | None = None,
        findings: list[Finding] | None = None,
        origin: dict[str, Any] | None = None,
    ):
        self.name, self.names, self.target = name, tuple(names), target
        self.cells = [(text,) if isinstance(text, str) else text for text in texts]
        self.task, self.classes, self.y, self.findings = task, classes, y, findings or []
        self.origin = origin or {}
        total = hashlib.sha256()
        for text in (cell for row in self.cells for cell in row):
            data = text.encode("utf-8", "surrogatepass")
            total.update(f"{len(data)}:".encode() + data)
        if y is not None:
            total.update(np.ascontiguousarray(y).tobytes() + "\0".join(classes or []).encode())
        self.fingerprint = total.hexdigest()

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def texts(self) -> list[str]:
        """The texts, those of several columns joined."""
        return [" \u2016 ".join(row) for row in self.cells]

    @property
    def column(self) -> str:
        """The name of the first column."""
        return self.names[0]

    def summary(self) -> list[dict[str, Any]]:
        """The texts of each class, and how long they are."""
        words = np.array([sum(len(cell.split()) for cell in row) for row in self.cells])
        if self.y is None:
            return [{"class": "(none)", "texts": len(self), "median words": float(np.median(words))}]
        if self.classes is None:
            numbers = {"least": float(self.y.min()), "median": float(np.median(self.y)), "most": float(self.y.max())}
            return [
                {
                    "target": self.target or "number",
                    "texts": len(self),
                    **numbers,
                    "median words": float(np.median(words)),
                }
            ]
        return [
            {
                "class": name,
                "texts": int(chosen.sum()),
                "share": f"{100 * chosen.mean():.1f} %",
                "median words": float(np.median(words[chosen])) if chosen.any() else 0.0,
            }
            for name, chosen in zip(self.classes, self._of_classes(), strict=True)
        ]

    def _of_classes(self) -> list[np.ndarray]:
        """For each class, which texts have it (n,)."""
        assert self.y is not None
        assert self.classes is not None
        several = self.y.ndim == 2
        return [self.y[:, code] > 0 if several else self.y == code for code in range(len(self.classes))]

    def example(self, i: int) -> dict[str, Any]:
        """One text, and its class when there is one."""
        shown: dict[str, Any] = dict(zip(self.names, self.cells[i], strict=True))
        if self.y is not None:
            shown[self.target or "class"] = self._answer(i)
        return shown

    def _answer(self, i: int) -> Any:
        assert self.y is not None
        if self.classes is None:
            return float(self.y[i])
        if self.y.ndim == 2:
            return "; ".join(self.classes[code] for code in np.flatnonzero(self.y[i]))
        return self.classes[self.y[i]]

    def labels(self) -> dict[str, list[Any]]:
        """The texts."""
        return {name: [row[i] for row in self.cells] for i, name in enumerate(self.names)}

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        columns: Sequence[str],
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
        """Text columns and a target column of a frame."""
        findings = list(findings or [])
        y, task_name, classes, rows = read_answers(frame, target, task, columns, findings)
        if classes is not None and y.ndim == 1:
            counts = np.bincount(y[rows], minlength=len(classes))
            findings += spelling_variants(classes, counts.tolist(), target)
        if note_text:
            findings.append(reading(columns, target, classes, len(frame)))
        columns = list(columns)
        cells = frame[columns].iloc[rows]
        empty = int(cells.isna().all(axis=1).sum())
        if empty:
            rows_have = counted(empty, "row has", "rows have")
            findings.append(Finding("missing", columns[0], empty, f"{rows_have} no text and read as an empty one."))
        texts = list(
            zip(*(["" if pd.isna(cell) else str(cell) for cell in cells[name]] for name in columns), strict=True)
        )
        dataset = cls(
            name,
            texts,
            names=columns,
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
            frame, ["text"], "label", task=task or "multiclass", test_rows=test_rows, strict=strict, name=path.name, origin=origin,
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
        where = "files of one class each, a text in each line" if class_files(root) else "class folders"
        text = f"{root.name} has texts in {len(classes)} {where}: they are sorted into these classes."
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
    if files := class_files(root):
        return _read_class_files(files)
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


def _read_class_files(files: dict[str, Path]) -> tuple[list[str], list[str], list[Finding]]:
    """The lines of one file for each class."""
    texts, labels, findings = [], [], []
    for name, path in files.items():
        check("texts_bytes", path.stat().st_size, path)
        data, further = to_utf8(path.read_bytes(), path)
        lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        texts, labels, findings = texts + lines, labels + [name] * len(lines), findings + further
    return texts, labels, findings


def spelling_variants(classes: Sequence[str], counts: Sequence[int], target: str) -> list[Finding]:
    """A finding for each two classes that may be one: they differ in capital letters alone, or a rare one in a single letter.

    >>> [finding.subject for finding in spelling_variants(["Good", "bad", "good", "positive", "positve"], [5, 9, 9, 90, 2], "mood")]
    ['Good', 'positve']
    """
    findings = []
    for i, one in enumerate(classes[:MOST_COMPARED]):
        for j, other in enumerate(classes[:MOST_COMPARED]):
            few, many = counts[i], counts[j]
            if i == j or few > many or (few == many and i > j):
                continue
            same = one.strip().casefold() == other.strip().casefold()
            if same or (few <= 0.1 * many and min(len(one), len(other)) >= 5 and one_letter_apart(one, other)):
                text = (
                    f"The classes {one!r} ({counted(few, 'row', 'rows')}) and {other!r} ({many:,}) of {target!r} are spelt nearly alike: "
                    "if they are one, correct the file."
                )
                findings.append(Finding("spelling", one, few, text))
                break
    return findings


def one_letter_apart(a: str, b: str) -> bool:
    """Whether one letter was changed, added, left out, or exchanged with its neighbour; digits do not count as misspelt.

    >>> one_letter_apart("positve", "positive"), one_letter_apart("class1", "class2")
    (True, False)
    """
    a, b = sorted((a.casefold(), b.casefold()), key=len)
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    rest_a, rest_b = a[start:], b[start:]
    if any(letter.isdigit() for letter in rest_a[:1] + rest_b[:1]):
        return False
    if len(a) == len(b):
        return rest_a[1:] == rest_b[1:] or (rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:])
    return len(b) == len(a) + 1 and rest_a == rest_b[1:]


def reading(columns: Sequence[str], target: str, classes: list[str] | None, rows: int) -> Finding:
    """The finding that says which columns are read as texts and which as their target."""
    shown = " and ".join(filter(None, (", ".join(map(repr, columns[:-1])), repr(columns[-1]))))
    columns_hold = (
        f"{'Columns' if len(columns) > 1 else 'Column'} {shown} {'hold' if len(columns) > 1 else 'holds'} free text"
    )
    learned, kind = (
        ("the classes", "texts with classes") if classes is not None else ("a number", "texts with a number each")
    )
    text = f"{columns_hold} and {target!r} {learned}, so this is read as {kind}; the kind table reads it as a table."
    return Finding("text", columns[0], rows, text)


def _checked(dataset: Texts, strict: bool) -> Texts:
    """The dataset, with a finding about duplicates; refused if every text is empty."""
    if not any(cell.strip() for row in dataset.cells for cell in row):
        raise WonderlandError(f"{dataset.name} has no text in column {dataset.column!r}: every text is empty.")
    copies = len(dataset.cells) - len(set(dataset.cells))
    if copies:
        text = (
            f"{counted(copies, 'text is a copy', 'texts are copies')} of another: scores may look better than they are."
        )
        dataset.findings.append(Finding("copies", dataset.name, copies, text))
    stop_if_strict(dataset.findings, strict)
    return dataset


def text_columns(
    frame: pd.DataFrame, target: str | None, roles: ColumnRoles, *, task: str | None, column: str | None, asked: bool
) -> tuple[list[str], str] | None:
    """The text columns and the target of a table whose other columns are free text; None where it is another table.

    Uninformative columns, such as identifiers, are ignored. `column` names the text columns, with commas between several. With
    `asked`, the longest text column is used even if there are other informative columns.
    """
    given = (
        [] if column is None else [column] if column in frame.columns else [name.strip() for name in column.split(",")]
    )
    several = [] if target is None or target in frame.columns else [name.strip() for name in target.split(",")]
    for name in (*given, *(several or [target])):
        if name is not None and name not in frame.columns:
            raise unknown_column("column" if name in given else "target", name, list(frame.columns))
    names = (*roles.free_text, *roles.informative, *roles.uninformative)
    free = [name for name in roles.free_text if name != target]
    if free:  # a sentence that comes again and again, such as a premise with several hypotheses
        free += [name for name in roles.informative if name != target and holds_sentences(pd.Series(frame[name]))]
        free.sort(key=list(frame.columns).index)
    if given:
        free = given
    elif asked and not free:
        free = [_longest_text_column(frame, [name for name in names if name != target and _is_text(frame[name])])]
    if not free:
        return None
    others = [name for name in (*roles.free_text, *roles.informative) if name not in free]
    if target is None:
        folded = {name.strip().casefold(): name for name in reversed(others)}
        named = next((folded[name] for name in TARGET_NAMES if name in folded), None)
        target = others[0] if len(others) == 1 else named
        if target is None and len(others) > 1 and set(others) == set(flag_columns(pd.DataFrame(frame[others]))):
            target, several = ",".join(others), others  # a column of 0 and 1 for each label
    if target is None or target in free:
        return None
    return (free, target) if asked or given or not set(others) - {target, *several} else None


def _is_text(cells: Any) -> bool:
    return pd.Series(cells).map(lambda cell: isinstance(cell, str)).mean() > 0.5


def _longest_text_column(frame: pd.DataFrame, names: list[str]) -> str:
    if not names:
        raise WonderlandError("No column holds text. Name it with the option column, or leave kind out.")
    return max(names, key=lambda name: float(pd.Series(frame[name]).astype(str).str.len().mean()))
