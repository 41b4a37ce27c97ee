"""Base class of tasks that predict tokens: loss in nats, and calibration of next tokens."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core.batch import Batch
from wonderland.tasks.task import Task
from wonderland.tasks.token_trust import TokenTrust
from wonderland.tasks.view import View

MAX_TOKENS = 200_000  # tokens of a part that calibration and test use at most


class TokenTask(Task):
    """The next token of a text. `y` of a batch is -100 where there is nothing to predict."""

    watch = "loss"
    unit = "token"
    vocab: int
    writes_with: str  # name of the method of the model that generation calls
    checked: int  # tokens, or rows of tokens, that an evaluation during training uses at most

    @abstractmethod
    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """(b, t, vocab)."""

    def model_arguments(self) -> dict[str, Any]:
        return {"vocab": self.vocab}

    def summed(self, view: View, most: int | None) -> tuple[float, int]:
        """The summed loss in nats and the number of tokens of a part, or of at most `most` of it."""
        nats, count = 0.0, 0
        with torch.no_grad():
            for batch in view.batches(most=most):
                logits, y = self.logits(view.model, batch), batch["y"]
                nats += float(F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100, reduction="sum"))
                count += int((y != -100).sum())
        return nats, count

    def calibrate(self, validation: View, calibration: View, level: float) -> TokenTrust:
        return TokenTrust.fit(
            lambda batch: self.logits(validation.model, batch),
            validation.batches(most=self.measured),
            calibration.batches(most=self.measured),
            level,
        )

    measured: int | None = None  # tokens of a part that calibration uses at most; None for all

    def trust(self, saved: Any) -> TokenTrust:
        return TokenTrust.from_json(saved)

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        if getattr(model, "vocab", None) != self.vocab or not callable(getattr(model, self.writes_with, None)):
            return f"cannot generate: it needs an attribute vocab, {self.vocab} here, and a method {self.writes_with}"
        return None

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        if encoder.tokenizer.vocab > self.vocab:
            return "preprocess.json has another vocabulary than config.json: the two do not belong together."
        if getattr(model, "vocab", None) != self.vocab:
            return "The model has another vocabulary than its task: config.json is damaged."
        return None

    def token_facts(self, trust: TokenTrust, record: Mapping[str, Any]) -> dict[str, Any]:
        """Reliability and sets of next tokens, for the report."""
        return {
            "choices": "tokens",
            "reliability": record["reliability"] | {
                "ece_before": record["ece"]["before"],
                "ece_after": record["ece"]["after"],
                "temperature": trust.temperature,
            },
            "conformal": record["conformal"],
        }  # fmt: skip
