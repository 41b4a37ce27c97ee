"""Encoder of texts: rows of tokens of one length, sparse features of words and pieces, or both."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import Spec, WonderlandError, nearest
from wonderland.data.dataset import MULTILABEL, TASKS, Dataset, Finding, counted
from wonderland.data.encoder import Field, RowEncoder, texts_of_field
from wonderland.data.examples import Examples, RowExamples
from wonderland.data.labels import coded, pieces, read_labels
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.reading import Reading, Written
from wonderland.data.source import read_source
from wonderland.data.target import missing_target
from wonderland.data.text.gram_program import feature_file
from wonderland.data.text.grams import Grams
from wonderland.data.text.layouts import read_text_table
from wonderland.data.text.recognise import recognise
from wonderland.data.text.sentence_pairs import pairs_of_json
from wonderland.data.text.sources import is_text_file, read_documents
from wonderland.data.text.tokenizer import Tokenizer, repeatable
from wonderland.data.text.tokenizer_json import checked_roles
from wonderland.kinds.text.examples import TextExamples
from wonderland.kinds.text.program import TextProgram, text_trials
from wonderland.kinds.text.texts import Texts, read_folder

LONGEST = 400
MOST_WEIGHTS = 10_000_000  # of a linear model: features times classes
READS = ("tokens", "features", "both")
SEPARATOR = "<sep>"


class TextEncoder(RowEncoder):
    """A tokenizer with the length of a row, and the features that a linear model reads.

    `reads` says what a row holds: tokens, features, or both. Longer texts are truncated to `length` tokens, shorter ones padded
    with the token `pad`. With `add_special_tokens`, each text is put between the tokens of a checkpoint's tokenizer, such as
    [CLS] and [SEP]; the columns of a text are separated by one of those, or by a token of their own.
    """

    kind = "text"
    reads_tables = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        length: int,
        *,
        names: Sequence[str],
        target: str | None,
        classes: list[str] | None,
        task: str | None,
        pad: int = 0,
        add_special_tokens: bool = False,
        grams: Grams | None = None,
        reads: str = "tokens",
    ):
        self.tokenizer, self.length, self.names, self.target = tokenizer, length, tuple(names), target
        self.classes, self.task, self.pad, self.add_special_tokens = classes, task, pad, add_special_tokens
        self.grams, self.reads = grams, reads
        self.noticed: list[Finding] = []

    @property
    def column(self) -> str:
        """The name of the first text column."""
        return self.names[0]

    @classmethod
    def fit(
        cls,
        dataset: Texts,
        rows: np.ndarray,
        *,
        tokens: str | None = None,
        vocab: int | None = None,
        context: int | None = None,
    ) -> "TextEncoder":
        """Learn the tokenizer from the training texts: words where spaces separate them, else byte pair encoding, unless `tokens`
        names another kind. The features of a linear model are learned as well.

        `vocab` is the largest size of the vocabulary, `context` the largest number of tokens of a text.
        """
        cells = [dataset.cells[row] for row in rows]
        texts = [cell for row in cells for cell in row]
        joined = "".join(texts[:2000])
        spaced = len(joined.split()) > len(joined) / 15
        kind = repeatable(tokens) or ("words" if spaced else "bpe")
        vocab = vocab or (4000 if kind == "bpe" else 30_000)
        specials = ("<pad>", "<unk>") if len(dataset.names) == 1 else ("<pad>", "<unk>", SEPARATOR)
        tokenizer = Tokenizer.train(texts, kind=kind, vocab=vocab, specials=specials, lowercase=True)
        counts = np.array([len(ids) for ids in tokenizer.arrays(texts)]).reshape(len(cells), -1)
        lengths = counts.sum(1) + len(dataset.names) - 1
        length = context or int(min(LONGEST, max(8, np.quantile(lengths, 0.99))))
        outputs = len(dataset.classes or ()) or 1
        return cls(
            tokenizer,
            length,
            names=dataset.names,
            target=dataset.target,
            classes=dataset.classes,
            task=dataset.task,
            grams=Grams.fit(cells, most=max(1000, min(400_000, MOST_WEIGHTS // outputs))),
            reads="both",
        )

    @classmethod
    def with_tokenizer(
        cls, tokenizer: Tokenizer, pad: int, dataset: Texts, rows: np.ndarray, *, most: int | None, context: int | None
    ) -> "TextEncoder":
        """An encoder with the tokenizer of a checkpoint; `most` is the number of positions that its model has."""
        before, after = tokenizer.surrounding_tokens
        extra = (
            len(before) + len(dataset.names) * max(1, len(after))
            if len(dataset.names) > 1
            else len(before) + len(after)
        )
        counts = [len(ids) for ids in tokenizer.encode_batch([cell for row in rows for cell in dataset.cells[row]])]
        lengths = np.array(counts).reshape(len(rows), -1).sum(1) + extra
        length = context or int(min(LONGEST, most or LONGEST, max(8, np.quantile(lengths, 0.99))))
        if not extra < length <= (most or length):
            raise WonderlandError(
                f"context is from {extra + 1} to {most or 'any number'} for this checkpoint, not {length}."
            )
        named = {"names": dataset.names, "target": dataset.target, "classes": dataset.classes, "task": dataset.task}
        cells, outputs = [dataset.cells[row] for row in rows], len(dataset.classes or ()) or 1
        grams = Grams.fit(cells, most=max(1000, min(400_000, MOST_WEIGHTS // outputs)))
        return cls(tokenizer, length, **named, pad=pad, add_special_tokens=True, grams=grams, reads="both")

    def for_model(self, model: Spec | str) -> "TextEncoder":
        reads = getattr(model.part, "reads", "tokens") if isinstance(model, Spec) else "tokens"
        if reads == self.reads:
            return self
        return TextEncoder(
            self.tokenizer, self.length, names=self.names, target=self.target, classes=self.classes, task=self.task,
            pad=self.pad, add_special_tokens=self.add_special_tokens, grams=None if reads == "tokens" else self.grams, reads=reads,
        )  # fmt: skip

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        """The rows of a model's input (all, when none are named): int64 (n, length), or with packed features (n, length + k)."""
        index = np.arange(len(self._checked(dataset).cells)) if rows is None else np.asarray(rows)
        cells = [dataset.cells[row] for row in index]
        return self._examples(cells, dataset.name, None).inputs(np.arange(len(cells)))

    def examples(self, dataset: Any) -> Examples:
        return self._examples(self._checked(dataset).cells, dataset.name, dataset.y)

    def _checked(self, dataset: Any) -> Texts:
        if isinstance(dataset, Texts) and len(dataset.names) == len(self.names):
            return dataset
        name = dataset.name if isinstance(dataset, Dataset) else "the data"
        raise WonderlandError(f"This model reads texts, and {name} is not made of texts.")

    def _examples(self, cells: list[tuple[str, ...]], name: str, y: np.ndarray | None) -> RowExamples:
        self.noticed = []
        tokens = None if self.reads == "features" else self._tokens(cells, name)
        if self.grams is None:
            assert tokens is not None
            return RowExamples(tokens, y, len(cells))
        if tokens is None and (empty := sum(not any(cell.strip() for cell in row) for row in cells)):
            self._note_empty(name, empty)
        return TextExamples(tokens, self.grams.encode(cells), len(self.grams), y)

    def _note_empty(self, name: str, empty: int) -> None:
        self.noticed.append(Finding("empty", name, empty, f"{counted(empty, 'text is', 'texts are')} empty."))

    def _tokens(self, cells: list[tuple[str, ...]], name: str) -> Tensor:
        """Tokens of texts: int64 (n, length)."""
        tokens = torch.full((len(cells), self.length), self.pad)
        before, after = self.tokenizer.surrounding_tokens if self.add_special_tokens else ([], [])
        columns = len(self.names)
        between = after or ([] if columns == 1 or self.add_special_tokens else [self.tokenizer.id(SEPARATOR)])
        room = self.length - len(before) - len(after) - (columns - 1) * len(between)
        cut = empty = unknown = total = 0
        encoded = self.tokenizer.arrays([cell for row in cells for cell in row])
        for row in range(len(cells)):
            parts = encoded[row * columns : (row + 1) * columns]
            size = sum(map(len, parts))
            cut += size > room
            empty += not size
            unknown += sum(int((ids == self.tokenizer.unknown).sum()) for ids in parts)
            total += size
            kept = list(before)
            for i, (ids, most) in enumerate(zip(parts, shared_room([len(ids) for ids in parts], room), strict=True)):
                kept += [*(between if i else []), *ids[:most].tolist()]
            kept += after
            tokens[row, : len(kept)] = torch.tensor(kept, dtype=torch.int64)
        if cut and self.reads == "tokens":
            text = f"{counted(cut, 'text is', 'texts are')} longer than {room} tokens and cut there."
            self.noticed.append(Finding("cut", name, cut, text))
        if empty:
            self._note_empty(name, empty)
        if unknown > 0.2 * max(1, total):
            text = f"{unknown:,} of {total:,} tokens were never seen in training and count as unknown."
            self.noticed.append(Finding("unknown", name, unknown, text))
        return tokens

    trial_words = "texts of three lengths, in batches of 1, 7 and 34"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return TextProgram(self.reads, self.length, self.pad)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return text_trials(self)

    def tokens_of(self, cells: list[tuple[str, ...]]) -> Tensor:
        """Tokens of texts, without notes on them: int64 (n, length)."""
        noticed = self.noticed
        tokens = self._tokens(cells, "texts")
        self.noticed = noticed
        return tokens

    def beside(self) -> dict[str, bytes]:
        tokens = {} if self.reads == "features" else {"tokenizer.json": self.tokenizer.to_json().encode()}
        return tokens | ({} if self.grams is None else {"features.safetensors": feature_file(self.grams)})

    def traits(self, dataset: Texts, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Length, length of words, share of capitals, digits and other signs, and share of unknown tokens."""
        texts = [dataset.texts[row] for row in rows]
        sizes = np.maximum([len(text) for text in texts], 1)
        words = np.array([len(text.split()) for text in texts], np.float64)
        tokens = list(self.tokenizer.arrays(texts))
        unknown = [float((ids == self.tokenizer.unknown).mean()) if len(ids) else 0.0 for ids in tokens]
        return {
            "words": words,
            "characters of a word": sizes / np.maximum(words, 1),
            "share of capitals": np.array([sum(map(str.isupper, text)) for text in texts]) / sizes,
            "share of digits": np.array([sum(map(str.isdigit, text)) for text in texts]) / sizes,
            "share of other signs": np.array([sum(not (c.isalnum() or c.isspace()) for c in text) for text in texts])
            / sizes,
            "share of unknown tokens": np.array(unknown),
        }

    def open(self, source: Any, *, need_target: bool = False) -> Texts:
        """New texts: a table with the same column, lines of a text file, a folder of text files, or a list of texts."""
        if isinstance(source, Texts):
            return source
        if isinstance(source, list | tuple) and all(isinstance(text, str) for text in source):
            return self._new_texts("texts", list(source), None, need_target)
        if isinstance(source, list | tuple) and all(
            isinstance(row, list | tuple) and len(row) == len(self.names) and all(isinstance(cell, str) for cell in row)
            for row in source
        ):
            return self._new_texts("texts", [tuple(row) for row in source], None, need_target)
        if isinstance(source, str | os.PathLike):
            path = Path(source).expanduser()
            if path.is_dir():
                texts, labels, findings = read_folder(path, False)
                known = set(labels) <= set(self.classes or ())
                return self._new_texts(
                    path.name, texts, labels if known or need_target else None, need_target, findings
                )
            if path.is_file() and (opened := self._from_layout(path, Reading(), need_target)) is not None:
                return opened
            if path.exists() and is_text_file(path) and (kind := recognise(path)) is not None:
                return self._from_lines(path, kind, need_target)
        if isinstance(source, Written) and isinstance(source.source, str | os.PathLike) and source.contents is None:
            path = Path(source.source).expanduser()
            if path.is_file() and (opened := self._from_layout(path, source.reading, need_target)) is not None:
                return opened
        if isinstance(source, str | os.PathLike) and len(self.names) == 2:
            pairs = pairs_of_json(Path(source).expanduser(), self.target if need_target else None)
            if pairs is not None and pairs.texts == self.names:
                return self._from_frame(pairs.frame, Path(source).name, need_target, pairs.findings)
        contents = read_source(source, as_text=self._as_text())
        if contents.frame is None:
            raise WonderlandError(f"This model reads texts, and {contents.name} is not made of texts.")
        return self._from_frame(contents.frame, contents.name, need_target, contents.findings)

    def _from_layout(self, path: Path, reading: Reading, need_target: bool) -> Texts | None:
        """A file of texts and answers in any layout, if it has as many columns of text as the training data; None for another."""
        try:
            table = read_text_table(path, reading)
        except WonderlandError:
            if need_target:
                raise
            return None
        if table is None or len(table.texts) != len(self.names):
            return None
        answers = table.target.split(",")
        own = (self.target or "class").split(",")
        frame = table.frame
        if self.classes is not None:
            frame = frame.assign(**{name: frame[name].map(_as_words) for name in answers})
        if set(self.names) <= set(frame.columns) and (self.target in frame.columns or len(own) > 1):
            return self._from_frame(frame, path.name, need_target, table.findings)
        if len(answers) != len(own):
            return None
        renamed = frame.rename(columns=dict(zip((*table.texts, *answers), (*self.names, *own), strict=True)))
        known = self.classes is None or len(own) > 1 or set(_as_words(renamed)[own[0]].dropna()) <= set(self.classes)
        return (
            self._from_frame(_as_words(renamed), path.name, need_target, table.findings)
            if known or need_target
            else None
        )

    def _from_lines(self, path: Path, kind: str, need_target: bool) -> Texts:
        documents = read_documents(path, lines=True)
        texts, labels = list(documents.documents()), None
        pairs = [text.split(None, 1) for text in texts]
        named = [pair[0].removeprefix("__label__") for pair in pairs]
        if texts and (kind == "labelled" or need_target) and set(named) <= set(self.classes or ()):
            labels, texts = named, [pair[1] if len(pair) > 1 else "" for pair in pairs]
        return self._new_texts(path.name, texts, labels, need_target, documents.findings)

    def _from_frame(self, frame: pd.DataFrame, name: str, need_target: bool, findings: list[Finding]) -> Texts:
        for column in self.names:
            if column not in frame.columns:
                hint = nearest(column, frame.columns)
                raise WonderlandError(f"{name} has no column {column!r}, which holds the texts this model reads.{hint}")
        if self.task == MULTILABEL:
            return self._several(frame, name, need_target, findings)
        labels = None
        if need_target and self.target is not None and self.target in frame.columns:
            has_target = pd.Series(frame[self.target]).notna()
            if not has_target.all():
                findings = [*findings, missing_target(self.target, int((~has_target).sum()), len(frame))]
            if not has_target.any():
                raise WonderlandError(f"{name} has no classes to compare with: its column {self.target!r} is empty.")
            frame = frame.loc[has_target.to_numpy()]
            labels = list(frame[self.target])
        elif self.target in frame.columns and bool(pd.Series(frame[self.target]).notna().all()):
            labels = list(frame[self.target])
            if self.classes is not None and not {str(value) for value in labels} <= set(self.classes):
                labels = None
        return self._new_texts(name, self._cells(frame), labels, need_target, findings)

    def _cells(self, frame: pd.DataFrame) -> list[tuple[str, ...]]:
        columns = (["" if pd.isna(cell) else str(cell) for cell in frame[column]] for column in self.names)
        return list(zip(*columns, strict=True))

    def _several(self, frame: pd.DataFrame, name: str, need_target: bool, findings: list[Finding]) -> Texts:
        """Texts with several labels each: from a column of lists, or a column of 0 and 1 for each label."""
        labels, y = self.classes or [], None
        if self.target in frame.columns:
            y = coded(pieces(frame[self.target], labels), labels)
        elif set(labels) <= set(frame.columns):
            codes, _, rows = read_labels(frame, labels, [])
            y, frame = codes[rows], frame.iloc[rows]
        elif need_target:
            raise WonderlandError(
                f"{name} has no labels to compare with: give a table with the column {self.target!r}."
            )
        named = {"names": self.names, "target": self.target, "task": self.task, "findings": findings}
        return Texts(name, self._cells(frame), y=y, classes=None if y is None else labels, **named)

    def _as_text(self) -> list[str]:
        """Columns whose cells are read as they are written."""
        return [*self.names, *([] if self.target is None or self.classes is None else [self.target])]

    def _new_texts(
        self,
        name: str,
        texts: Sequence[str | tuple[str, ...]],
        labels: list[Any] | None,
        need_target: bool,
        findings: list[Finding] | None = None,
    ) -> Texts:
        if not texts:
            raise WonderlandError(f"{name} holds no texts.")
        if labels is None:
            if need_target:
                raise WonderlandError(
                    f"{name} has no classes to compare with: give a table with the column {self.target!r}, or class folders."
                )
            return Texts(name, texts, names=self.names, findings=findings)
        named = {
            "names": self.names,
            "target": self.target,
            "task": self.task,
            "classes": self.classes,
            "findings": findings,
        }
        return Texts(name, texts, y=self._targets(name, labels), **named)

    def _targets(self, name: str, labels: list[Any]) -> np.ndarray:
        """Codes of classes, or numbers."""
        if self.classes is None:
            y = np.array(pd.to_numeric(pd.Series(labels), errors="coerce"), np.float64)
            if not np.isfinite(y).all():
                wrong = labels[int(np.flatnonzero(~np.isfinite(y))[0])]
                raise WonderlandError(
                    f"{name} has {str(wrong)[:40]!r} in its column {self.target!r}, where a number is expected."
                )
            return y
        code = {label: i for i, label in enumerate(self.classes)}
        for label in map(str, labels):
            if label not in code:
                raise WonderlandError(
                    f"{name} has the class {label!r}, which this model does not know.{nearest(label, self.classes)}"
                )
        return np.array([code[str(label)] for label in labels], np.int64)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "length": self.length,
            "columns": list(self.names),
            "target": self.target,
            "classes": self.classes,
            "task": self.task,
            "tokenizer": json.loads(self.tokenizer.to_json()),
            "roles": self.tokenizer.roles,
            "pad": self.pad,
            "framed": self.add_special_tokens,
            "reads": self.reads,
            "pieces": None if self.grams is None else self.grams.pieces,
        }

    def tensors(self) -> dict[str, Tensor]:
        return {} if self.grams is None else self.grams.tensors()

    def schema(self) -> list[Field]:
        return [Field(name, "text") for name in self.names]

    def describe(self) -> str:
        if self.grams is None:
            return ""
        pieces = "words, pairs of words and pieces of words" if self.grams.pieces else "words and pairs of words"
        return f"Features: {len(self.grams):,} {pieces}. "

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        columns = [texts_of_field(rows, name) for name in self.names]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def arguments(self) -> dict[str, Any]:
        """For models of tokens: the size of the vocabulary, the padding token, and the length of a row; for linear ones the features."""
        tokens = {"vocab": self.tokenizer.vocab, "pad": self.pad, "length": self.length}
        return tokens if self.grams is None else tokens | {"features": len(self.grams)}

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "TextEncoder":
        """Rebuild an encoder from `to_json`; invalid content raises a `WonderlandError`."""
        damaged = WonderlandError("The preprocessing of this model is not for texts: the file is damaged or not ours.")
        fine = isinstance(value, dict) and isinstance(value.get("tokenizer"), dict)
        fine = fine and isinstance(value.get("length"), int) and 1 <= value["length"] <= 1 << 16
        names = value.get("columns", [value.get("column")]) if fine else None
        fine = (
            fine and isinstance(names, list) and 1 <= len(names) <= 100 and all(isinstance(name, str) for name in names)
        )
        fine = fine and isinstance(value.get("target"), str | None)
        fine = fine and isinstance(value.get("pad", 0), int) and isinstance(value.get("framed", False), bool)
        fine = fine and value.get("task") in (*TASKS, MULTILABEL) and value.get("reads", "tokens") in READS
        classes = value.get("classes") if fine else None
        if fine and value["task"] != "regression":
            fine = isinstance(classes, list) and all(isinstance(name, str) for name in classes)
            fine = fine and 2 <= len(classes or ()) == len(set(classes or ())) <= 100_000
        elif fine:
            fine = classes is None
        if not fine:
            raise damaged
        assert isinstance(names, list)
        reads = value.get("reads", "tokens")
        grams = None if reads == "tokens" else Grams.read(tensors or {}, value.get("pieces"))
        tokenizer = Tokenizer.from_json(value["tokenizer"], roles=checked_roles(value.get("roles")))
        pad, add_special_tokens = value.get("pad", 0), value.get("framed", False)
        extra = sum(map(len, tokenizer.surrounding_tokens)) if add_special_tokens else 0
        if not 0 <= pad < tokenizer.vocab or extra >= value["length"]:
            raise damaged
        named = {
            "target": value.get("target"),
            "classes": classes,
            "task": value["task"],
            "grams": grams,
            "reads": reads,
        }
        return cls(tokenizer, value["length"], names=names, **named, pad=pad, add_special_tokens=add_special_tokens)


def _as_words(cell: Any) -> Any:
    """A whole number as it is written, without the fraction that a missing cell elsewhere would give it."""
    return f"{cell:g}" if isinstance(cell, float) and cell == cell else cell


def shared_room(lengths: list[int], room: int) -> list[int]:
    """How many tokens of each column are kept, so that all fit: the longest are cut first.

    >>> shared_room([3, 50, 20], 30)
    [3, 14, 13]
    """
    kept, left = [0] * len(lengths), max(0, room)
    for done, place in enumerate(sorted(range(len(lengths)), key=lambda i: lengths[i])):
        kept[place] = min(lengths[place], left // (len(lengths) - done))
        left -= kept[place]
    return kept
