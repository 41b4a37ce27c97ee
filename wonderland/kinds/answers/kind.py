"""The kind answers: questions about texts; a model that finds where the answer stands, or says that it is not there."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.source import Glimpse
from wonderland.data.split import Split
from wonderland.data.text.questions import Question, Questions, of_frame, read_questions
from wonderland.kinds.answers.dataset import QuestionSet
from wonderland.kinds.answers.encoder import AnswerEncoder
from wonderland.kinds.answers.options import Options as AnswerOptions
from wonderland.kinds.answers.sliding_window import answer_by_window
from wonderland.kinds.kind import Claim, Kind, model_space, simple_recipe
from wonderland.models import AnswerFinder
from wonderland.tasks import Answering, Task
from wonderland.tasks.leaderboard import Baseline

LONGEST_ANSWER = 30


class AnswersKind(Kind):
    """Questions, the text that each is about, and the part of it that is the answer."""

    name = "answers"
    Options = AnswerOptions
    models = ("models.AnswerFinder",)
    typical = {"features": 1000}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if asked.get("task") not in (None, "answering"):
            return None
        try:
            questions = self._questions(glimpse, (None, None, None), tables=asked.get("question") is not None)
        except WonderlandError:
            return None
        if questions is None or not questions.answered or not questions.questions:
            return None
        return Claim(0.9995, "each question has a text that answers it")

    def _questions(self, glimpse: Glimpse, columns: tuple[Any, Any, Any], *, tables: bool = True) -> Questions | None:
        questions = None if glimpse.path is None else read_questions(glimpse.path, glimpse.reading)
        if questions is not None or glimpse.frame is None:
            return questions
        names = {str(name).strip().casefold() for name in glimpse.frame.columns}
        usual = {"context", "question"} <= names and names & {"answer", "answers", "answer_text"}
        return of_frame(glimpse.frame, glimpse.name, columns) if tables or usual else None

    def open(self, glimpse: Glimpse, options: AnswerOptions, test: Glimpse | None = None) -> QuestionSet:
        columns = (options.column, options.question, options.target)
        questions = self._questions(glimpse, columns)
        if questions is None:
            raise WonderlandError(
                f"{glimpse.name} holds no questions about texts: give JSON as SQuAD has it, or a table with the columns context, question and "
                "answer (--column, --question, --target)."
            )
        origin: dict[str, Any] = {} if glimpse.path is None else {"path": str(glimpse.path.absolute())}
        if test is None:
            return QuestionSet.learned(glimpse.name, questions, origin or glimpse.contents.origin, options.strict)
        other = self._questions(test, columns)
        if other is None or not other.answered:
            raise WonderlandError(
                f"{test.name} holds no answered questions, so it cannot be the test set of {glimpse.name}."
            )
        if test.path is not None:
            origin["test"] = {"path": str(test.path.absolute())}
        first = len(questions.contexts)
        later = [Question(first + one.context, one.text, one.answers, one.key) for one in other.questions]
        both = Questions(questions.contexts + other.contexts, questions.questions + later, questions.answered, questions.sentence,
                         [*questions.findings, *other.findings])  # fmt: skip
        dataset = QuestionSet.learned(glimpse.name, both, origin, options.strict)
        dataset.test_rows = np.arange(len(dataset)) >= len(questions.questions)
        return dataset

    def split(self, dataset: QuestionSet, *, test: float, seed: int, plain: bool = False) -> Split:
        return super().split(dataset, test=test, seed=seed, plain=True)  # pyright: ignore

    def encoder(self, dataset: QuestionSet, parts: Any) -> AnswerEncoder:
        return AnswerEncoder.fit(dataset, parts.train)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> AnswerEncoder:
        return AnswerEncoder.from_json(saved, tensors)

    def task(self, dataset: QuestionSet, parts: Any, encoder: AnswerEncoder) -> Task:
        assert dataset.spans is not None
        spans = dataset.spans[parts.train]
        lengths = (spans[:, 1] - spans[:, 0] + 1)[spans[:, 0] >= 0]
        longest = int(np.clip(np.quantile(lengths, 0.99), 1, LONGEST_ANSWER)) if len(lengths) else 1
        return Answering(longest=longest, absent=encoder.absent)

    def recipe(self, dataset: QuestionSet, parts: Any, encoder: AnswerEncoder, task: Any) -> Recipe:
        """Defaults for questions of this number: about 40,000 questions seen, no more than 30 times each."""
        rows = len(parts.train)
        batch = 32 if rows >= 1000 else 16 if rows >= 200 else 8
        epochs = max(2, min(30, round(40_000 / rows)))
        epoch = max(1, rows // batch)
        model = AnswerFinder.spec(features=len(encoder.features), longest=task.longest)
        recipe = simple_recipe(model, task, rows, epochs=epochs, lr=3e-3)
        return recipe.changed(
            batch_size=batch,
            steps=epoch * epochs,
            evaluate_every=max(1, epoch * epochs // 15),
            average=0.99,
            patience=5,
        )

    def baselines(self, plan: Any) -> list[Baseline]:
        """The sliding window, which learns nothing."""
        dataset = plan.dataset

        def slide() -> Any:
            answers = []
            for row in plan.parts.test:
                words = dataset.words[dataset.questions[row].context]
                answers.append(dataset.text_of(row, *answer_by_window(dataset.asked[row], words)))
            return answers

        return [Baseline("sliding window", slide)]

    def space(self, recipe: Recipe) -> dict[str, Any]:
        wished = {"model.dim": ("choice", [32, 64, 128]), "model.state_size": ("choice", [32, 64, 128])}
        return super().space(recipe) | model_space(recipe, wished)

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"noun": "questions", "columns_title": "Texts and questions", "long_rows": True}


KIND = AnswersKind()
