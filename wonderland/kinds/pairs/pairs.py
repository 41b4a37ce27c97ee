"""Pairs of texts: what is read and what is to be written, one pair a row."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.data.dataset import Dataset, Encoder, Finding, counted, stop_if_strict
from wonderland.data.text.recognise import is_free_text
from wonderland.data.text.sources import is_text_file, read_documents
from wonderland.data.text.tokenizer import Tokenizer, checked_roles, repeatable

NAMES = (("source", "target"), ("input", "output"), ("question", "answer"), ("prompt", "response"))
LONGEST = 256


class Pairs(Dataset):
    """Texts to read and texts to write. `columns` are where they stood."""

    kind = "pairs"

    def __init__(
        self,
        name: str,
        sources: list[str],
        targets: list[str] | None,
        *,
        columns: tuple[str, str] = ("source", "target"),
        findings: list[Finding] | None = None,
        origin: dict[str, Any] | None = None,
    ):
        self.name, self.sources, self.targets, self.columns = name, sources, targets, columns
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
        strict: bool = False,
        name: str = "frame",
        origin: dict[str, Any] | None = None,
        findings: list[Finding] | None = None,
    ) -> "Pairs":
        """Two text columns of a frame; rows that lack one of the two are left out."""
        frame = _with_first_row(frame)
        read, write = pair_of(frame, column, target)
        findings = list(findings or [])
        text = f"Column {read!r} is read and column {write!r} is to be written."
        findings.append(Finding("pairs", name, len(frame), text))
        cells = frame[[read, write]]
        whole = cells.notna().all(axis=1) & (cells.astype(str).apply(lambda one: one.str.strip()) != "").all(axis=1)
        lost = len(cells) - int(np.asarray(whole).sum())
        if lost:
            said = f"{counted(lost, 'row lacks', 'rows lack')} one of the two texts and {'is' if lost == 1 else 'are'} left out."
            findings.append(Finding("missing", name, lost, said))
        stop_if_strict(findings, strict)
        kept = cells[whole].astype(str)
        if len(kept) < 8:
            raise WonderlandError(f"{name} has {counted(len(kept), 'pair', 'pairs')} of texts: give at least 8.")
        return cls(
            name, kept[read].tolist(), kept[write].tolist(), columns=(read, write), findings=findings, origin=origin
        )

    def __len__(self) -> int:
        return len(self.sources)

    def headline(self) -> str:
        """The pairs in one line."""
        return f"{self.name}: {counted(len(self), 'pair', 'pairs')} of texts, {self.columns[0]} to {self.columns[1]}"

    def summary(self) -> list[dict[str, Any]]:
        """How long the texts of each side are."""
        sides = zip(self.columns, (self.sources, self.targets or []), strict=True)
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
        shown = {self.columns[0]: self.sources[i]}
        return shown | ({self.columns[1]: self.targets[i]} if self.targets else {})

    def encoder(self, rows: np.ndarray, **asked: Any) -> "PairsEncoder":
        return PairsEncoder.fit(self, rows, **asked)


def pair_of(frame: pd.DataFrame, column: str | None, target: str | None) -> tuple[str, str]:
    """Which column is read and which is written: as named, by well-known names, or the first two of sentences or of text."""
    names = list(frame.columns)
    for option, name in (("column", column), ("target", target)):
        if name is not None and name not in names:
            raise WonderlandError(f"There is no column {name!r} (given as {option}).{nearest(name, names)}")
    if column and target:
        return column, target
    folded = {name.strip().casefold(): name for name in names}
    for read, write in NAMES:
        if read in folded and write in folded:
            return column or folded[read], target or folded[write]
    texts = [name for name in names if pd.Series(frame[name]).map(lambda cell: isinstance(cell, str)).mean() > 0.5]
    free = [name for name in texts if is_free_text(pd.Series(frame[name]))]
    texts = free if len(free) > 1 else texts
    if len(texts) < 2:
        raise WonderlandError("Pairs need two columns of text: name them with the options column and target.")
    read = column or next(name for name in texts if name != target)
    return read, target or next(name for name in texts if name != read)


def _with_first_row(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose names are really its first row, as in files without a header, gets it back."""
    names = [str(name) for name in frame.columns]
    if not any(" " in name.strip() or name.strip().endswith((".", "!", "?", "。")) for name in names):
        return frame
    first = pd.DataFrame([names], columns=[f"c{i}" for i in range(len(names))])
    return pd.concat([first, frame.set_axis(first.columns, axis=1)], ignore_index=True)


