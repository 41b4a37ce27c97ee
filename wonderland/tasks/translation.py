"""Translation: a text to be written for one that is read."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError, part
from wonderland.tasks.language import LanguageModelling

PAD = 0


@part
class Translation(Part):
    r"""Predict each token of a target from the source and the tokens before it.

    .. math:: L = -\frac1n \sum_i \log p(y_i \mid y_{<i}, x)

    Rows of x hold the source in their first `read` places and what the writer is given behind them, 0 where there is
    nothing; y (b, write) is what it should write, -100 where nothing. Book: Alice 11.1; D2L 10.7.

    >>> Translation(vocab=9, read=4).arguments()
    {'vocab': 9, 'read': 4, 'label_smoothing': 0.0}
    """

    name = "translation"
    watch = "loss"

    def __init__(self, vocab: int, read: int, label_smoothing: float | int = 0.0):
        if not isinstance(vocab, int) or not isinstance(read, int) or vocab < 4 or read < 1:
            raise WonderlandError(
                f"Translation needs at least four tokens and one to read, not {vocab!r} and {read!r}."
            )
        self.vocab, self.outputs, self.read, self.label_smoothing = vocab, vocab, read, label_smoothing

    def arguments(self) -> dict[str, Any]:
        """What it takes to build this task again."""
        return {"vocab": self.vocab, "read": self.read, "label_smoothing": self.label_smoothing}

    def logits(self, model: nn.Module, x: Tensor) -> Tensor:
        """(b, write, vocab)."""
        source, given = x[:, : self.read], x[:, self.read :]
        real = given != PAD
        real[:, 0] = True  # T5 begins with the padding token
        return model(source, given, source != PAD, real)

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Cross-entropy in nats, the mean over the tokens that are to be written."""
        x, y = batch
        found = self.logits(model, x).flatten(0, 1)
        return F.cross_entropy(found, y.flatten(), ignore_index=-100, label_smoothing=self.label_smoothing)

    def measures(self, nats: float, tokens: int, size: int) -> dict[str, float]:
        """As for language modelling: nats, bits a byte and perplexity of what is written."""
        return LanguageModelling(self.vocab).measures(nats, tokens, size)
