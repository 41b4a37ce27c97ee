"""Answers of an exported model that writes down what is said: log-probabilities of the tokens of each frame."""

from torch import Tensor, nn


class FrameAnswers(nn.Module):
    """Logits (b, frames, tokens) as log-probabilities, and the likeliest token of each frame; token 0 is the blank.

    A search over them is left to the program that reads them: tokens without repetitions and blanks are the simplest.
    """

    names = ("log_probabilities", "tokens")
    classes = None

    def forward(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        logs = logits.log_softmax(-1)
        return logs, logs.argmax(-1)
