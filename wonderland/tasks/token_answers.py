"""Answers of an exported language model: calibrated probabilities and sets of the next token, and the loss of each text."""

import math
from typing import Any

import torch
from torch import Tensor, nn


class TokenAnswers(nn.Module):
    """Logits (b, t, vocab), tokens (b, t) and lengths (b,) as what `predict` says of texts, at one level; and the logits."""

    names = ("prediction", "probabilities", "set", "loss", "logits")
    classes = None
    reads_inputs = True
    says_more = True  # than the table of predict

    def __init__(self, trust: Any, level: float):
        super().__init__()
        self.temperature, self.threshold = trust.temperature, trust.threshold(level)

    def forward(self, logits: Tensor, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        rows = torch.arange(tokens.shape[0], device=tokens.device)
        probabilities = (logits[rows, lengths - 1].float() / self.temperature).softmax(-1)
        time = torch.arange(tokens.shape[1], device=tokens.device)
        following = tokens.index_select(1, torch.where(time + 1 < tokens.shape[1], time + 1, time))
        predicted = logits.log_softmax(-1).gather(2, following.unsqueeze(2)).squeeze(2).double()
        real = time < (lengths - 1).unsqueeze(1)
        nats = torch.where(real, predicted, torch.zeros_like(predicted)).sum(1)
        loss = torch.where(lengths > 1, -nats / (lengths - 1).clamp(min=1), math.nan)
        return probabilities.argmax(-1), probabilities, probabilities >= self.threshold, loss, logits
