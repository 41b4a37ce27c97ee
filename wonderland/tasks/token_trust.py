"""Trust in a language model: a temperature for its probabilities, and sets of next tokens that hold the truth as often as asked."""

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

NUMBERS = 2_000_000
KEPT = 10_000

Logits = Callable[[Batch], Tensor]


def token_measures(nats: float, tokens: int, size: int) -> dict[str, float]:
    """Loss in nats a token, bits a byte of text, and perplexity, from a sum of nats."""
    loss = nats / max(1, tokens)
    return {
        "loss": loss,
        "bits_per_byte": nats / max(1, size) / math.log(2),
        "perplexity": round(math.exp(min(loss, 700.0)), 12),
    }


@dataclass(frozen=True)
class TokenTrust(Trust):
    """A temperature, calibration scores of next tokens, and the level of sets unless asked otherwise.

    Neighbouring positions of a text are not independent, so coverage is as asked only on average over texts alike; what
    was measured on the test part is in the record.
    """

    temperature: float
    scores: Scores
    level: float

    @staticmethod
    def fit(logits: Logits, validation: Iterable[Batch], calibration: Iterable[Batch], level: float) -> "TokenTrust":
        """Temperature from the batches of the validation part, scores from those of the calibration part."""
        check_level(level)
        some, y = sample(logits, validation)
        temperature = fit_temperature(some, y)
        scores = np.concatenate(
            [misfit_of(found.log_probability).numpy() for found in look(logits, calibration, temperature)]
        )
        kept = scores[np.linspace(0, len(scores) - 1, min(KEPT, len(scores))).round().astype(int)]
        return TokenTrust(temperature, Scores.of(kept, np.zeros(len(kept), np.int64), 1), level)

    def threshold(self, level: float | None = None) -> float:
        """The least probability that a token of the set at this level has."""
        level = self.level if level is None else check_level(level)
        pooled = np.sort(np.concatenate(self.scores.groups))[::-1]
        enough = max(0, math.floor((1 - level) * (len(pooled) + 1) + 1e-9))
        if enough < 1:
            return 0.0
        return float(1 / (1 + math.exp(min(700.0, float(pooled[enough - 1])))))

    def measure(
        self, logits: Logits, batches: Iterable[Batch], size: int, level: float | None = None
    ) -> dict[str, Any]:
        """Everything that can be said of a text whose tokens are known; `size` is its number of bytes."""
        level = self.level if level is None else check_level(level)
        least = self.threshold(level)
        nats = after = 0.0
        right: list[np.ndarray] = []
        raw: list[np.ndarray] = []
        mended: list[np.ndarray] = []
        sizes: list[np.ndarray] = []
        held: list[np.ndarray] = []
        for plain, found in _twice(logits, batches, self.temperature, least):
            nats -= float(plain.log_probability.sum(dtype=torch.float64))
            after -= float(found.log_probability.sum(dtype=torch.float64))
            right.append(plain.right.numpy())
            raw.append(plain.best.numpy())
            mended.append(found.best.numpy())
            sizes.append(found.sizes.numpy())
            held.append(found.held.numpy())
        hits, many, there = np.concatenate(right), np.concatenate(sizes), np.concatenate(held)
        if not len(hits):
            raise WonderlandError("The text has no token to predict: give at least two tokens.")
        count = len(hits)
        edges = np.unique(many)
        return {
            "rows": count,
            "bytes": size,
            "metrics": token_measures(nats, count, size) | {"accuracy": float(hits.mean())},
            "calibrated_loss": after / count,
            "ece": {"before": _gap(np.concatenate(raw), hits), "after": _gap(np.concatenate(mended), hits)},
            "reliability": {"before": _bins(np.concatenate(raw), hits), "after": _bins(np.concatenate(mended), hits)},
            "conformal": {
                "level": level,
                "coverage": float(there.mean()),
                "mean_size": float(many.mean()),
                "empty": int((many == 0).sum()),
                "sizes": {int(size): int((many == size).sum()) for size in edges} if len(edges) <= 40 else {},
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
        found = Scores.from_json(scores)
        if len(found.groups) != 1 or not found.count:
            raise WonderlandError("trust.json lacks its temperature, level or scores: it is damaged.")
        return TokenTrust(temperature, found, level)


@dataclass(frozen=True)
class Look:
    """What a model says of the positions of one batch: all (n,)."""

    log_probability: Tensor
    right: Tensor
    best: Tensor
    sizes: Tensor
    held: Tensor


def look(logits: Logits, batches: Iterable[Batch], temperature: float = 1.0, least: float = 0.0) -> Iterator[Look]:
    """Log-probability of the truth, whether the likeliest token is right, and the set of tokens above `least`."""
    for batch in batches:
        with torch.no_grad():
            y = batch["y"]
            real = y != -100
            seen = _seen(logits(batch)[real].cpu(), y[real].cpu(), temperature, least)
        yield seen  # outside, or gradients would stay off for whoever reads


def _twice(logits: Logits, batches: Iterable[Batch], temperature: float, least: float) -> Iterator[tuple[Look, Look]]:
    """What is seen without and with a temperature, from one reading."""
    for batch in batches:
        with torch.no_grad():
            y = batch["y"]
            real = y != -100
            found, truth = logits(batch)[real].cpu(), y[real].cpu()
            both = _seen(found, truth, 1.0, 0.0), _seen(found, truth, temperature, least)
        yield both


def _seen(found: Tensor, truth: Tensor, temperature: float, least: float) -> Look:
    found = (found.float() / temperature).log_softmax(-1)
    own = found.gather(1, truth[:, None])[:, 0]
    best, place = found.max(1)
    edge = math.log(least) if least > 0 else -math.inf
    return Look(own, place == truth, best.exp(), (found >= edge).sum(1), own >= edge)


def sample(logits: Logits, batches: Iterable[Batch]) -> tuple[np.ndarray, np.ndarray]:
    """Logits and truth at positions evenly spread, few enough to keep."""
    batches = list(batches)
    total = sum(int((batch["y"] != -100).sum()) for batch in batches)
    rows: list[np.ndarray] = []
    truth: list[np.ndarray] = []
    at, step = 0, 1
    for batch in batches:
        y = batch["y"].cpu()
        real = y != -100
        with torch.no_grad():
            found = logits(batch).cpu()[real]
        if not rows:
            step = max(1, total * found.shape[1] // NUMBERS)
        places = torch.arange((-at) % step, len(found), step)
        at += len(found)
        rows.append(found[places].double().numpy())
        truth.append(y[real][places].numpy())
    if not total:
        raise WonderlandError("The text has no token to predict: give at least two tokens.")
    return np.concatenate(rows), np.concatenate(truth)


def misfit_of(log_probability: Tensor) -> Tensor:
    """The log-odds against a token, from its log-probability."""
    value = log_probability.double().clamp(max=-1e-12)
    return torch.log(-torch.expm1(value)) - value


def _gap(confidence: np.ndarray, right: np.ndarray) -> float:
    return ece(np.stack([confidence, np.zeros_like(confidence)], 1), np.where(right, 0, 1))


def _bins(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> list[dict[str, Any]]:
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        {
            "confidence": float(confidence[place == index].mean()),
            "accuracy": float(right[place == index].mean()),
            "count": int((place == index).sum()),
        }
        for index in np.unique(place)
    ]
