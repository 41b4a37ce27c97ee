"""Encoder of questions: features of the words of a question and its text, and marks of what they share."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding
from wonderland.data.encoder import Encoder, Field, texts_of_field
from wonderland.data.examples import RowExamples
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.reading import Reading, Written
from wonderland.data.source import read_source
from wonderland.data.text.questions import Question, Questions, of_frame, read_questions
from wonderland.data.text.word_features import PER_WORD, UNKNOWN, WordFeatures
from wonderland.data.text.word_program import ABOUT_WORDS, WordProgram, cut, odd_words
from wonderland.kinds.answers.dataset import QuestionSet
from wonderland.models.answer_finder import CONTEXT, QUESTION

ASKED = 60  # words of a question
SAME, ALIKE, RARE, NAMED = 1, 2, 4, 8  # marks of a word of the text
RARE_SHARE = 0.05
TRIED = 20  # questions that an export is tried on
_Columns = tuple[str | None, str | None, str | None]


class QuestionExamples(RowExamples):
    """Rows of a question and then its text; y holds the positions of the answer (n, 2), -1 for none."""

    unit = "question"

    def __init__(self, encoder: "AnswerEncoder", dataset: QuestionSet):
        self.dataset, self.encoder = dataset, encoder
        self.texts = [encoder.features.encode(words) for words in dataset.words]
        asked = np.array([min(ASKED, max(1, len(words))) for words in dataset.asked])
        y = None if dataset.spans is None else np.where(dataset.spans < 0, -1, dataset.spans + asked[:, None])
        super().__init__(self.padded, y, len(dataset))

    def padded(self, rows: np.ndarray) -> Tensor:
        """Some rows, filled up with 0 to the longest: (b, t, PER_WORD + 2)."""
        features = [self._row(int(row)) for row in np.asarray(rows)]
        x = np.zeros((len(features), max(len(row) for row in features), PER_WORD + 2), np.int64)
        for place, row in enumerate(features):
            x[place, : len(row)] = row
        return torch.from_numpy(x)

    def _row(self, row: int) -> np.ndarray:
        dataset = self.dataset
        context, asked = dataset.questions[row].context, dataset.asked[row][:ASKED]
        words = dataset.words[context]
        first = self.encoder.features.encode(asked) if asked else np.full((1, PER_WORD), UNKNOWN, np.int32)
        table = np.zeros((len(first) + len(words), PER_WORD + 2), np.int64)
        table[: len(first), :PER_WORD], table[: len(first), -2] = first, QUESTION
        table[len(first) :, :PER_WORD], table[len(first) :, -2] = self.texts[context], CONTEXT
        table[len(first) :, -1] = self._marks(asked, words)
        return table

    def _marks(self, asked: Sequence[str], words: Sequence[str]) -> np.ndarray:
        """Marks of the words of a text: in the question, alike to one of its words, rare, and a name or a number."""
        low = {word.lower() for word in asked}
        stems = {word[:5] for word in low if len(word) > 3}
        common, marks = self.encoder.common, np.zeros(len(words), np.int64)
        for place, word in enumerate(words):
            own = word.lower()
            marks[place] = (
                SAME * (own in low)
                + ALIKE * (own[:5] in stems)
                + RARE * (own not in common)
                + NAMED * (word[:1].isupper() or word[:1].isdigit())
            )
        return marks


class AnswerEncoder(Encoder):
    """The known features of words, and the words that are in many texts."""

    kind = "answers"
    reads_tables = True
    classes = None

    def __init__(self, features: WordFeatures, common: Sequence[str], columns: _Columns, absent: bool):
        self.features, self.common, self.columns, self.absent = features, frozenset(common), columns, absent
        self.noticed: list[Finding] = []

    @classmethod
    def fit(cls, dataset: QuestionSet, rows: np.ndarray) -> "AnswerEncoder":
        """Learn the words of the training questions and of their texts."""
        contexts = sorted({dataset.questions[row].context for row in rows})
        counts = Counter(word for i in contexts for word in {own.lower() for own in dataset.words[i]})
        common = sorted(word for word, count in counts.items() if count > max(1, RARE_SHARE * len(contexts)))
        sentences = [*(dataset.words[i] for i in contexts), *(dataset.asked[row] for row in rows)]
        options = dataset.options
        columns = (None, None, None) if options is None else (options.column, options.question, options.target)
        return cls(WordFeatures.fit(sentences), common, columns, dataset.has_absent)

    def examples(self, dataset: Any) -> QuestionExamples:
        if not isinstance(dataset, QuestionSet):
            raise WonderlandError("This model answers questions about texts.")
        self.noticed = []
        return QuestionExamples(self, dataset)

    def open(self, source: Any, *, need_target: bool = False) -> QuestionSet:
        """New questions: a list of pairs (question, text), JSON as in training, or a table with columns of questions and texts."""
        if isinstance(source, QuestionSet):
            return source
        if isinstance(source, list | tuple) and source and all(_is_pair(row) for row in source):
            texts = list(dict.fromkeys(str(row[1]) for row in source))
            asked = [Question(texts.index(row[1]), row[0]) for row in source]
            return self._opened("questions", Questions(texts, asked, False), need_target)
        reading = source.reading if isinstance(source, Written) else Reading()
        plain = source.source if isinstance(source, Written) else source
        if isinstance(plain, str | os.PathLike):
            questions = read_questions(Path(plain).expanduser(), reading)
            if questions is not None:
                return self._opened(Path(plain).name, questions, need_target)
        contents = read_source(source)
        table = (
            None
            if contents.frame is None
            else of_frame(contents.frame, contents.name, (self.columns[0], self.columns[1], None))
        )
        if table is not None and need_target and contents.frame is not None:
            table = of_frame(contents.frame, contents.name, self.columns)
        if table is None:
            raise WonderlandError(
                f"{contents.name} holds no questions about texts: give JSON with a question and a context, or a table with both columns."
            )
        return self._opened(contents.name, table, need_target)

    def _opened(self, name: str, questions: Questions, need_target: bool) -> QuestionSet:
        if not questions.questions:
            raise WonderlandError(f"{name} holds no questions.")
        empty = next(
            (i for i, question in enumerate(questions.questions) if not questions.contexts[question.context].strip()),
            None,
        )
        if empty is not None:
            raise WonderlandError(
                f"{name} has no text for question {empty + 1}: every question needs the text that answers it."
            )
        if need_target and not questions.answered:
            raise WonderlandError(f"{name} has no answers to compare with.")
        return QuestionSet(name, questions)

    def schema(self) -> list[Field]:
        return [Field("question", "text"), Field("context", "text")]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
        return list(zip(texts_of_field(rows, "question"), texts_of_field(rows, "context"), strict=True))

    trial_words = "questions about texts of three lengths, in batches of 1, 7 and 20"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        about = f"the words of a question, at most {ASKED}, and then those of its text: {ABOUT_WORDS}; then 1 for the question or 2 for the text, and marks"
        return WordProgram(PER_WORD + 2, about)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        """Questions about texts of three lengths."""
        generator = np.random.default_rng(0)
        for longest in (1, 15, 90):
            source = [
                (" ".join(odd_words(generator, int(generator.integers(1, 9)))), " ".join(odd_words(generator, int(n))))
                for n in generator.integers(1, longest + 1, TRIED)
            ]
            examples = self.examples(self.open(source))
            yield Trial(source, [
                [cut(examples.padded(np.arange(i, min(TRIED, i + size)))) for i in range(0, TRIED, size)] for size in (1, 7, TRIED)
            ])  # fmt: skip

    def beside(self) -> dict[str, bytes]:
        """The table of features, and the words that are not rare."""
        common = json.dumps(sorted(self.common), ensure_ascii=False).encode("utf-8", "surrogatepass")
        return {"features.safetensors": save(self.features.tensors()), "common.json": common}

    def arguments(self) -> dict[str, Any]:
        """For models of answers: how many numbers of features there are."""
        return {"features": len(self.features)}

    def describe(self) -> str:
        return f"Features: {len(self.features):,} of words, beginnings, endings and shapes. "

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "columns": list(self.columns), "common": sorted(self.common), "absent": self.absent}

    def tensors(self) -> dict[str, Tensor]:
        return self.features.tensors()

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor]) -> "AnswerEncoder":
        """Rebuild an encoder from `to_json`; invalid content raises a `WonderlandError`."""
        fine = isinstance(value, dict) and isinstance(value.get("absent"), bool)
        columns, common = (value.get("columns"), value.get("common")) if fine else (None, None)
        fine = isinstance(columns, list) and len(columns) == 3 and all(isinstance(name, str | None) for name in columns)
        if not fine or not isinstance(common, list) or not all(isinstance(word, str) for word in common):
            raise WonderlandError(
                "The preprocessing of this model is not for questions: the file is damaged or not ours."
            )
        assert isinstance(columns, list)
        return cls(WordFeatures.read(tensors), common, (columns[0], columns[1], columns[2]), value["absent"])


def _is_pair(row: Any) -> bool:
    return isinstance(row, list | tuple) and len(row) == 2 and all(isinstance(cell, str) for cell in row)
