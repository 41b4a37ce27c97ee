"""Encoder of tagged sentences: numbers of the features of each word."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.data.dataset import Finding
from wonderland.data.encoder import Encoder, Field, texts_of_field
from wonderland.data.examples import RowExamples
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.reading import Reading, Written
from wonderland.data.source import read_source
from wonderland.data.text.marked import split_words
from wonderland.data.text.sources import is_text_file, read_documents
from wonderland.data.text.tagged import Tagged, in_pieces, read_tagged
from wonderland.data.text.word_features import PER_WORD, WordFeatures
from wonderland.data.text.word_program import ABOUT_WORDS, WordProgram, cut, odd_words
from wonderland.kinds.tags.sentences import Sentences

TRIED = 20  # sentences that an export is tried on


class SentenceExamples(RowExamples):
    """Encoded sentences: features of words (b, t, features of a word) up to the longest of the batch, and codes of tags (n, longest)."""

    unit = "sentence"

    def __init__(self, encoder: "TagEncoder", dataset: Sentences):
        lengths = np.array([len(words) for words in dataset.words])
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        self.features = encoder.features.encode([word for words in dataset.words for word in words])
        y = None
        if dataset.tags is not None:
            y = np.full((len(lengths), int(lengths.max(initial=1))), -100, np.int16)
            for row, tags in enumerate(dataset.tags):
                y[row, : len(tags)] = tags
        super().__init__(self.padded, y, len(lengths))

    def padded(self, rows: np.ndarray) -> Tensor:
        """Features of some sentences, 0 where they have ended."""
        rows = np.asarray(rows)
        lengths = (self.starts[1:] - self.starts[:-1])[rows]
        x = np.zeros((len(rows), max(1, int(lengths.max(initial=1))), PER_WORD), np.int64)
        for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            x[place, :length] = self.features[self.starts[row] : self.starts[row] + length]
        return torch.from_numpy(x)


class TagEncoder(Encoder):
    """The known features of words, and the names of the tags."""

    kind = "tags"
    reads_tables = True
    classes: list[str]

    def __init__(self, features: WordFeatures, classes: list[str], column: str | None, target: str | None):
        self.features, self.column, self.target = features, column, target
        self.classes = list(classes)  # pyright: ignore[reportIncompatibleVariableOverride]
        self.noticed: list[Finding] = []

    @classmethod
    def fit(cls, dataset: Sentences, rows: np.ndarray) -> "TagEncoder":
        """Learn the features of the training sentences."""
        options = dataset.options
        assert dataset.classes is not None
        named = (None, None) if options is None else (options.column, options.target)
        return cls(WordFeatures.fit(dataset.words[row] for row in rows), dataset.classes, *named)

    def examples(self, dataset: Any) -> SentenceExamples:
        if not isinstance(dataset, Sentences):
            raise WonderlandError("This model tags the words of sentences.")
        self.noticed = []
        return SentenceExamples(self, dataset)

    def open(self, source: Any, *, need_target: bool = False) -> Sentences:
        """New texts: a list, lines of a text file, a table or JSON with texts, or tagged words in any of the known layouts."""
        if isinstance(source, Sentences):
            return source
        if isinstance(source, list | tuple) and source:
            if all(isinstance(text, str) for text in source):
                return self._of_texts("texts", list(source), need_target)
            if all(
                isinstance(row, list | tuple) and row and all(isinstance(word, str) for word in row) for row in source
            ):
                words = in_pieces(Tagged([list(row) for row in source], None, list(range(len(source)))))
                return self._opened("sentences", words, need_target)
        reading = source.reading if isinstance(source, Written) else Reading()
        plain = source.source if isinstance(source, Written) else source
        if isinstance(plain, str | os.PathLike):
            path = Path(plain).expanduser()
            tagged = read_tagged(path, reading, column=self.column, target=self.target, known=self.classes) or (
                None if need_target else read_tagged(path, reading, column=self.column, need_tags=False)
            )
            if tagged is not None:
                return self._opened(path.name, tagged, need_target)
            if path.is_file() and is_text_file(path):
                documents = read_documents(path, lines=True)
                return self._of_texts(path.name, list(documents.documents()), need_target, documents.findings)
        contents = read_source(source)
        frame = contents.frame
        column = (
            None
            if frame is None
            else next((name for name in (self.column, "text", "sentence") if name in frame.columns), None)
        )
        if frame is None or (column is None and len(frame.columns) != 1):
            raise WonderlandError(
                f"{contents.name} holds no texts to tag: give lines of text, a table with a column 'text', or tagged words."
            )
        cells = frame[column or frame.columns[0]]
        texts = ["" if cell is None or cell != cell else str(cell) for cell in cells]
        return self._of_texts(contents.name, texts, need_target, contents.findings)

    def _of_texts(self, name: str, texts: list[str], need_target: bool, findings: Sequence[Finding] = ()) -> Sentences:
        kept = [(text, split_words(text)) for text in texts]
        empty = sum(not places for _, places in kept)
        kept = [(text, places) for text, places in kept if places]
        if not kept:
            raise WonderlandError(f"{name} holds no words.")
        tagged = Tagged([[text[a:b] for a, b in places] for text, places in kept], None, list(range(len(kept))))
        tagged.texts, tagged.places = [text for text, _ in kept], [places for _, places in kept]
        tagged.findings = list(findings)
        if empty:
            tagged.findings.append(
                Finding("empty", name, empty, f"{empty:,} of {len(texts):,} texts have no words and are left out.")
            )
        return self._opened(name, in_pieces(tagged), need_target)

    def _opened(self, name: str, tagged: Tagged, need_target: bool) -> Sentences:
        known = None
        if tagged.tags is not None:
            other = next((tag for tags in tagged.tags for tag in tags if tag not in self.classes), None)
            if other is None:
                known = self.classes
            elif need_target:
                raise WonderlandError(
                    f"{name} has the tag {other!r}, which this model does not know.{nearest(other, self.classes)}"
                )
            else:
                tagged.tags = None
        if need_target and known is None:
            raise WonderlandError(
                f"{name} has no tags to compare with: give words with their tags, as the training data has them."
            )
        return Sentences(name, tagged, classes=known)

    def schema(self) -> list[Field]:
        return [Field("text", "text")]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        return texts_of_field(rows, "text")

    trial_words = "sentences of three lengths, in batches of 1, 7 and 20"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return WordProgram(PER_WORD, ABOUT_WORDS)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        """Sentences of three lengths."""
        generator = np.random.default_rng(0)
        for longest in (1, 9, 40):
            source = [odd_words(generator, int(n)) for n in generator.integers(1, longest + 1, TRIED)]
            examples = self.examples(self.open(source))
            yield Trial(source, [
                [cut(examples.padded(np.arange(i, min(TRIED, i + size)))) for i in range(0, TRIED, size)] for size in (1, 7, TRIED)
            ])  # fmt: skip

    def beside(self) -> dict[str, bytes]:
        return {"features.safetensors": save(self.features.tensors())}

    def arguments(self) -> dict[str, Any]:
        """For models of tags: how many numbers of features there are."""
        return {"features": len(self.features)}

    def describe(self) -> str:
        return f"Features: {len(self.features):,} of words, beginnings, endings and shapes. "

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "classes": self.classes, "column": self.column, "target": self.target}

    def tensors(self) -> dict[str, Tensor]:
        return self.features.tensors()

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor]) -> "TagEncoder":
        """Rebuild an encoder from `to_json`; invalid content raises a `WonderlandError`."""
        classes = value.get("classes") if isinstance(value, dict) else None
        fine = (
            isinstance(classes, list) and 2 <= len(classes) <= 10_000 and all(isinstance(name, str) for name in classes)
        )
        if not fine or not all(isinstance(value.get(name), str | None) for name in ("column", "target")):
            raise WonderlandError("The preprocessing of this model is not for tags: the file is damaged or not ours.")
        assert isinstance(classes, list)
        return cls(WordFeatures.read(tensors), classes, value.get("column"), value.get("target"))