class PairsEncoder(Encoder):
    """One tokenizer for both sides, and how long rows are: encoded rows are (source | what the writer is given)."""

    kind = "pairs"

    def __init__(self, tokenizer: Tokenizer, read: int, write: int, columns: tuple[str, str], begin: int = 1):
        self.tokenizer, self.read, self.write, self.columns, self.begin = tokenizer, read, write, columns, begin
        self.noticed: list[Finding] = []

    @classmethod
    def fit(
        cls,
        dataset: Pairs,
        rows: np.ndarray,
        *,
        tokens: str | None = None,
        vocab: int | None = None,
        context: int | None = None,
    ) -> "PairsEncoder":
        """Tokens from the training pairs only: pairs of bytes, over both sides, unless `tokens` says otherwise.

        `vocab` is the number of tokens at most, `context` how many of them either side has at most.
        """
        assert dataset.targets is not None
        texts = [text for row in rows for text in (dataset.sources[row], dataset.targets[row])]
        letters = sum(map(len, texts))
        kind = repeatable(tokens) or "bpe"
        vocab = vocab or int(np.clip(2 ** round(np.log2(max(letters, 1) / 100)), 512, 8192))
        specials = ("<pad>", "<s>", "</s>") if kind == "bpe" else ("<pad>", "<s>", "</s>", "<unk>")
        tokenizer = Tokenizer.train(texts, kind=kind, vocab=vocab, specials=specials)
        return cls.around(tokenizer, 1, dataset, rows, context=context)

    @classmethod
    def around(
        cls, tokenizer: Tokenizer, begin: int, dataset: Pairs, rows: np.ndarray, *, context: int | None = None
    ) -> "PairsEncoder":
        """For a tokenizer that is there already; `begin` is what a target begins with."""
        assert dataset.targets is not None
        read = max(map(len, tokenizer.encode_batch([dataset.sources[row] for row in rows])))
        write = max(map(len, tokenizer.encode_batch([dataset.targets[row] for row in rows])))
        longest = context or LONGEST
        return cls(tokenizer, min(longest, read + 1), min(longest, write + 1), dataset.columns, begin)

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        """Tokens of both sides of these rows, (n, read + write); the right side begins with the begin token."""
        if not isinstance(dataset, Pairs):
            raise WonderlandError("This model reads pairs of texts.")
        chosen = range(len(dataset)) if rows is None else rows
        found = torch.zeros(len(chosen), self.read + self.write, dtype=torch.int64)
        assert self.tokenizer.end is not None
        cut = 0
        for row, ids in enumerate(self.tokenizer.encode_batch([dataset.sources[i] for i in chosen])):
            cut += len(ids) >= self.read
            kept = [*ids[: self.read - 1], self.tokenizer.end]
            found[row, : len(kept)] = torch.tensor(kept)
        found[:, self.read] = self.begin
        if dataset.targets is not None:
            for row, ids in enumerate(self.tokenizer.encode_batch([dataset.targets[i] for i in chosen])):
                cut += len(ids) >= self.write
                kept = [self.begin, *ids[: self.write - 1]]
                found[row, self.read : self.read + len(kept)] = torch.tensor(kept)
        text = f"{counted(cut, 'text is', 'texts are')} longer than the model reads or writes and cut there."
        self.noticed = [Finding("cut", dataset.name, cut, text)] if cut else []
        return found

    def answers(self, dataset: Pairs, rows: np.ndarray | None = None) -> Tensor:
        """What is to be written, (n, write): the tokens and the end token, then -100."""
        assert dataset.targets is not None
        chosen = range(len(dataset)) if rows is None else rows
        found = torch.full((len(chosen), self.write), -100)
        for row, ids in enumerate(self.tokenizer.encode_batch([dataset.targets[i] for i in chosen])):
            kept = [*ids[: self.write - 1], self.tokenizer.end] if len(ids) < self.write else ids[: self.write]
            found[row, : len(kept)] = torch.tensor(kept)
        return found

    def open(self, source: Any, *, need_target: bool = False) -> Pairs:
        """New texts to read: a list, lines of a text file, or a table with the same columns."""
        if isinstance(source, list | tuple) and len(source) and all(isinstance(text, str) for text in source):
            return self._made("texts", list(source), None, need_target)
        if isinstance(source, str | os.PathLike):
            path = Path(source).expanduser()
            if path.exists() and is_text_file(path) and not need_target:
                documents = read_documents(path, lines=True)
                texts = [line.split("\t")[0] for line in documents.documents()]
                return self._made(path.name, texts, None, need_target, documents.findings)
        from wonderland.kinds.open import look

        found = look(source, as_text=self.columns)
        if found.frame is None:
            raise WonderlandError(f"This model reads texts, and {found.name} is not made of texts.")
        frame = _with_first_row(found.frame)
        read, write = self.columns
        if read not in frame.columns:
            raise WonderlandError(
                f"{found.name} has no column {read!r}, which holds the texts this model reads.{nearest(read, frame.columns)}"
            )
        sources = ["" if pd.isna(cell) else str(cell) for cell in frame[read]]
        targets = [str(cell) for cell in frame[write]] if write in frame.columns else None
        return self._made(found.name, sources, targets, need_target, found.findings)

    def _made(
        self,
        name: str,
        sources: list[str],
        targets: list[str] | None,
        need_target: bool,
        findings: list[Finding] | None = None,
    ) -> Pairs:
        if not sources:
            raise WonderlandError(f"{name} holds no texts.")
        if need_target and targets is None:
            raise WonderlandError(f"{name} has no column {self.columns[1]!r} to compare with.")
        return Pairs(name, sources, targets, columns=self.columns, findings=findings)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "read": self.read,
            "write": self.write,
            "columns": list(self.columns),
            "tokenizer": json.loads(self.tokenizer.to_json()),
            "roles": self.tokenizer.roles,
            "begin": self.begin,
        }

    def tensors(self) -> dict[str, Tensor]:
        return {}

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "PairsEncoder":
        """Read what `to_json` gave; content that cannot be right is refused in a sentence."""
        fine = isinstance(value, dict) and isinstance(value.get("tokenizer"), dict)
        fine = fine and all(
            isinstance(value.get(side), int) and 1 <= value[side] <= 1 << 16 for side in ("read", "write")
        )
        columns = value.get("columns") if fine else None
        if not isinstance(columns, list) or len(columns) != 2 or not all(isinstance(name, str) for name in columns):
            raise WonderlandError("The preprocessing of this model is not for pairs: the file is damaged or not ours.")
        tokenizer = Tokenizer.from_json(value["tokenizer"], roles=checked_roles(value.get("roles")))
        begin = value.get("begin", 1)
        fine = isinstance(begin, int) and 0 <= begin < tokenizer.vocab
        if not fine or tokenizer.pad != 0 or tokenizer.end in (0, None):
            raise WonderlandError("The preprocessing of this model is not for pairs: the file is damaged or not ours.")
        return cls(tokenizer, value["read"], value["write"], (columns[0], columns[1]), begin)
