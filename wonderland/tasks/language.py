"""Language modelling: the next token, from those before it."""

import math
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError, part
from wonderland.models import packed


@part
class LanguageModelling(Part):
    r"""Predict each token from those before it.

    .. math:: L = -\frac1n \sum_i \log p(w_i \mid w_{<i})

    A batch is (x, y), both (b, t): y is x one place on, -100 where there is nothing to predict. For packed documents x is
    (b, 2, t): tokens and segments. Book: Alice 8.4; D2L 9.3.

    >>> LanguageModelling(vocab=4).measures(nats=math.log(4) * 10, tokens=10, size=20)["perplexity"]
    4.0
    """

    name = "language"
    watch = "loss"

    def __init__(self, vocab: int):
        if not isinstance(vocab, int) or vocab < 2:
            raise WonderlandError(f"Language modelling needs a vocabulary of at least two tokens, not {vocab!r}.")
        self.vocab = self.outputs = vocab

    def arguments(self) -> dict[str, Any]:
        """What it takes to build this task again."""
        return {"vocab": self.vocab}

    def logits(self, model: nn.Module, x: Tensor) -> Tensor:
        """(b, t, vocab), each document of a packed row by itself."""
        return packed(model, x[:, 0], x[:, 1]) if x.dim() == 3 else model(x)

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Cross-entropy in nats, the mean over the tokens that are to be predicted."""
        x, y = batch
        return F.cross_entropy(self.logits(model, x).flatten(0, 1), y.flatten(), ignore_index=-100)

    def measures(self, nats: float, tokens: int, size: int) -> dict[str, float]:
        """Loss in nats a token, bits a byte of text, and perplexity, from a sum of nats."""
        loss = nats / max(1, tokens)
        return {
            "loss": loss,
            "bits_per_byte": nats / max(1, size) / math.log(2),
            "perplexity": round(math.exp(min(loss, 700.0)), 12),
        }
