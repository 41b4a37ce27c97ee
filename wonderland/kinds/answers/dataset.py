"""Questions about texts, cut into words, with the words where their answers begin and end."""

import hashlib
from bisect import bisect_right
from typing import Any

import numpy as np

from wonderland.core import WonderlandError
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.text.marked import split_words
from wonderland.data.text.questions import Question, Questions

LONGEST = 1000  # words of a text
LEAST_CONTEXTS = 20  # with as many texts, all questions about a text are in the same part


class QuestionSet(Dataset):
    """Questions with their texts.

    `words` are the words of each text and `places` their characters; `spans` (n, 2) are the first and the last word of the first
    answer of each question, -1 where there is none; None where answers are not known.
    """

    kind = "answers"
    noun = "questions"
    task = "answering"
    target = "answer"
    classes = None

    def __init__(self, name: str, questions: Questions, *, origin: dict[str, Any] | None = None):
        self.name, self.origin, self.y = name, origin or {}, None
        self.contexts, self.questions = questions.contexts, questions.questions
        self.findings = list(questions.findings)
        if questions.sentence:
            self.findings.insert(0, Finding("text", name, len(self.questions), questions.sentence))
        all_places = [split_words(context) for context in self.contexts]
        cut = sum(len(places) > LONGEST for places in all_places)
        if cut:
            text = f"{counted(cut, 'text is', 'texts are')} longer than {LONGEST:,} words and cut there."
            self.findings.append(Finding("cut", name, cut, text))
        self.places = [places[:LONGEST] for places in all_places]
        self.words = [
            [context[first:stop] for first, stop in places]
            for context, places in zip(self.contexts, self.places, strict=True)
        ]
        self.asked = [[question.text[a:b] for a, b in split_words(question.text)] for question in self.questions]
        self.spans = (
            np.array([self._span(question) for question in self.questions], np.int64).reshape(-1, 2)
            if questions.answered
            else None
        )
        if len(self.contexts) >= LEAST_CONTEXTS and len(self.contexts) < len(self.questions):
            self.groups, self.group = np.array([question.context for question in self.questions]), "text"
        total = hashlib.sha256()
        for question in self.questions:
            own = (self.contexts[question.context], question.text, repr(question.answers))
            total.update("\0".join(own).encode("utf-8", "surrogatepass"))
        self.fingerprint = total.hexdigest()

    @classmethod
    def learned(cls, name: str, questions: Questions, origin: dict[str, Any], strict: bool) -> "QuestionSet":
        """Questions to learn from; refused where there are no answers."""
        if not questions.answered or not any(question.answers for question in questions.questions):
            raise WonderlandError(
                f"{name} has no answers to learn from: give each question its answer, and where it stands in the text."
            )
        dataset = cls(name, questions, origin=origin)
        stop_if_strict(dataset.findings, strict)
        return dataset

    def _span(self, question: Question) -> tuple[int, int]:
        """The first and last word of the first answer; -1 where there is none, or it lies in what was cut off."""
        places = self.places[question.context]
        starts = [first for first, _ in places]
        for text, at in question.answers:
            first = bisect_right(starts, at) - 1
            if first >= 0 and places[first][1] <= at:
                first += 1
            last = bisect_right(starts, at + len(text) - 1) - 1
            if 0 <= first <= last and last < len(places) and places[-1][1] >= at + len(text):
                return first, last
        return -1, -1

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def has_absent(self) -> bool:
        """Whether some questions have no answer in their text."""
        return any(not question.answers for question in self.questions)

    def headline(self) -> str:
        """The questions in one line."""
        return f"{self.name}: {counted(len(self), 'question', 'questions')} about {counted(len(self.contexts), 'text', 'texts')}"

    def summary(self) -> list[dict[str, Any]]:
        """How long texts, questions and answers are."""
        rows = [("text", self.words), ("question", self.asked)]
        lines = [
            {
                "what": name,
                "count": len(own),
                "median words": float(np.median([len(words) for words in own])) if own else 0.0,
            }
            for name, own in rows
        ]
        if self.spans is not None:
            lengths = (self.spans[:, 1] - self.spans[:, 0] + 1)[self.spans[:, 0] >= 0]
            lines.append(
                {
                    "what": "answer",
                    "count": len(lengths),
                    "median words": float(np.median(lengths)) if len(lengths) else 0.0,
                }
            )
        return lines

    def example(self, i: int) -> dict[str, Any]:
        """One question with its text, and its answer where that is known."""
        question = self.questions[i]
        shown = {"question": question.text, "text": self.contexts[question.context]}
        return shown if self.spans is None else shown | {"answer": self.references(i)[0]}

    def references(self, i: int) -> list[str]:
        """The right answers of a question; one empty text where there is none."""
        return [text for text, _ in self.questions[i].answers] or [""]

    def labels(self) -> dict[str, list[Any]]:
        """The questions."""
        return {"question": [question.text for question in self.questions]}

    def text_of(self, i: int, first: int, last: int) -> str:
        """The part of the text of a question from one word to another."""
        context = self.questions[i].context
        return self.contexts[context][self.places[context][first][0] : self.places[context][last][1]]
