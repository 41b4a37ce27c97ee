"""Encoder of pairs: tokens of the source that is read, and of the target that is written."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.core.batch import Batch
from wonderland.data.dataset import Finding, counted
from wonderland.data.encoder import Encoder, Field, texts_of_field
from wonderland.data.examples import RowExamples
from wonderland.data.source import read_source
from wonderland.data.text.sources import is_text_file, read_documents
from wonderland.data.text.tokenizer import Tokenizer, repeatable
from wonderland.data.text.tokenizer_json import checked_roles
from wonderland.kinds.pairs.pairs import Pairs, with_first_row

LONGEST = 256


class PairExamples(RowExamples):
    """Encoded pairs, and the texts behind them."""

    unit = "pair"

    def __init__(self, encoder: "PairsEncoder", pairs: Pairs):
        super().__init__(encoder.encode(pairs), None, len(pairs))
        self.encoder, self.pairs = encoder, pairs
        self.targets = None if pairs.targets is None else encoder.target_tokens(pairs)

    def texts(self, part: np.ndarray) -> tuple[list[str], list[str] | None]:
        """The texts to read of a part, and those to write where they are known."""
        targets = self.pairs.targets
        return [self.pairs.sources[i] for i in part], None if targets is None else [targets[i] for i in part]

    def in_order(self, part: Any, *, size: int = 64, most: int | None = None) -> Iterator[Batch]:
        return super().in_order(part, size=size, most=most)


class PairsEncoder(Encoder):
    """One tokenizer for both sides and their lengths. An encoded row is the source, then the input of the decoder."""

    kind = "pairs"
    reads_tables = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        read: int,
        write: int,
        columns: tuple[str, str],
        begin: int = 1,
        before: list[int] | None = None,
    ):
        self.tokenizer, self.read, self.write, self.columns, self.begin = tokenizer, read, write, columns, begin
        # Tokens that the tokenizer of a checkpoint puts before a text (<s> of BART), and the id of padding.
        self.before, self.pad = before or [], tokenizer.pad or 0
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
        """Learn the tokenizer from both sides of the training pairs: byte pair encoding, unless `tokens` names another kind.

        `vocab` is the largest size of the vocabulary, `context` the largest number of tokens on either side.
        """
        assert dataset.targets is not None
        texts = [text for row in rows for text in (dataset.sources[row], dataset.targets[row])]
        letters = sum(map(len, texts))
        kind = repeatable(tokens) or "bpe"
        vocab = vocab or int(np.clip(2 ** round(np.log2(max(letters, 1) / 100)), 512, 8192))
        specials = ("<pad>", "<s>", "</s>") if kind == "bpe" else ("<pad>", "<s>", "</s>", "<unk>")
        tokenizer = Tokenizer.train(texts, kind=kind, vocab=vocab, specials=specials)
        return cls.with_tokenizer(tokenizer, 1, dataset, rows, context=context)

    @classmethod
    def with_tokenizer(
        cls, tokenizer: Tokenizer, begin: int, dataset: Pairs, rows: np.ndarray, *, context: int | None = None
    ) -> "PairsEncoder":
        """An encoder with an existing tokenizer; `begin` is the id that a target begins with."""
        assert dataset.targets is not None
        read = max(map(len, tokenizer.encode_batch([dataset.sources[row] for row in rows])))
        write = max(map(len, tokenizer.encode_batch([dataset.targets[row] for row in rows])))
        longest, before = context or LONGEST, tokenizer.surrounding_tokens[0]
        around = 1 + len(before)
        return cls(
            tokenizer, min(longest, read + around), min(longest, write + around), dataset.column_names, begin, before
        )

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        """Tokens of both sides of these rows, (n, read + write); the right side begins with the begin token."""
        if not isinstance(dataset, Pairs):
            raise WonderlandError("This model reads pairs of texts.")
        chosen = range(len(dataset)) if rows is None else rows
        tokens = torch.full((len(chosen), self.read + self.write), self.pad)
        assert self.tokenizer.end is not None
        cut = 0
        for row, ids in enumerate(self.tokenizer.encode_batch([dataset.sources[i] for i in chosen])):
            ids = [*self.before, *ids]
            cut += len(ids) >= self.read
            kept = [*ids[: self.read - 1], self.tokenizer.end]
            tokens[row, : len(kept)] = torch.tensor(kept)
        tokens[:, self.read] = self.begin
        if dataset.targets is not None:
            for row, ids in enumerate(self.tokenizer.encode_batch([dataset.targets[i] for i in chosen])):
                ids = [*self.before, *ids]
                cut += len(ids) >= self.write
                kept = [self.begin, *ids[: self.write - 1]]
                tokens[row, self.read : self.read + len(kept)] = torch.tensor(kept)
        text = f"{counted(cut, 'text is', 'texts are')} longer than the model's limit and cut there."
        self.noticed = [Finding("cut", dataset.name, cut, text)] if cut else []
        return tokens

    def examples(self, dataset: Any) -> "PairExamples":
        return PairExamples(self, dataset)

    def encode_sources(self, texts: list[str]) -> Tensor:
        """Tokens of texts to read, (n, longest)."""
        x = self.encode(Pairs("texts", texts, None))[:, : self.read]
        return x[:, : max(1, int((x != self.pad).sum(1).max()))]

    def target_tokens(self, dataset: Pairs, rows: np.ndarray | None = None) -> Tensor:
        """The targets of the loss, (n, write): tokens and the end token, then -100."""
        assert dataset.targets is not None
        chosen = range(len(dataset)) if rows is None else rows
        targets = torch.full((len(chosen), self.write), -100)
        for row, ids in enumerate(self.tokenizer.encode_batch([dataset.targets[i] for i in chosen])):
            ids = [*self.before, *ids]
            kept = [*ids[: self.write - 1], self.tokenizer.end] if len(ids) < self.write else ids[: self.write]
            targets[row, : len(kept)] = torch.tensor(kept)
        return targets

    def open(self, source: Any, *, need_target: bool = False) -> Pairs:
        """New texts to read: a list, lines of a text file, or a table with the same columns."""
        if isinstance(source, list | tuple) and len(source) and all(isinstance(text, str) for text in source):
            return self._new_pairs("texts", list(source), None, need_target)
        if isinstance(source, str | os.PathLike):
            path = Path(source).expanduser()
            if path.exists() and is_text_file(path) and not need_target:
                documents = read_documents(path, lines=True)
                texts = [line.split("\t")[0] for line in documents.documents()]
                return self._new_pairs(path.name, texts, None, need_target, documents.findings)
        contents = read_source(source, as_text=self.columns)
        if contents.frame is None:
            raise WonderlandError(f"This model reads texts, and {contents.name} is not made of texts.")
        frame = with_first_row(contents.frame)
        read, write = self.columns
        if read not in frame.columns:
            raise WonderlandError(
                f"{contents.name} has no column {read!r}, which holds the texts this model reads.{nearest(read, frame.columns)}"
            )
        sources = ["" if pd.isna(cell) else str(cell) for cell in frame[read]]
        targets = [str(cell) for cell in frame[write]] if write in frame.columns else None
        return self._new_pairs(contents.name, sources, targets, need_target, contents.findings)

    def _new_pairs(
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
        return Pairs(name, sources, targets, column_names=self.columns, findings=findings)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "read": self.read,
            "write": self.write,
            "columns": list(self.columns),
            "tokenizer": json.loads(self.tokenizer.to_json()),
            "roles": self.tokenizer.roles,
            "begin": self.begin,
            **({"before": self.before} if self.before else {}),
        }

    def describe(self) -> str:
        kind = self.tokenizer.kind
        return f"Vocabulary: {self.tokenizer.vocab:,} {kind if kind in ('characters', 'words') else f'{kind} tokens'}. "

    def schema(self) -> list[Field]:
        return [Field(self.columns[0], "text")]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        return texts_of_field(rows, self.columns[0])

    def module(self, *, double: bool = False) -> str:
        return "Translation is a search over many calls of the model, which is no single graph: wonderland predict and serve run it."

    def arguments(self) -> dict[str, Any]:
        """For models of pairs: the size of the vocabulary and the token that begins a target."""
        return {"vocab": self.tokenizer.vocab, "source_vocab": self.tokenizer.vocab, "begin": self.begin}

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "PairsEncoder":
        """Rebuild an encoder from `to_json`; invalid content raises a `WonderlandError`."""
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
        before = value.get("before", [])
        fine = fine and isinstance(before, list) and len(before) < 16
        fine = fine and all(isinstance(token, int) and 0 <= token < tokenizer.vocab for token in before)
        if not fine or tokenizer.pad is None or tokenizer.end is None or tokenizer.end == tokenizer.pad:
            raise WonderlandError("The preprocessing of this model is not for pairs: the file is damaged or not ours.")
        return cls(tokenizer, value["read"], value["write"], (columns[0], columns[1]), begin, before)
