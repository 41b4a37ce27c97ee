"""Encoder of a language model: its tokenizer and its context length."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.data.encoder import Encoder, Field, texts_of_field
from wonderland.data.examples import Examples
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.text.sources import read_documents
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.data.text.tokenizer_json import checked_roles
from wonderland.kinds.corpus.examples import DocumentExamples, TokenExamples
from wonderland.kinds.corpus.program import TokenProgram, language_trials


class CorpusEncoder(Encoder):
    """A tokenizer, the context length in training, and whether the corpus had many documents (`many`)."""

    kind = "corpus"

    def __init__(
        self, tokenizer: Tokenizer, context: int, *, many: bool, lines: bool = False, column: str | None = None
    ):
        self.tokenizer, self.context, self.many, self.lines, self.column = tokenizer, context, many, lines, column
        self.noticed: list[Finding] = []

    @property
    def frame(self) -> list[int]:
        """The tokens before a text: for many documents the token that begins each; else those that the tokenizer puts before a text."""
        if not self.many:
            return self.tokenizer.surrounding_tokens[0]
        return [] if self.tokenizer.document_begin is None else [self.tokenizer.document_begin]

    def examples(self, dataset: Any) -> Examples:
        if isinstance(dataset, NewDocuments):
            return DocumentExamples(self, dataset.texts)
        return TokenExamples(self, self.many)

    def open(self, source: Any, *, need_target: bool = False) -> "NewDocuments":
        """New documents: a path, or texts in a list."""
        if isinstance(source, str | Path):
            documents = read_documents(source, column=self.column, lines=self.lines)
            return self._new_documents(
                documents.path.name, list(documents.documents()), documents.findings, need_target
            )
        if isinstance(source, list | tuple) and all(isinstance(text, str) for text in source):
            return self._new_documents("texts", list(source), [], need_target)
        raise WonderlandError(f"A language model reads a path or a list of texts, not {type(source).__name__}.")

    def _new_documents(self, name: str, texts: list[str], findings: list[Finding], need_target: bool) -> "NewDocuments":
        unknown = self.tokenizer.unknown
        unknown_count = 0 if unknown is None else sum(ids.count(unknown) for ids in self.tokenizer.encode_batch(texts))
        if unknown_count:
            text = f"{counted(unknown_count, 'token is', 'tokens are')} not in the vocabulary and count as unknown."
            findings = [*findings, Finding("unknown", "text", unknown_count, text)]
        if need_target and not any(len(self.frame) + len(self.tokenizer.encode(text)) > 1 for text in texts):
            raise WonderlandError("The text has no token to predict: give at least two tokens.")
        return NewDocuments(name, texts, findings)

    def describe(self) -> str:
        kind = self.tokenizer.kind
        return f"Vocabulary: {self.tokenizer.vocab:,} {kind if kind == 'characters' else f'{kind} tokens'}. "

    def batch_words(self, size: int, noun: str) -> str:
        return f"{size} x {self.context} tokens"

    def schema(self) -> list[Field]:
        return [Field("text", "text")]

    trial_words = "texts of three lengths, in batches of 1, 5 and 12"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return TokenProgram(self.frame)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return language_trials(self)

    def beside(self) -> dict[str, bytes]:
        return {"tokenizer.json": self.tokenizer.to_json().encode()}

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        return texts_of_field(rows, "text")

    def arguments(self) -> dict[str, Any]:
        """For language models: the size of the vocabulary and the context."""
        return {"vocab": self.tokenizer.vocab, "context": self.context}

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "context": self.context,
            "many": self.many,
            "lines": self.lines,
            "column": self.column,
            "tokenizer": json.loads(self.tokenizer.to_json()),
            "roles": self.tokenizer.roles,
        }

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "CorpusEncoder":
        """Rebuild an encoder from `to_json`; invalid content raises a `WonderlandError`."""
        fine = isinstance(value, dict) and isinstance(value.get("tokenizer"), dict)
        fine = fine and isinstance(value.get("context"), int) and 1 <= value["context"] <= 1 << 20
        fine = fine and all(isinstance(value.get(name), bool) for name in ("many", "lines"))
        if not fine or not isinstance(value.get("column"), str | None):
            raise WonderlandError("The preprocessing of this model is not for text: the file is damaged or not ours.")
        tokenizer = Tokenizer.from_json(value["tokenizer"], roles=checked_roles(value.get("roles")))
        return cls(tokenizer, value["context"], many=value["many"], lines=value["lines"], column=value["column"])


class NewDocuments(Dataset):
    """New documents, to evaluate a language model on."""

    kind = "corpus"
    noun = "tokens"

    def __init__(self, name: str, texts: list[str], findings: list[Finding]):
        self.name, self.texts, self.findings = name, texts, findings
        self.task, self.classes, self.y, self.origin, self.fingerprint = "language", None, None, {}, ""

    def __len__(self) -> int:
        return len(self.texts)

    def summary(self) -> list[dict[str, Any]]:
        return [{"what": "documents", "count": len(self.texts)}]

    def example(self, i: int) -> dict[str, Any]:
        return {"text": self.texts[i][:500]}
