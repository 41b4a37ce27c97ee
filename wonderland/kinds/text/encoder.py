"""Encoder of texts: rows of tokens of one length, which is enough for nearly all training texts."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.data.dataset import TASKS, Dataset, Finding, counted
from wonderland.data.encoder import Field, RowEncoder, texts_of_field
from wonderland.data.source import read_source
from wonderland.data.target import missing_target
from wonderland.data.text.recognise import recognise
from wonderland.data.text.sources import is_text_file, read_documents
from wonderland.data.text.tokenizer import Tokenizer, repeatable
from wonderland.data.text.tokenizer_json import checked_roles
from wonderland.kinds.text.texts import Texts, read_folder

LONGEST = 400


class TextEncoder(RowEncoder):
    """A tokenizer and the length of a row; longer texts are truncated, shorter ones padded with the token `pad`.

    With `add_special_tokens`, each text is put between the tokens of a checkpoint's tokenizer, such as [CLS] and [SEP].
    """

    kind = "text"
    reads_tables = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        length: int,
        *,
        column: str,
        target: str | None,
        classes: list[str] | None,
        task: str | None,
        pad: int = 0,
        add_special_tokens: bool = False,
    ):
        self.tokenizer, self.length, self.column, self.target = tokenizer, length, column, target
        self.classes, self.task, self.pad, self.add_special_tokens = classes, task, pad, add_special_tokens
        self.noticed: list[Finding] = []

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
        names another kind.

        `vocab` is the largest size of the vocabulary, `context` the largest number of tokens of a text.
        """
        texts = [dataset.texts[row] for row in rows]
        joined = "".join(texts[:2000])
        spaced = len(joined.split()) > len(joined) / 15
        kind = repeatable(tokens) or ("words" if spaced else "bpe")
        vocab = vocab or (4000 if kind == "bpe" else 30_000)
        tokenizer = Tokenizer.train(texts, kind=kind, vocab=vocab, specials=("<pad>", "<unk>"), lowercase=True)
        lengths = [len(ids) for ids in tokenizer.encode_batch(texts)]
        length = context or int(min(LONGEST, max(8, np.quantile(lengths, 0.99))))
        return cls(
            tokenizer,
            length,
            column=dataset.column,
            target=dataset.target,
            classes=dataset.classes,
            task=dataset.task,
        )

    @classmethod
    def with_tokenizer(
        cls, tokenizer: Tokenizer, pad: int, dataset: Texts, rows: np.ndarray, *, most: int | None, context: int | None
    ) -> "TextEncoder":
        """An encoder with the tokenizer of a checkpoint; `most` is the number of positions that its model has."""
        extra = sum(map(len, tokenizer.surrounding_tokens))
        lengths = [len(ids) + extra for ids in tokenizer.encode_batch([dataset.texts[row] for row in rows])]
        length = context or int(min(LONGEST, most or LONGEST, max(8, np.quantile(lengths, 0.99))))
        if not extra < length <= (most or length):
            raise WonderlandError(
                f"context is from {extra + 1} to {most or 'any number'} for this checkpoint, not {length}."
            )
        named = {"column": dataset.column, "target": dataset.target, "classes": dataset.classes, "task": dataset.task}
        return cls(tokenizer, length, **named, pad=pad, add_special_tokens=True)

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        """Tokens of these rows (all, when not given): int64 (n, length)."""
        if not isinstance(dataset, Texts):
            name = dataset.name if isinstance(dataset, Dataset) else "the data"
            raise WonderlandError(f"This model reads texts, and {name} is not made of texts.")
        texts = dataset.texts if rows is None else [dataset.texts[row] for row in rows]
        tokens = torch.full((len(texts), self.length), self.pad)
        before, after = self.tokenizer.surrounding_tokens if self.add_special_tokens else ([], [])
        room = self.length - len(before) - len(after)
        cut = empty = unknown = total = 0
        for row, ids in enumerate(self.tokenizer.arrays(texts)):
            cut += len(ids) > room
            empty += not len(ids)
            unknown += int((ids == self.tokenizer.unknown).sum())
            total += len(ids)
            kept = ids[:room] if not self.add_special_tokens else np.array([*before, *ids[:room], *after], np.int64)
            tokens[row, : len(kept)] = torch.from_numpy(np.ascontiguousarray(kept))
        self.noticed = []
        name = dataset.name
        if cut:
            text = f"{counted(cut, 'text is', 'texts are')} longer than {room} tokens and cut there."
            self.noticed.append(Finding("cut", name, cut, text))
        if empty:
            self.noticed.append(Finding("empty", name, empty, f"{counted(empty, 'text is', 'texts are')} empty."))
        if unknown > 0.2 * max(1, total):
            text = f"{unknown:,} of {total:,} tokens were never seen in training and count as unknown."
            self.noticed.append(Finding("unknown", name, unknown, text))
        return tokens

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
        if isinstance(source, str | os.PathLike):
            path = Path(source).expanduser()
            if path.is_dir():
                texts, labels, findings = read_folder(path, False)
                known = set(labels) <= set(self.classes or ())
                return self._new_texts(
                    path.name, texts, labels if known or need_target else None, need_target, findings
                )
            if path.exists() and is_text_file(path) and (kind := recognise(path)) is not None:
                return self._from_lines(path, kind, need_target)
        contents = read_source(source, as_text=[name for name in (self.target, self.column) if name])
        if contents.frame is None:
            raise WonderlandError(f"This model reads texts, and {contents.name} is not made of texts.")
        return self._from_frame(contents.frame, contents.name, need_target, contents.findings)

    def _from_lines(self, path: Path, kind: str, need_target: bool) -> Texts:
        documents = read_documents(path, lines=True)
        texts, labels = list(documents.documents()), None
        pairs = [text.split(None, 1) for text in texts]
        named = [pair[0].removeprefix("__label__") for pair in pairs]
        if texts and (kind == "labelled" or need_target) and set(named) <= set(self.classes or ()):
            labels, texts = named, [pair[1] if len(pair) > 1 else "" for pair in pairs]
        return self._new_texts(path.name, texts, labels, need_target, documents.findings)

    def _from_frame(self, frame: pd.DataFrame, name: str, need_target: bool, findings: list[Finding]) -> Texts:
        if self.column not in frame.columns:
            hint = nearest(self.column, frame.columns)
            raise WonderlandError(
                f"{name} has no column {self.column!r}, which holds the texts this model reads.{hint}"
            )
        labels = None
        if need_target and self.target is not None and self.target in frame.columns:
            has_target = pd.Series(frame[self.target]).notna()
            if not has_target.all():
                findings = [*findings, missing_target(self.target, int((~has_target).sum()), len(frame))]
            if not has_target.any():
                raise WonderlandError(f"{name} has no classes to compare with: its column {self.target!r} is empty.")
            frame = frame.loc[has_target.to_numpy()]
            labels = [str(value) for value in frame[self.target]]
        elif self.target in frame.columns and bool(pd.Series(frame[self.target]).notna().all()):
            labels = [str(value) for value in frame[self.target]]
            labels = labels if set(labels) <= set(self.classes or ()) else None
        texts = ["" if pd.isna(cell) else str(cell) for cell in frame[self.column]]
        return self._new_texts(name, texts, labels, need_target, findings)

    def _new_texts(
        self,
        name: str,
        texts: list[str],
        labels: list[str] | None,
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
            return Texts(name, texts, column=self.column, findings=findings)
        classes = self.classes or []
        for label in labels:
            if label not in classes:
                raise WonderlandError(
                    f"{name} has the class {label!r}, which this model does not know.{nearest(label, classes)}"
                )
        y = np.array([classes.index(label) for label in labels], np.int64)
        return Texts(
            name, texts, column=self.column, target=self.target, task=self.task, classes=classes, y=y, findings=findings
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "length": self.length,
            "column": self.column,
            "target": self.target,
            "classes": self.classes,
            "task": self.task,
            "tokenizer": json.loads(self.tokenizer.to_json()),
            "roles": self.tokenizer.roles,
            "pad": self.pad,
            "framed": self.add_special_tokens,
        }

    def schema(self) -> list[Field]:
        return [Field(self.column, "text")]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        return texts_of_field(rows, self.column)

    def arguments(self) -> dict[str, Any]:
        """For models of tokens: the size of the vocabulary, the padding token, and the length of a row."""
        return {"vocab": self.tokenizer.vocab, "pad": self.pad, "length": self.length}

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "TextEncoder":
        """Rebuild an encoder from `to_json`; invalid content raises a `WonderlandError`."""
        fine = isinstance(value, dict) and isinstance(value.get("tokenizer"), dict)
        fine = fine and isinstance(value.get("length"), int) and 1 <= value["length"] <= 1 << 16
        fine = fine and isinstance(value.get("column"), str) and isinstance(value.get("target"), str | None)
        fine = fine and isinstance(value.get("pad", 0), int) and isinstance(value.get("framed", False), bool)
        fine = fine and value.get("task") in TASKS and isinstance(value.get("classes"), list)
        fine = fine and all(isinstance(name, str) for name in value["classes"])
        if not fine or not 2 <= len(value["classes"]) == len(set(value["classes"])) <= 100_000:
            raise WonderlandError("The preprocessing of this model is not for texts: the file is damaged or not ours.")
        named = {name: value[name] for name in ("column", "target", "classes", "task")}
        tokenizer = Tokenizer.from_json(value["tokenizer"], roles=checked_roles(value.get("roles")))
        pad, add_special_tokens = value.get("pad", 0), value.get("framed", False)
        if not 0 <= pad < tokenizer.vocab or (
            add_special_tokens and sum(map(len, tokenizer.surrounding_tokens)) >= value["length"]
        ):
            raise WonderlandError("The preprocessing of this model is not for texts: the file is damaged or not ours.")
        return cls(tokenizer, value["length"], **named, pad=pad, add_special_tokens=add_special_tokens)
