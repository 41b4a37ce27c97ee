"""Language modelling: next-token prediction."""

import math
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.models import packed
from wonderland.tasks.abilities.writing import Writing, text_frame
from wonderland.tasks.token_answers import TokenAnswers
from wonderland.tasks.token_trust import TokenTrust, token_measures
from wonderland.tasks.tokens import MAX_TOKENS, TokenTask
from wonderland.tasks.view import View
from wonderland.understand.format import number, percent


@part
class LanguageModelling(TokenTask):
    r"""Predict each token from the tokens before it.

    .. math:: L = -\frac1n \sum_i \log p(w_i \mid w_{<i})

    The fields of a batch are x and y, both (b, t): y is x shifted by one token, -100 where there is nothing to predict; for packed
    documents also `segments` (b, t), the index of the document of each token. Book: Alice 8.4; D2L 9.3.

    >>> LanguageModelling(vocab=4).arguments()
    {'vocab': 4}
    """

    name = "language"
    abilities = {"generate": Writing, "chat": Writing}  # noqa: RUF012
    writes_with = "stream"
    measured = MAX_TOKENS
    checked = 10_000

    def __init__(self, vocab: int):
        if not isinstance(vocab, int) or vocab < 2:
            raise WonderlandError(f"Language modelling needs a vocabulary of at least two tokens, not {vocab!r}.")
        self.vocab = self.outputs = vocab

    def arguments(self) -> dict[str, Any]:
        return {"vocab": self.vocab}

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """Logits (b, t, vocab); documents packed into one row do not see each other."""
        return packed(model, batch["x"], batch["segments"]) if "segments" in batch else model(batch["x"])

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Cross-entropy in nats, the mean over the tokens that are to be predicted."""
        y = batch["y"]
        mean = F.cross_entropy(self.logits(model, batch).flatten(0, 1), y.flatten(), ignore_index=-100)
        return mean, float((y != -100).sum())

    def measure(self, view: View) -> dict[str, float]:
        nats, count = self.summed(view, self.checked)
        return token_measures(nats, count, max(1, round(view.examples.bytes_of(view.part, count))))  # pyright: ignore

    def evaluate(self, view: View, trust: TokenTrust, level: float | None = None) -> dict[str, Any]:
        batches = list(view.batches(most=self.measured))
        size = view.examples.bytes_measured(view.part, batches, self.measured)  # pyright: ignore
        return trust.measure(lambda batch: self.logits(view.model, batch), batches, size, level)

    def predictions(self, view: View, trust: TokenTrust, level: float | None = None) -> Any:
        """One row for each document: its likelihood, and the conformal set of next tokens."""
        return text_frame(self, view, trust, level)

    def answers(self, trust: TokenTrust, level: float) -> nn.Module | str:
        return TokenAnswers(trust, level)

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """Of losses in nats per token; and every set holds as many tokens (100 are shown at most)."""
        shown = table["set"].map(len).to_numpy()
        if (np.minimum(exported["set"].sum(-1), 100) != shown).any():
            return math.inf
        same = np.isnan(exported["loss"]) & table["loss"].isna().to_numpy()
        return float(np.where(same, 0.0, np.abs(exported["loss"] - table["loss"].to_numpy())).max(initial=0.0))

    def curves(self) -> list[tuple[str, str, bool]]:
        return [
            ("loss", "nats per token", False),
            ("bits_per_byte", "bits per byte", False),
            ("perplexity", "perplexity", True),
        ]

    def facts(self, view: View, trust: TokenTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        metrics, sets = record["metrics"], record["conformal"]
        sentence = (
            f"{number(metrics['loss'])} nats per token on {number(record['rows'])} unseen tokens: "
            f"{number(metrics['bits_per_byte'])} bits per byte, perplexity {number(metrics['perplexity'])}, next-token accuracy "
            f"{percent(metrics['accuracy'])}; sets of next tokens cover {percent(sets['coverage'])}, "
            f"with {sets['mean_size']:.2f} tokens on average."
        )
        return self.token_facts(trust, record) | {
            "answers": "language modelling",
            "noun": "tokens",
            "verdict": sentence,
        }

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Generate text", f"wonderland generate {folder} --prompt {shlex.quote('Once upon a time')}"),
            ("Chat", f"wonderland chat {folder}"),
            ("Likelihood of a text", f"wonderland predict {folder} TEXT -o likely.csv"),
            ("Measure on other text", f"wonderland evaluate {folder} TEXT"),
        ]
