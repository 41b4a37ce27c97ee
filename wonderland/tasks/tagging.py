"""Tagging: a tag for each word of a sentence, and the spans that tags mark."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.tasks.detection_trust import THRESHOLDS, fit_scores, score_reliability
from wonderland.tasks.tag_answers import TagAnswers
from wonderland.tasks.tag_board import tag_row, tag_sentence
from wonderland.tasks.tag_trust import TagTrust, missed_tags
from wonderland.tasks.task import Task
from wonderland.tasks.text.tag_spans import marks_spans, span_scores, spans_of
from wonderland.tasks.view import View
from wonderland.trust import check_level
from wonderland.understand.format import number, percent
from wonderland.understand.sections import Section
from wonderland.understand.sections.tagged import tag_sections

SIZE, TEMPERATURES, LEAST_SCORED = 64, (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0), 200


class Sentence(NamedTuple):
    """What a model says of one sentence: codes of tags (t,), probabilities (t, classes), and the true codes where known."""

    codes: ndarray
    chances: ndarray
    truth: ndarray | None


@part
class Tagging(Task):
    r"""A tag for each word.

    .. math:: L = -\log p(y_1, \dots, y_n \mid x)

    A model with `log_likelihood(x, tags)` and `tagged(x, temperature)`, such as `models.Tagger`, is trained by the probability of whole
    sequences; any other returns logits (b, t, tags), whose words are independent. Where tags mark spans (BIO and its relatives), F1
    of spans is measured as CoNLL counts it. Scores are calibrated, and sets of tags bound the share of words that they miss. Book: D2L 16.6.

    >>> Tagging(["O", "B-PER", "I-PER"]).spans
    True
    """

    name, watch, unit = "tagging", "missed", "sentence"
    several = True
    classes: list[str]

    def __init__(self, classes: list[str]):
        if not isinstance(classes, list) or len(classes) < 2 or not all(isinstance(name, str) for name in classes):
            raise WonderlandError(f"Tagging needs names of at least two tags, not {classes!r:.60}.")
        self.outputs, self.spans = len(classes), marks_spans(classes)
        self.classes = list(classes)  # pyright: ignore[reportIncompatibleVariableOverride]

    def arguments(self) -> dict[str, Any]:
        return {"classes": self.classes}

    def model_arguments(self) -> dict[str, Any]:
        return {"tags": self.outputs, "classes": self.outputs, "outputs": self.outputs}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Minus the log-likelihood of the tags, for each word."""
        x, y = batch["x"], self._tags_of(batch)
        words = float((y >= 0).sum())
        if callable(getattr(model, "log_likelihood", None)):
            return -model.log_likelihood(x, y).sum() / max(1.0, words), words  # pyright: ignore
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100), words

    def _tags_of(self, batch: Batch) -> Tensor:
        """True codes of tags (b, t), -100 where there is no word."""
        return batch["y"][:, : batch["x"].shape[1]].long()

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        shape, wanted = tuple(model(batch["x"]).shape), (*batch["x"].shape[:2], self.outputs)
        return (
            None
            if shape == wanted
            else f"returns {shape} for two sentences, where this task needs {wanted}: take Tagger"
        )

    def read(self, view: View, temperature: float = 1.0, most: int | None = None) -> Iterator[Sentence]:
        """What the model says of each sentence."""
        with torch.inference_mode():
            for batch in view.batches(SIZE, most):
                x = batch["x"]
                y = self._tags_of(batch).cpu().numpy() if "y" in batch else None
                if callable(getattr(view.model, "tagged", None)):
                    path, marginals = view.model.tagged(x, temperature)  # pyright: ignore
                    chances = marginals.exp().cpu().numpy()
                else:
                    chances = (view.model(x) / temperature).softmax(-1).cpu().numpy()
                    path = torch.from_numpy(chances).argmax(-1)
                lengths = (x.flatten(2).amax(2) > 0).sum(1).tolist() if x.dim() == 3 else (x != 0).sum(1).tolist()
                for row, length in enumerate(lengths):
                    yield Sentence(
                        path[row, :length].cpu().numpy(), chances[row, :length], None if y is None else y[row, :length]
                    )

    def names(self, codes: ndarray) -> list[str]:
        """The names of tags."""
        return [self.classes[code] for code in codes]

    def measures(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
        """Share of right words, loss of a word, and where tags mark spans their precision, recall and F1."""
        truth = [sentence.truth for sentence in sentences]
        assert all(row is not None for row in truth)
        right = np.concatenate([s.codes == s.truth for s in sentences])
        own = np.concatenate([s.chances[np.arange(len(s.codes)), s.truth] for s in sentences])
        metrics: dict[str, Any] = {
            "accuracy": float(right.mean()),
            "loss": float(-np.log(np.maximum(own, 1e-12)).mean()),
        }
        if not self.spans:
            return metrics | {"missed": 1 - metrics["accuracy"]}
        scores = span_scores(
            [self.names(row) for row in truth if row is not None], [self.names(s.codes) for s in sentences]
        )
        return {name: scores[name] for name in ("f1", "precision", "recall")} | metrics | {
            "missed": 1 - scores["f1"], "by_name": scores["by_name"], "spans": scores["spans"],
        }  # fmt: skip

    def measure(self, view: View) -> dict[str, float]:
        measures = self.measures(list(self.read(view)))
        return {name: value for name, value in measures.items() if isinstance(value, float)}

    def calibrate(self, validation: View, calibration: View, level: float) -> TagTrust:
        """Temperature and scores of spans from the validation part, shares of missed tags from the calibration part."""
        losses = [self.measures(list(self.read(validation, t)))["loss"] for t in TEMPERATURES]
        temperature = TEMPERATURES[int(np.argmin(losses))]
        scored = self._scored(list(self.read(validation, temperature)))
        slope, offset = fit_scores(*scored) if len(scored[0]) else (1.0, 0.0)
        shares = [self._missed(sentence) for sentence in self.read(calibration, temperature)]
        known = [share for share in shares if share is not None]
        risks = np.mean(known, 0).tolist() if known else [1.0] * len(THRESHOLDS)
        return TagTrust(temperature, slope, offset, risks, len(known), check_level(level))

    def _missed(self, sentence: Sentence) -> ndarray | None:
        truth = sentence.truth
        assert truth is not None
        outside = self.classes.index("O") if self.spans and "O" in self.classes else -1
        return missed_tags(sentence.chances[np.arange(len(truth)), truth], truth != outside)

    def _scored(self, sentences: Sequence[Sentence]) -> tuple[ndarray, ndarray]:
        """Scores of all predicted spans (of all words, where tags mark none), and which of them are right."""
        scores, right = [], []
        for sentence in sentences:
            assert sentence.truth is not None
            true = set(spans_of(self.names(sentence.truth))) if self.spans else set()
            for first, stop, name, score in self.scored_spans(sentence):
                scores.append(score)
                right.append(
                    (first, stop, name) in true if self.spans else bool(sentence.codes[first] == sentence.truth[first])
                )
        return np.array(scores, np.float64), np.array(right, bool)

    def scored_spans(self, sentence: Sentence) -> list[tuple[int, int, str, float]]:
        """Predicted spans with their scores: the smallest probability of their words; words alone, where tags mark no spans."""
        own = sentence.chances[np.arange(len(sentence.codes)), sentence.codes]
        names = self.names(sentence.codes)
        spans = spans_of(names) if self.spans else [(i, i + 1, name) for i, name in enumerate(names)]
        return [(first, stop, name, float(own[first:stop].min())) for first, stop, name in spans]

    def trust(self, saved: Any) -> TagTrust:
        return TagTrust.from_json(saved)

    def evaluate(self, view: View, trust: TagTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        sentences = list(self.read(view, trust.temperature))
        measures = self.measures(sentences)
        threshold = trust.threshold(level)
        shares = [share for sentence in sentences if (share := self._missed(sentence)) is not None]
        place = int(np.flatnonzero(threshold <= THRESHOLDS)[0])
        note = "" if trust.promised(level) is not None else (
            f"{trust.rows} calibration sentences are not enough, or the model misses too much, to promise that at most {1 - level:.0%} of "
            "the words are missed: the lowest threshold is used."
        )  # fmt: skip
        sizes = np.concatenate([(s.chances >= threshold).sum(1) for s in sentences])
        conformal = {
            "level": level, "coverage": 1 - float(np.mean(shares, 0)[place]) if shares else None, "note": note,
            "mean_size": float(sizes.mean()), "threshold": threshold, "of": "words",
        }  # fmt: skip
        scores, right = self._scored(sentences)
        metrics = {name: value for name, value in measures.items() if isinstance(value, float) and name != "missed"}
        record = {
            "rows": len(sentences),
            "metrics": metrics,
            "conformal": conformal,
            "by_name": measures.get("by_name", {}),
        }
        return record | score_reliability(scores, trust.chance(scores), right)

    def predictions(self, view: View, trust: TagTrust, level: float | None = None) -> pd.DataFrame:
        """A row for each word: its tag with its probability, the set of tags, and the chance that its span is right."""
        threshold = trust.threshold(trust.level if level is None else level)
        dataset: Any = view.dataset
        rows: list[tuple[Any, ...]] = []
        all_tags: list[list[str]] = []
        all_spans: list[list[dict[str, Any]]] = []
        for place, sentence in enumerate(self.read(view, trust.temperature)):
            words, names = dataset.words[place], self.names(sentence.codes)
            chances = [0.0] * len(words)
            spans = []
            for first, stop, name, score in self.scored_spans(sentence):
                chance = float(trust.chance(np.array([score]))[0])
                chances[first:stop] = [chance] * (stop - first)
                spans.append({"first": first, "stop": stop, "label": name, "chance": round(chance, 4)})
            for i, (word, name) in enumerate(zip(words, names, strict=True)):
                inside = [
                    self.classes[code]
                    for code in np.argsort(-sentence.chances[i], kind="stable")
                    if sentence.chances[i][code] >= threshold
                ]
                own = float(sentence.chances[i][sentence.codes[i]])
                rows.append((place + 1, word, name, own, inside or [name], chances[i] if name != "O" else None))
            all_tags.append(names)
            all_spans.append(spans)
        if (path := getattr(view.asked, "tagged", None)) is not None:
            dataset.write(Path(path), all_tags, all_spans)
        columns = ["sentence", "word", "prediction", "probability", "set", "chance of the span"]
        table = pd.DataFrame(rows, columns=columns)
        return table if self.spans else table.drop(columns=columns[-1])

    def answers(self, trust: TagTrust, level: float) -> nn.Module | str:
        return TagAnswers(trust, level)

    def expected(self, run: Any, source: Any, level: float) -> list[Sentence]:
        """Tags and their probabilities."""
        return list(self.read(run.view(run.encoder.open(source)), run.trust.temperature))

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """Of probabilities; infinite where another tag is given."""
        largest = 0.0
        for row, sentence in enumerate(table):
            tags = [piece for piece in exported["tags"][row] if piece >= 0]
            if tags != sentence.codes.tolist():
                return float("inf")
            apart = np.abs(sentence.chances - exported["probabilities"][row][: len(tags)])
            largest = max(largest, float(apart.max(initial=0.0)))
        return largest

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        if encoder.classes != self.classes:
            return "preprocess.json has other tags than config.json: the two do not belong together."
        if getattr(model, "tags", self.outputs) != self.outputs:
            return "The model has other tags than its task: config.json is damaged."
        return None

    def point(self, view: View, trust: TagTrust) -> list[list[str]]:
        """The predicted tags of each sentence."""
        return [self.names(sentence.codes) for sentence in self.read(view, trust.temperature)]

    def leaderboard_row(self, name: str, predicted: Any, ours: Any, y: Any) -> dict[str, Any]:
        return tag_row(name, predicted, ours, [self.names(row[row >= 0]) for row in y], self.spans)

    def leaderboard_sentence(self, rows: list[dict[str, Any]], count: int) -> str:
        return tag_sentence(rows, count)

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "nats per word", True), ("f1", "F1", False) if self.spans else ("accuracy", "accuracy", False)]

    def sections(self, record: Mapping[str, Any]) -> tuple[Section, ...]:
        return tag_sections()

    def facts(self, view: View, trust: TagTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """What was measured for each name, sentences with their tags, and those with the most mistakes."""
        metrics, n = record["metrics"], record["rows"]
        sentences = list(self.read(view, trust.temperature))
        wrong = [int((s.codes != s.truth).sum()) for s in sentences]
        worst = [i for i in np.argsort(-np.asarray(wrong), kind="stable")[:12].tolist() if wrong[i]]
        first = (
            f"F1 {percent(metrics['f1'])} of spans"
            if self.spans
            else f"{percent(metrics['accuracy'])} of the words right"
        )
        verdict = (
            f"{first} on {n:,} unseen sentences ({percent(metrics['accuracy'])} of words); sets of {number(record['conformal']['mean_size'], 3)} tags "
            f"hold the true one for {percent(record['conformal']['coverage'])} of the words{' of spans' if self.spans else ''}."
        )
        return {
            "verdict": verdict, "answers": f"{self.outputs:,} tags", "conformal": None,
            "tagged": {
                "each": [{"name": name, **rates} for name, rates in record.get("by_name", {}).items()],
                "examples": [self._shown(view, sentences, i) for i in range(min(8, len(sentences)))],
                "mistakes": [self._shown(view, sentences, i) for i in worst],
                "risk": record["conformal"],
            },
            "reliability": record["reliability"] | {
                "ece_before": record["ece"]["before"], "ece_after": record["ece"]["after"], "temperature": trust.temperature,
            },
        }  # fmt: skip

    def _shown(self, view: View, sentences: Sequence[Sentence], i: int) -> dict[str, Any]:
        sentence, words = sentences[i], view.dataset.words[int(np.asarray(view.part)[i])]
        assert sentence.truth is not None
        shown = 60
        return {
            "words": words[:shown],
            "predicted": self.names(sentence.codes)[:shown],
            "true": self.names(sentence.truth)[:shown],
        }

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Tag other texts", f"wonderland predict {folder} TEXTS -o words.csv --tagged tagged.conll"),
            ("Measure on other tagged texts", f"wonderland evaluate {folder} TAGGED"),
        ]
