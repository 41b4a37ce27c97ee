"""Calibration of language models: a temperature, and conformal sets of next tokens."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.tasks.task import Trust
from wonderland.trust.calibration import ece, fit_temperature
from wonderland.trust.conformal import Scores, check_level

MAX_LOGITS = 2_000_000  # numbers kept for fitting the temperature
MAX_SCORES = 10_000  # conformal scores kept in trust.json

Logits = Callable[[Batch], Tensor]


def token_measures(nats: float, tokens: int, size: int) -> dict[str, float]:
    """Loss in nats per token, bits per byte of text, and perplexity, from the summed loss in nats."""
    loss = nats / max(1, tokens)
    return {
        "loss": loss,
        "bits_per_byte": nats / max(1, size) / math.log(2),
        "perplexity": round(math.exp(min(loss, 700.0)), 12),
    }


@dataclass(frozen=True)
class TokenTrust(Trust):
    """A temperature, conformal scores of next tokens, and the default level of sets.

    Neighbouring positions of a text are not independent, so coverage equals the level only on average over similar texts; the
    coverage measured on the test part is in the record.
    """

    temperature: float
    scores: Scores
    level: float

    @staticmethod
    def fit(logits: Logits, validation: Iterable[Batch], calibration: Iterable[Batch], level: float) -> "TokenTrust":
        """Temperature from the batches of the validation part, scores from those of the calibration part."""
        check_level(level)
        sampled, y = sample(logits, validation)
        temperature = fit_temperature(sampled, y)
        scores = np.concatenate(
            [
                log_odds_against(batch.log_probability).numpy()
                for batch in score_batches(logits, calibration, temperature)
            ]
        )
        kept = scores[np.linspace(0, len(scores) - 1, min(MAX_SCORES, len(scores))).round().astype(int)]
        return TokenTrust(temperature, Scores.of(kept, np.zeros(len(kept), np.int64), 1), level)

    def threshold(self, level: float | None = None) -> float:
        """The smallest probability of a token in the set at this level."""
        level = self.level if level is None else check_level(level)
        pooled = np.sort(np.concatenate(self.scores.groups))[::-1]
        rank = max(0, math.floor((1 - level) * (len(pooled) + 1) + 1e-9))
        if rank < 1:
            return 0.0
        return float(1 / (1 + math.exp(min(700.0, float(pooled[rank - 1])))))

    def measure(
        self, logits: Logits, batches: Iterable[Batch], size: int, level: float | None = None
    ) -> dict[str, Any]:
        """Metrics, calibration and coverage on batches with known targets; `size` is the number of bytes of the text."""
        level = self.level if level is None else check_level(level)
        threshold = self.threshold(level)
        nats = calibrated_nats = 0.0
        correct_parts: list[np.ndarray] = []
        raw: list[np.ndarray] = []
        calibrated: list[np.ndarray] = []
        size_parts: list[np.ndarray] = []
        covered_parts: list[np.ndarray] = []
        for before, after in _before_and_after(logits, batches, self.temperature, threshold):
            nats -= float(before.log_probability.sum(dtype=torch.float64))
            calibrated_nats -= float(after.log_probability.sum(dtype=torch.float64))
            correct_parts.append(before.correct.numpy())
            raw.append(before.confidence.numpy())
            calibrated.append(after.confidence.numpy())
            size_parts.append(after.set_size.numpy())
            covered_parts.append(after.covered.numpy())
        correct, sizes = np.concatenate(correct_parts), np.concatenate(size_parts)
        covered = np.concatenate(covered_parts)
        if not len(correct):
            raise WonderlandError("The text has no token to predict: give at least two tokens.")
        count = len(correct)
        distinct = np.unique(sizes)
        return {
            "rows": count,
            "bytes": size,
            "metrics": token_measures(nats, count, size) | {"accuracy": float(correct.mean())},
            "calibrated_loss": calibrated_nats / count,
            "ece": {"before": _ece(np.concatenate(raw), correct), "after": _ece(np.concatenate(calibrated), correct)},
            "reliability": {
                "before": _bins(np.concatenate(raw), correct),
                "after": _bins(np.concatenate(calibrated), correct),
            },
            "conformal": {
                "level": level,
                "coverage": float(covered.mean()),
                "mean_size": float(sizes.mean()),
                "empty": int((sizes == 0).sum()),
                "sizes": {int(size): int((sizes == size).sum()) for size in distinct} if len(distinct) <= 40 else {},
                "note": self.scores.note(level),
            },
        }

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"temperature": self.temperature, "level": self.level, "scores": self.scores.to_json()}

    @staticmethod
    def from_json(value: Any) -> "TokenTrust":
        """Back from `to_json`; damaged content is refused."""
        try:
            temperature, level = float(value["temperature"]), check_level(float(value["level"]))
            if not 1e-3 < temperature < 1e6:
                raise ValueError
            scores = value["scores"]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WonderlandError("trust.json lacks its temperature, level or scores: it is damaged.") from error
        read = Scores.from_json(scores)
        if len(read.groups) != 1 or not read.count:
            raise WonderlandError("trust.json lacks its temperature, level or scores: it is damaged.")
        return TokenTrust(temperature, read, level)


@dataclass(frozen=True)
class TokenScores:
    """The predictions at the n positions of a batch, all (n,).

    `log_probability` of the target, whether the most likely token is `correct`, its probability (`confidence`), the size of the
    conformal set, and whether the set contains the target (`covered`).
    """

    log_probability: Tensor
    correct: Tensor
    confidence: Tensor
    set_size: Tensor
    covered: Tensor


def score_batches(
    logits: Logits, batches: Iterable[Batch], temperature: float = 1.0, threshold: float = 0.0
) -> Iterator[TokenScores]:
    """The scores of each batch at a temperature; sets are the tokens with at least the probability `threshold`."""
    for batch in batches:
        with torch.no_grad():
            y = batch["y"]
            real = y != -100
            scores = _scores(logits(batch)[real].cpu(), y[real].cpu(), temperature, threshold)
        yield scores  # outside of no_grad, which would otherwise stay active in the caller


def _before_and_after(
    logits: Logits, batches: Iterable[Batch], temperature: float, threshold: float
) -> Iterator[tuple[TokenScores, TokenScores]]:
    """The scores of each batch without and with a temperature, from one forward pass."""
    for batch in batches:
        with torch.no_grad():
            y = batch["y"]
            real = y != -100
            outputs, targets = logits(batch)[real].cpu(), y[real].cpu()
            both = _scores(outputs, targets, 1.0, 0.0), _scores(outputs, targets, temperature, threshold)
        yield both


def _scores(logits: Tensor, targets: Tensor, temperature: float, threshold: float) -> TokenScores:
    log_p = (logits.float() / temperature).log_softmax(-1)
    target_log_p = log_p.gather(1, targets[:, None])[:, 0]
    best, token = log_p.max(1)
    cutoff = math.log(threshold) if threshold > 0 else -math.inf
    return TokenScores(target_log_p, token == targets, best.exp(), (log_p >= cutoff).sum(1), target_log_p >= cutoff)


def sample(logits: Logits, batches: Iterable[Batch]) -> tuple[np.ndarray, np.ndarray]:
    """Logits and targets at evenly spaced positions, at most about MAX_LOGITS numbers."""
    batches = list(batches)
    total = sum(int((batch["y"] != -100).sum()) for batch in batches)
    rows: list[np.ndarray] = []
    targets: list[np.ndarray] = []
    seen, step = 0, 1
    for batch in batches:
        y = batch["y"].cpu()
        real = y != -100
        with torch.no_grad():
            outputs = logits(batch).cpu()[real]
        if not rows:
            step = max(1, total * outputs.shape[1] // MAX_LOGITS)
        positions = torch.arange((-seen) % step, len(outputs), step)
        seen += len(outputs)
        rows.append(outputs[positions].double().numpy())
        targets.append(y[real][positions].numpy())
    if not total:
        raise WonderlandError("The text has no token to predict: give at least two tokens.")
    return np.concatenate(rows), np.concatenate(targets)


def log_odds_against(log_probability: Tensor) -> Tensor:
    """The log-odds against a token, log((1 - p) / p), from its log-probability."""
    value = log_probability.double().clamp(max=-1e-12)
    return torch.log(-torch.expm1(value)) - value


def _ece(confidence: np.ndarray, correct: np.ndarray) -> float:
    return ece(np.stack([confidence, np.zeros_like(confidence)], 1), np.where(correct, 0, 1))


def _bins(confidence: np.ndarray, correct: np.ndarray, bins: int = 15) -> list[dict[str, Any]]:
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        {
            "confidence": float(confidence[bin_of == index].mean()),
            "accuracy": float(correct[bin_of == index].mean()),
            "count": int((bin_of == index).sum()),
        }
        for index in np.unique(bin_of)
    ]
