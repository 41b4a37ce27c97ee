"""What a language model needs to read new text: its tokenizer, and how many tokens it learned to look back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.data.dataset import Encoder, Finding
from wonderland.data.text.sources import Documents, read_documents
from wonderland.data.text.tokenizer import Tokenizer, checked_roles


class CorpusEncoder(Encoder):
    """A tokenizer, the context a model was taught with, and whether documents were learned one by one."""

    kind = "corpus"

    def __init__(
        self, tokenizer: Tokenizer, context: int, *, many: bool, lines: bool = False, column: str | None = None
    ):
        self.tokenizer, self.context, self.many, self.lines, self.column = tokenizer, context, many, lines, column
        self.noticed: list[Finding] = []

    @property
    def frame(self) -> list[int]:
        """The tokens before a text: the one that begins documents; before one long text, what the tokenizer itself puts there."""
        if not self.many:
            return self.tokenizer.frame[0]
        return [] if self.tokenizer.opening is None else [self.tokenizer.opening]

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        raise WonderlandError("A language model reads text, not rows.")

    def open(self, source: Any, *, need_target: bool = False) -> Any:
        """New documents: a path, or texts in a list."""
        if isinstance(source, str | Path):
            return read_documents(source, column=self.column, lines=self.lines)
        if isinstance(source, list | tuple) and all(isinstance(text, str) for text in source):
            return _InMemory(list(source))
        raise WonderlandError(f"A language model reads a path or a list of texts, not {type(source).__name__}.")

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

    def tensors(self) -> dict[str, Tensor]:
        return {}

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "CorpusEncoder":
        """Read what `to_json` gave; content that cannot be right is refused in a sentence."""
        fine = isinstance(value, dict) and isinstance(value.get("tokenizer"), dict)
        fine = fine and isinstance(value.get("context"), int) and 1 <= value["context"] <= 1 << 20
        fine = fine and all(isinstance(value.get(name), bool) for name in ("many", "lines"))
        if not fine or not isinstance(value.get("column"), str | None):
            raise WonderlandError("The preprocessing of this model is not for text: the file is damaged or not ours.")
        tokenizer = Tokenizer.from_json(value["tokenizer"], roles=checked_roles(value.get("roles")))
        return cls(tokenizer, value["context"], many=value["many"], lines=value["lines"], column=value["column"])


class _InMemory(Documents):
    """Texts that are there already."""

    def __init__(self, texts: list[str]):
        super().__init__(Path("texts"))
        self._texts = texts

    def __iter__(self):
        return ((text, True) for text in self._texts)
