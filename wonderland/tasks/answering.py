"""Answering: the part of a text that answers a question, or that it is not there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part, write_bytes
from wonderland.core.batch import Batch
from wonderland.tasks.answer_trust import AnswerTrust
from wonderland.tasks.detection_trust import THRESHOLDS, score_reliability
from wonderland.tasks.span_answers import SpanAnswers
from wonderland.tasks.task import Task
from wonderland.tasks.text.answers import exact_match, span_f1
from wonderland.tasks.view import View
from wonderland.trust import check_level
from wonderland.trust.paired import paired_difference
from wonderland.understand.format import number, percent

SIZE, CANDIDATES, TEMPERATURES = 32, 20, (0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.2)
NONE = -1


class Candidates(NamedTuple):
    """Answers of one question, the most probable first: words (k, 2) within its text, -1 for none, and probabilities (k,)."""

    spans: np.ndarray
    chances: np.ndarray


@part
class Answering(Task):
    r"""Find the answer to a question in a text.

    .. math:: L = -\log p(i, j \mid \text{question}, \text{text}), \qquad \text{or} \; -\log p(\text{none})

    Models have `log_likelihood(x, spans)`, `scores(x)` and `log_partition` (`models.AnswerFinder`). Measures are exact match and F1 of
    words as for SQuAD. With `absent`, some questions have no answer, and a threshold decides when none is given. Probabilities are
    calibrated by a temperature, and sets of answers hold a right one as often as asked. Book: D2L 16.6. Paper: Rajpurkar et al., 2018.

    >>> Answering(longest=5).arguments()
    {'longest': 5, 'absent': False}
    """

    name, watch, unit = "answering", "missed", "question"

    def __init__(self, longest: int, absent: bool = False):
        if not isinstance(longest, int) or isinstance(longest, bool) or longest < 1 or not isinstance(absent, bool):
            raise WonderlandError(f"Answering needs the most words of an answer, at least 1, not {longest!r}.")
        self.longest, self.absent, self.outputs = longest, absent, 2

    def arguments(self) -> dict[str, Any]:
        return {"longest": self.longest, "absent": self.absent}

    def model_arguments(self) -> dict[str, Any]:
        return {"longest": self.longest}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Minus the log-likelihood of the answer; one that is too long is cut."""
        y = batch["y"]
        ends = torch.minimum(y[:, 1], y[:, 0] + self.longest - 1)
        return -model.log_likelihood(batch["x"], torch.stack([y[:, 0], ends], 1)).mean(), float(len(y))  # pyright: ignore

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        needed = ("log_likelihood", "scores", "log_partition")
        if not all(callable(getattr(model, name, None)) for name in needed):
            return "has no log_likelihood, scores and log_partition, which answers need: take AnswerFinder"
        return None

    def read(self, view: View, temperature: float = 1.0) -> Iterator[tuple[Candidates, float | None]]:
        """The candidates of each question, and the probability of the right answer where it is known."""
        model: Any = view.model
        with torch.inference_mode():
            for batch in view.batches(SIZE):
                ends, none = model.scores(batch["x"])
                ends, none = (ends / temperature).cpu(), (none / temperature).cpu()
                if not self.absent:
                    none = none - 1e9
                total = model.log_partition(ends, none)
                first = (batch["x"][..., -2] == 1).sum(1).cpu()
                joint = banded(ends, model.longest)
                values, places = joint.flatten(1).topk(min(CANDIDATES, joint[0].numel()), 1)
                own = self._true(batch, ends, none, total, model.longest)
                for row in range(len(none)):
                    start = places[row] // model.longest
                    spans = torch.stack([start, start + places[row] % model.longest], 1) - first[row]
                    yield _merged(spans, values[row] - total[row], float(none[row] - total[row])), own[row]

    def _true(self, batch: Batch, ends: Tensor, none: Tensor, total: Tensor, longest: int) -> list[float | None]:
        """The probability of the right answer of each question; None where it is not known."""
        if "y" not in batch:
            return [None] * len(none)
        y = batch["y"].cpu()
        rows, held = torch.arange(len(y)), y.clamp_min(0)
        own = ends[rows, held[:, 0], 0] + ends[rows, held[:, 1], 1]
        own = torch.where(y[:, 1] - y[:, 0] >= longest, -torch.inf, own)
        return torch.where(y[:, 0] < 0, none, own).sub(total).exp().tolist()

    def answer(self, view: View, place: int, candidates: Candidates, absent: float) -> tuple[str, float]:
        """The answer that is given, empty for none, and its probability."""
        best = 0
        if self.absent:
            none = int(np.flatnonzero(candidates.spans[:, 0] == NONE)[0])
            best = (
                none if candidates.chances[none] >= absent else int(np.flatnonzero(candidates.spans[:, 0] != NONE)[0])
            )
        return self._text(view, place, candidates.spans[best]), float(candidates.chances[best])

    def _text(self, view: View, place: int, span: np.ndarray) -> str:
        row = int(np.asarray(view.part)[place])
        return "" if span[0] == NONE else view.dataset.text_of(row, int(span[0]), int(span[1]))

    def scored(self, view: View, answers: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Exact match and F1 of the answers of a part: (n,), (n,)."""
        references = [view.dataset.references(int(row)) for row in np.asarray(view.part)]
        pairs = list(zip(answers, references, strict=True))
        return np.array([exact_match(a, b) for a, b in pairs]), np.array([span_f1(a, b) for a, b in pairs])

    def measure(self, view: View) -> dict[str, float]:
        candidates = list(self.read(view))
        answers = [self.answer(view, place, one, 0.5)[0] for place, (one, _) in enumerate(candidates)]
        match, f1 = self.scored(view, answers)
        loss = -np.log(np.maximum([own or 0.0 for _, own in candidates], 1e-9)).mean()
        return {
            "exact_match": float(match.mean()),
            "f1": float(f1.mean()),
            "loss": float(loss),
            "missed": 1 - float(f1.mean()),
        }

    def calibrate(self, validation: View, calibration: View, level: float) -> AnswerTrust:
        """Temperature and threshold of no answer from the validation part, missed answers from the calibration part."""
        chances = [[own or 0.0 for _, own in self.read(validation, t)] for t in TEMPERATURES]
        best = int(np.argmin([-np.log(np.maximum(own, 1e-9)).mean() for own in chances]))
        temperature = TEMPERATURES[best]
        absent = self._threshold(validation, temperature) if self.absent else 1.0
        own = np.array([chance or 0.0 for _, chance in self.read(calibration, temperature)])
        risks = (own[:, None] < THRESHOLDS).mean(0).tolist()
        return AnswerTrust(temperature, absent, risks, len(own), check_level(level))

    def _threshold(self, view: View, temperature: float) -> float:
        """The probability of no answer above which none is given: the one with the best F1."""
        candidates = [one for one, _ in self.read(view, temperature)]
        chances = np.array([one.chances[one.spans[:, 0] == NONE][0] for one in candidates])
        given = self.scored(view, [self.answer(view, place, one, 2.0)[0] for place, one in enumerate(candidates)])[1]
        left = self.scored(view, [""] * len(candidates))[1]
        grid = np.linspace(0.05, 0.95, 19)
        return float(grid[np.argmax([np.where(chances >= t, left, given).mean() for t in grid])])

    def trust(self, saved: Any) -> AnswerTrust:
        return AnswerTrust.from_json(saved)

    def evaluate(self, view: View, trust: AnswerTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        candidates = list(self.read(view, trust.temperature))
        given = [self.answer(view, place, one, trust.absent) for place, (one, _) in enumerate(candidates)]
        match, f1 = self.scored(view, [text for text, _ in given])
        metrics: dict[str, float | None] = {"exact_match": float(match.mean()), "f1": float(f1.mean())}
        if self.absent:
            none = np.array([view.dataset.references(int(row)) == [""] for row in np.asarray(view.part)])
            for name, rows in (("answerable", ~none), ("unanswerable", none)):
                metrics[f"exact_match_{name}"] = float(match[rows].mean()) if rows.any() else None
        threshold = trust.threshold(level)
        own = np.array([chance or 0.0 for _, chance in candidates])
        note = "" if trust.promised(level) is not None else (
            f"{trust.rows} calibration questions are not enough, or the model misses too much, to promise that at most {1 - level:.0%} of the "
            "answers are missed: the lowest threshold is used."
        )  # fmt: skip
        conformal = {
            "level": level, "coverage": float((own >= threshold).mean()), "note": note, "threshold": threshold, "of": "answers",
            "mean_size": float(np.mean([(one.chances >= threshold).sum() for one, _ in candidates])),
        }  # fmt: skip
        chances = np.array([chance for _, chance in given])
        return {"rows": len(candidates), "metrics": metrics, "conformal": conformal} | score_reliability(
            chances, chances, match > 0
        )

    def predictions(self, view: View, trust: AnswerTrust, level: float | None = None) -> pd.DataFrame:
        """The answer to each question with its probability, the characters where it stands, and the set of answers."""
        threshold = trust.threshold(trust.level if level is None else level)
        dataset: Any = view.dataset
        rows = []
        for place, (candidates, _) in enumerate(self.read(view, trust.temperature)):
            text, chance = self.answer(view, place, candidates, trust.absent)
            inside = [self._text(view, place, span) for span in candidates.spans[candidates.chances >= threshold]]
            rows.append((text, chance, list(dict.fromkeys([text, *inside]))))
        if (path := getattr(view.asked, "answers", None)) is not None:
            keys = [question.key or str(i + 1) for i, question in enumerate(dataset.questions)]
            written = json.dumps(
                {key: row[0] for key, row in zip(keys, rows, strict=True)}, ensure_ascii=False, indent=1
            )
            write_bytes(Path(path), written.encode("utf-8", "surrogatepass"))
        return pd.DataFrame(rows, columns=["prediction", "probability", "set"])

    def answers(self, trust: AnswerTrust, level: float) -> nn.Module | str:
        return SpanAnswers(self, trust, CANDIDATES)

    def expected(self, run: Any, source: Any, level: float) -> list[tuple[np.ndarray, np.ndarray, float, int]]:
        """Of each question the words of the candidates in its row, their probabilities, that of no answer, and the words before the text."""
        view = run.view(run.encoder.open(source))
        rows = []
        for reading, first in zip(self.read(view, run.trust.temperature), question_words(view), strict=True):
            spans, chances = reading[0]
            none = spans[:, 0] == NONE
            rows.append((spans[~none] + first, chances[~none], float(chances[none][0]), first))
        return rows

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """Of probabilities of parts of texts, the same in both, and of no answer."""
        largest = 0.0
        for row, (spans, chances, none, _) in enumerate(table):
            given = {
                tuple(span): chance
                for span, chance in zip(exported["spans"][row].tolist(), exported["probabilities"][row], strict=True)
            }
            least = float(
                exported["probabilities"][row].min()
            )  # the last candidates may change places with others that are as probable
            apart = [
                abs(given.get(tuple(span), least) - chance)
                for span, chance in zip(spans.tolist(), chances, strict=True)
            ]
            largest = max([largest, abs(none - float(exported["none"][row])), *apart])
        return largest

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        if getattr(model, "longest", None) != self.longest or encoder.absent != self.absent:
            return "preprocess.json and the model are of another task than config.json: they do not belong together."
        return None

    def point(self, view: View, trust: AnswerTrust) -> list[str]:
        """The answers that are given."""
        return [
            self.answer(view, place, one, trust.absent)[0]
            for place, (one, _) in enumerate(self.read(view, trust.temperature))
        ]

    def truth(self, view: View) -> View:
        """The part itself, whose questions have several right answers."""
        return view

    def leaderboard_row(self, name: str, predicted: Any, ours: Any, y: Any) -> dict[str, Any]:
        """Exact match and F1 of a method; `y` is the view of the test part."""
        scores = dict(zip(("exact_match", "f1"), self.scored(y, predicted), strict=True))
        row: dict[str, Any] = {"name": name, "metrics": {key: float(values.mean()) for key, values in scores.items()}}
        if ours is not None:
            own = dict(zip(("exact_match", "f1"), self.scored(y, ours), strict=True))
            row["differences"] = {key: vars(paired_difference(own[key], scores[key])) for key in scores}
        return row

    def leaderboard_sentence(self, rows: list[dict[str, Any]], count: int) -> str:
        behind = [row["name"] for row in rows if row.get("differences") and row["differences"]["f1"]["low"] <= 0]
        if not behind:
            return ""
        return (
            f"On these {count:,} test questions this model is not clearly better than the {' and the '.join(behind)} (95 % interval of the paired "
            "difference of F1): more questions would help."
        )

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "nats per question", True), ("f1", "F1", False)]

    def facts(self, view: View, trust: AnswerTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """What was measured, and the surest wrong answers."""
        metrics, conformal = record["metrics"], record["conformal"]
        given = [
            self.answer(view, place, one, trust.absent)
            for place, (one, _) in enumerate(self.read(view, trust.temperature))
        ]
        f1 = self.scored(view, [text for text, _ in given])[1]
        wrong = sorted(np.flatnonzero(f1 == 0).tolist(), key=lambda place: -given[place][1])[:12]
        rows = [int(np.asarray(view.part)[place]) for place in wrong]
        verdict = (
            f"{percent(metrics['exact_match'])} of {record['rows']:,} unseen questions are answered exactly (F1 {percent(metrics['f1'])}); sets of "
            f"{number(conformal['mean_size'], 3)} answers hold the right one for {percent(conformal['coverage'])} of them."
        )
        return {
            "verdict": verdict, "answers": "parts of a text", "conformal": None,
            "mistakes": [
                {"true": dataset.references(row)[0] or "(none)", "predicted": given[place][0] or "(none)", "probability": given[place][1]}
                | {"row": {"question": dataset.questions[row].text[:300], "text": dataset.contexts[dataset.questions[row].context][:600]}}
                for place, row in zip(wrong, rows, strict=True)
            ],
            "reliability": record["reliability"] | {
                "ece_before": record["ece"]["before"], "ece_after": record["ece"]["after"], "temperature": trust.temperature,
            },
        }  # fmt: skip

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            (
                "Answer other questions",
                f"wonderland predict {folder} QUESTIONS.json -o answers.csv --answers answers.json",
            ),
            ("Measure on other questions", f"wonderland evaluate {folder} QUESTIONS.json"),
        ]


def question_words(view: View) -> list[int]:
    """How many words of the question come before the text in each row."""
    return [int(count) for batch in view.batches(SIZE) for count in (batch["x"][..., -2] == 1).sum(1).tolist()]


def banded(ends: Tensor, longest: int) -> Tensor:
    """Scores of spans by their first word and their length less one: (b, t, 2) -> (b, t, longest), minus infinity outside."""
    padded = torch.nn.functional.pad(ends[..., 1], (0, longest - 1), value=-torch.inf)
    return ends[..., :1] + padded.unfold(1, longest, 1)


def _merged(spans: Tensor, scores: Tensor, none: float) -> Candidates:
    """Spans and no answer in one list, the most probable first."""
    kept = torch.isfinite(scores)
    places = np.concatenate([spans[kept].numpy(), [[NONE, NONE]]])
    chances = np.exp(np.concatenate([scores[kept].double().numpy(), [none]]))
    order = np.argsort(-chances, kind="stable")
    return Candidates(places[order], chances[order])
