"""Answers of an exported model that tags words: the best tags, and the calibrated probability of each."""

from typing import Any

import torch
from torch import Tensor, nn


class TagAnswers(nn.Module):
    """What `Tagging.predictions` says of the words of sentences, at one level; the model is asked in here, since a chain has its own best path.

    `tags` (rows, words) are the places of the tags in the list of classes, -1 after the end of a sentence.
    """

    names = ("tags", "probabilities", "set")
    classes = None

    def __init__(self, trust: Any, level: float):
        super().__init__()
        self.temperature, self.threshold = trust.temperature, trust.threshold(level)

    def of_model(self, model: Any, x: Tensor) -> tuple[Tensor, ...]:
        """From features of words (b, t, features)."""
        real = x.amax(2) > 0
        if callable(getattr(model, "tagged", None)):
            tags, marginals = model.tagged(x, self.temperature)
            chances = marginals.exp()
        else:
            chances = (model(x) / self.temperature).softmax(-1)
            tags = chances.argmax(-1)
        tags = torch.where(real, tags, torch.full_like(tags, -1))
        chances = torch.where(real.unsqueeze(2), chances, torch.zeros_like(chances))
        own = torch.arange(chances.shape[2], device=x.device) == tags.unsqueeze(2)
        inside = chances >= self.threshold
        return tags, chances, inside | (own & ~inside.any(2, keepdim=True))
