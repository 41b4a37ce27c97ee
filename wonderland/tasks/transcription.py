"""Transcription: a text from frames, without an alignment between the two."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.generation.ctc_beam import PrefixLanguage, ctc_beam_search
from wonderland.ops.ctc import ctc_align, ctc_greedy, ctc_loss
from wonderland.tasks.frame_answers import FrameAnswers
from wonderland.tasks.task import Task, Trust
from wonderland.tasks.text.error_rates import character_error_rate, edit_distance, word_error_rate
from wonderland.tasks.view import View
from wonderland.trust.conformal import check_level
from wonderland.understand.format import number, percent

CHUNK, ALIGNED = 64, 4
BEAMS, WEIGHTS = 16, (0.0, 0.3, 0.6, 1.0)


class TranscriptTrust(Trust):
    """Character error rates of calibration texts, which bound those of new ones, and how much the language model counts."""

    def __init__(self, rates: list[float], level: float, weight: float):
        self.rates, self.level, self.weight = sorted(rates), level, weight

    def bound(self, level: float) -> float:
        """A new text has at most this character error rate with this probability; 1 and more where rates are too few to say."""
        place = math.ceil((len(self.rates) + 1) * level)
        return self.rates[place - 1] if place <= len(self.rates) else max(1.0, self.rates[-1])

    def to_json(self) -> dict[str, Any]:
        return {"rates": self.rates, "level": self.level, "weight": self.weight}


@part
class Transcription(Task):
    """Texts over `characters`, learned by CTC. A model returns logits (b, frames, 1 + characters), the blank first.

    >>> Transcription("ab").texts([[1, 2, 2]])
    ['abb']
    """

    name = "transcription"
    watch = "loss"

    def __init__(self, characters: str):
        if not isinstance(characters, str) or not characters or len(set(characters)) < len(characters):
            raise WonderlandError(
                f"Transcription takes its characters as one text without repetitions, not {characters!r}."
            )
        self.characters, self.outputs = characters, len(characters) + 1

    def arguments(self) -> dict[str, Any]:
        return {"characters": self.characters}

    def model_arguments(self) -> dict[str, Any]:
        return {"outputs": self.outputs}

    def texts(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Texts of tokens, which count the characters from 1."""
        return ["".join(self.characters[token - 1] for token in row) for row in tokens]

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Minus the log-likelihood of each character, in nats; texts that do not fit into their frames are left out."""
        losses, targets = ctc_loss(model(batch["x"]), batch["y"]), batch["y"]
        fits = torch.isfinite(losses)
        count = float((targets[fits] >= 0).sum())
        return torch.where(fits, losses, 0).sum() / max(1.0, count), max(1.0, count)

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        shape = tuple(model(batch["x"]).shape)
        if len(shape) != 3 or shape[0] != len(batch) or shape[2] != self.outputs:
            return f"returns {shape} for two rows, where this task needs ({len(batch)}, frames, {self.outputs})"
        return None

    def logits(self, view: View) -> Tensor:
        """Logits for every row (n, frames, 1 + characters)."""
        with torch.inference_mode():
            return torch.cat([view.model(batch["x"]).cpu() for batch in view.batches(CHUNK)])

    def true(self, view: View) -> list[str]:
        texts: Any = view.examples.texts  # pyright: ignore[reportAttributeAccessIssue]
        return [texts[row] for row in np.asarray(view.part)]

    def measure(self, view: View) -> dict[str, float]:
        losses, count, written = 0.0, 0.0, []
        with torch.inference_mode():
            for batch in view.batches(CHUNK):
                logits = view.model(batch["x"])
                each = ctc_loss(logits, batch["y"])
                losses += float(each[torch.isfinite(each)].sum())
                count += float((batch["y"] >= 0).sum())
                written += self.texts(ctc_greedy(logits))
        return {
            "loss": losses / max(1.0, count),
            "character_error_rate": character_error_rate(written, self.true(view)),
        }

    def written(self, model: Any, logits: Tensor, weight: float) -> tuple[list[str], np.ndarray]:
        """The likeliest text of each row by beam search, and the mean probability of its characters."""
        language = getattr(model, "language", None) if weight else None
        language = None if language is None else PrefixLanguage(language, 0)
        transcripts = [ctc_beam_search(row, beams=BEAMS, language=language, weight=weight)[0][0] for row in logits]
        targets = torch.full((len(transcripts), max(1, *map(len, transcripts))), -1)
        for row, tokens in enumerate(transcripts):
            targets[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.int64)
        likelihood = -ctc_loss(logits, targets)
        counts = (targets >= 0).sum(1).clamp_min(1)
        return self.texts(transcripts), (likelihood / counts).exp().double().numpy()

    def calibrate(self, validation: View, calibration: View, level: float) -> TranscriptTrust:
        """The weight of the language model from the validation part, error rates from the calibration part."""
        logits, true, weight = self.logits(validation), self.true(validation), 0.0
        if getattr(validation.model, "language", None) is not None:
            rates = [character_error_rate(self.written(validation.model, logits, w)[0], true) for w in WEIGHTS]
            weight = WEIGHTS[int(np.argmin(rates))]
        texts, _ = self.written(calibration.model, self.logits(calibration), weight)
        return TranscriptTrust(_rates(texts, self.true(calibration)), check_level(level), weight)

    def trust(self, saved: Any) -> TranscriptTrust:
        try:
            rates, level, weight = saved["rates"], check_level(saved["level"]), saved["weight"]
            numbers = [*rates, weight]
            if not rates or not all(
                isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < 1e6 for v in numbers
            ):
                raise TypeError
            return TranscriptTrust([float(rate) for rate in rates], level, float(weight))
        except (KeyError, TypeError) as error:
            raise WonderlandError(
                "trust.json does not hold error rates of texts: it is damaged or not ours."
            ) from error

    def evaluate(self, view: View, trust: TranscriptTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        logits, true = self.logits(view), self.true(view)
        written, _ = self.written(view.model, logits, trust.weight)
        bound = trust.bound(level)
        rates = np.array(_rates(written, true))
        metrics = {
            "character_error_rate": character_error_rate(written, true),
            "word_error_rate": word_error_rate(written, true),
            "exact": float(np.mean([a == b for a, b in zip(written, true, strict=True)])),
            "greedy_character_error_rate": character_error_rate(self.texts(ctc_greedy(logits)), true),
        }
        note = f"A text has a character error rate of at most {bound:.1%} with a probability of {level:.0%}."
        conformal = {"level": level, "coverage": float((rates <= bound).mean()), "bound": bound, "note": note}
        return {"rows": len(true), "metrics": metrics, "conformal": conformal}

    def predictions(self, view: View, trust: TranscriptTrust, level: float | None = None) -> pd.DataFrame:
        """The text of each recording, and the mean probability of its characters."""
        written, probability = self.written(view.model, self.logits(view), trust.weight)
        return pd.DataFrame({"prediction": written, "probability": probability})

    def answers(self, trust: TranscriptTrust, level: float) -> nn.Module | str:
        return FrameAnswers()

    def expected(self, run: Any, source: Any, level: float) -> np.ndarray:
        """Log-probabilities of the tokens of each frame, which `predict` searches for the likeliest text."""
        return self.logits(run.view(run.encoder.open(source))).log_softmax(-1).numpy()

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """Of the probabilities of tokens."""
        return float(np.abs(np.exp(table) - np.exp(exported["log_probabilities"])).max(initial=0.0))

    def check_run(self, model: Any, encoder: Any, trust: Any, folds: int) -> str | None:
        if getattr(encoder, "characters", None) != self.characters:
            return "preprocess.json has other characters than config.json: the two do not belong together."
        return None

    def facts(self, view: View, trust: TranscriptTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """The worst texts, and alignments of some."""
        measured, logits, true = record["metrics"], self.logits(view), self.true(view)
        written, probability = self.written(view.model, logits, trust.weight)
        rates = np.array(_rates(written, true))
        worst = [int(i) for i in np.argsort(-rates, kind="stable")[:12] if rates[i] > 0]
        verdict = (
            f"Of the characters of {record['rows']:,} test texts {percent(measured['character_error_rate'])} are wrong, missing or too many, "
            f"and of the words {percent(measured['word_error_rate'])}; {percent(measured['exact'])} of the texts are right as a whole. "
            f"{record['conformal']['note']}"
        )
        return {
            "verdict": verdict,
            "answers": f"texts of {len(self.characters)} characters",
            "conformal": None,
            "mistakes": [
                {"true": true[i], "predicted": written[i], "probability": float(probability[i])} | dataset.shown(int(view.part[i]))
                for i in worst
            ],
            "alignments": [self.alignment(logits[i], true[i]) | dataset.shown(int(view.part[i])) for i in range(min(ALIGNED, len(true)))],
            "language_weight": number(trust.weight, 2),
        }  # fmt: skip

    def alignment(self, logits: Tensor, text: str) -> dict[str, Any]:
        """Where each character of a true text begins, as a share of the frames."""
        tokens = torch.tensor(
            [self.characters.index(character) + 1 for character in text if character in self.characters]
        )
        try:
            _, starts = ctc_align(logits, tokens)
        except WonderlandError:
            return {"text": text, "starts": []}
        return {"text": text, "starts": [round(float(start) / len(logits), 4) for start in starts]}

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss per character", True), ("character_error_rate", "character error rate", False)]


def _rates(written: list[str], true: list[str]) -> list[float]:
    return [edit_distance(a, b) / max(1, len(b)) for a, b in zip(written, true, strict=True)]
