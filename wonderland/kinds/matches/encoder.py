"""Encoder of matches: sparse features of both sides, weighted by TF-IDF."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding
from wonderland.data.encoder import Encoder, Field, texts_of_field
from wonderland.data.examples import RowExamples
from wonderland.data.ports import Passed, Preprocessing, Trial
from wonderland.data.source import read_source
from wonderland.data.text.gram_program import FEATURE_PORTS, feature_feed, feature_file
from wonderland.data.text.grams import Grams, SparseTexts
from wonderland.data.text.odd_texts import odd_texts
from wonderland.data.text.sources import read_documents
from wonderland.data.text.sparse_cosines import sparse_cosines
from wonderland.kinds.matches.matches import Matches
from wonderland.models.text_linear import pack_features

FEATURES = 30_000  # the most frequent ones have a vector each
CANDIDATES = 50_000  # texts that a run keeps to be found


class MatchExamples(RowExamples):
    """Rows of two sides, packed features (2, k); `documents` numbers the different texts to find."""

    unit = "pair"

    def __init__(self, encoder: "MatchEncoding", dataset: Matches):
        self.encoder = encoder
        both = (dataset.queries, dataset.documents or [""] * len(dataset))
        self.sides = [encoder.grams.encode([[text] for text in texts]) for texts in both]
        self.words = [encoder.words.encode([[text] for text in texts]) for texts in both]
        self.documents = np.unique(dataset.documents or [""] * len(dataset), return_inverse=True)[1]
        super().__init__(self.packed, np.zeros(len(dataset), np.int64), len(dataset))

    def word_cosines(self, rows: np.ndarray) -> Tensor:
        """Cosines of the features of each query with each text of these rows: (n, n)."""
        first, second = (side.rows(np.asarray(rows)) for side in self.words)
        return sparse_cosines(first, second, len(self.encoder.words))

    def word_cosines_of_candidates(self, rows: np.ndarray) -> Tensor:
        """Cosines of the features of each query with each text that can be found: (n, candidates)."""
        words = self.encoder.words
        candidates = words.encode([[text] for text in self.encoder.candidates])
        return sparse_cosines(self.words[0].rows(np.asarray(rows)), candidates, len(words))

    def packed(self, rows: np.ndarray) -> Tensor:
        """Both sides of some rows: (b, 2, k)."""
        sides = [packed_rows(side, np.asarray(rows)) for side in self.sides]
        width = max(side.shape[1] for side in sides)
        return torch.stack([torch.nn.functional.pad(side, (0, width - side.shape[1])) for side in sides], 1)


def packed_rows(features: SparseTexts, rows: np.ndarray) -> Tensor:
    """Some rows as one tensor of packed features, filled up with 0: (b, k)."""
    chosen = features.rows(rows)
    lengths = np.diff(chosen.starts)
    packed = torch.zeros(len(lengths), max(1, int(lengths.max(initial=1))), dtype=torch.int64)
    place = np.arange(packed.shape[1])[None] < lengths[:, None]
    packed[torch.from_numpy(place)] = pack_features(
        torch.from_numpy(chosen.ids.astype(np.int64)), torch.from_numpy(chosen.values)
    )
    return packed


class MatchEncoding(Encoder):
    """The features of texts, the frequent ones (`grams`) for the network and all of them (`words`), and the texts that can be found."""

    kind = "matches"
    reads_tables = True
    classes = None

    def __init__(self, grams: Grams, words: Grams, names: tuple[str, str], candidates: Sequence[str]):
        self.grams, self.words, self.names, self.candidates = grams, words, names, list(candidates)
        self.noticed: list[Finding] = []

    @classmethod
    def fit(cls, dataset: Matches, rows: np.ndarray) -> "MatchEncoding":
        """Learn the features of the training pairs; all texts of the data can be found."""
        assert dataset.documents is not None
        texts = [[side[row]] for row in rows for side in (dataset.queries, dataset.documents)]
        grams, words = Grams.fit(texts, most=FEATURES), Grams.fit(texts)
        return cls(grams, words, dataset.names, list(dict.fromkeys(dataset.documents))[:CANDIDATES])

    def packed_candidates(self, size: int) -> Iterator[Tensor]:
        """Packed features of the texts that can be found, in pieces: (b, k)."""
        features = self.grams.encode([[text] for text in self.candidates])
        return (
            packed_rows(features, np.arange(first, min(first + size, len(features))))
            for first in range(0, len(features), size)
        )

    def examples(self, dataset: Any) -> MatchExamples:
        if not isinstance(dataset, Matches):
            raise WonderlandError("This model finds texts by texts.")
        self.noticed = []
        return MatchExamples(self, dataset)

    def open(self, source: Any, *, need_target: bool = False) -> Matches:
        """New queries: a list, lines of a text file, or a table with the column of queries; with their texts to be measured."""
        if isinstance(source, list | tuple) and source and all(isinstance(text, str) for text in source):
            return self._opened("queries", list(source), None, need_target)
        contents = None
        try:
            contents = read_source(source, as_text=self.names)
        except WonderlandError:
            if need_target or not isinstance(source, str):
                raise
        frame = None if contents is None else contents.frame
        if frame is None or self.names[0] not in frame.columns:
            if need_target or not isinstance(source, str):
                raise WonderlandError(f"The data have no column {self.names[0]!r} of queries.")
            return self._opened(source, list(read_documents(source, lines=True).documents()), None, need_target)
        assert contents is not None
        kept = frame.dropna(subset=[name for name in self.names if name in frame.columns])
        documents = [str(cell) for cell in kept[self.names[1]]] if self.names[1] in frame.columns else None
        return self._opened(contents.name, [str(cell) for cell in kept[self.names[0]]], documents, need_target)

    def _opened(self, name: str, queries: list[str], documents: list[str] | None, need_target: bool) -> Matches:
        if not queries:
            raise WonderlandError(f"{name} holds no queries.")
        if need_target and documents is None:
            raise WonderlandError(f"{name} has no column {self.names[1]!r} to compare with.")
        return Matches(name, queries, documents, names=self.names)

    def schema(self) -> list[Field]:
        return [Field(self.names[0], "text")]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        return texts_of_field(rows, self.names[0])

    trial_words = "texts of three lengths, in batches of 1, 7 and 34"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return Passed(FEATURE_PORTS)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        """Texts of three lengths, some of them odd."""
        words = [word for text in self.candidates[:50] for word in text.split()] or ["a"]
        for seed, length in enumerate((2, 9, 40)):
            source = odd_texts(words, length, seed)
            sparse = [[text] for text in source]
            yield Trial(source, [
                [feature_feed(self.grams.encode(sparse[i : i + size])) for i in range(0, len(source), size)] for size in (1, 7, len(source))
            ])  # fmt: skip

    def beside(self) -> dict[str, bytes]:
        """The table of features, and the texts that can be found."""
        texts = json.dumps(self.candidates, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return {"features.safetensors": feature_file(self.grams), "texts.json": texts}

    def arguments(self) -> dict[str, Any]:
        """For models of matches: how many features there are."""
        return {"features": len(self.grams)}

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "columns": list(self.names),
            "pieces": self.grams.pieces,
            "candidates": self.candidates,
        }

    def tensors(self) -> dict[str, Tensor]:
        return self.grams.tensors() | {f"words_{name}": value for name, value in self.words.tensors().items()}

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor]) -> "MatchEncoding":
        """Rebuild an encoder from `to_json`; invalid content raises a `WonderlandError`."""
        names, texts = (value.get("columns"), value.get("candidates")) if isinstance(value, dict) else (None, None)
        fine = isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)
        if not fine or not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise WonderlandError(
                "The preprocessing of this model is not for matches: the file is damaged or not ours."
            )
        assert isinstance(names, list)
        of_words = {name: tensors[f"words_{name}"] for name in ("keys", "idf") if f"words_{name}" in tensors}
        pieces = value.get("pieces")
        return cls(Grams.read(tensors, pieces), Grams.read(of_words, pieces), (names[0], names[1]), texts)
