"""Answers of an exported model that finds the answer to a question in a text: the most probable parts of the text, and that there is none."""

from typing import Any

import torch
from torch import Tensor, nn


class SpanAnswers(nn.Module):
    """What `Answering.predictions` says of questions, as places of words in the row: the first word of the question is word 0.

    `spans` (rows, k, 2) are the first and the last word of the most probable answers, best first, `probabilities` (rows, k) theirs, `none`
    (rows,) that of no answer, `answer` (rows, 2) the one that is given, -1 for none.
    """

    names = ("answer", "probability", "spans", "probabilities", "none")
    classes = None

    def __init__(self, task: Any, trust: Any, count: int):
        super().__init__()
        self.absent, self.temperature, self.least, self.count = task.absent, trust.temperature, trust.absent, count

    def of_model(self, model: Any, x: Tensor) -> tuple[Tensor, ...]:
        """From rows of a question and its text (b, t, features)."""
        ends, none = model.scores(x)
        ends, none = ends / self.temperature, none / self.temperature
        if not self.absent:
            none = none - 1e9
        total = model.log_partition(ends, none)
        joint = (ends[..., :1] + following(ends[..., 1], model.longest)).flatten(1)
        joint = torch.cat([joint, torch.full_like(joint[:, :1], -torch.inf).expand(-1, self.count)], 1)
        values, places = joint.topk(self.count, 1)
        start = torch.div(places, model.longest, rounding_mode="floor")
        spans = torch.stack([start, start + places % model.longest], 2)
        chances = (values.double() - total.double()[:, None]).exp()
        spans = torch.where(torch.isfinite(values)[:, :, None], spans, torch.full_like(spans, -1))
        absent = (none.double() - total.double()).exp()
        given, best = spans[:, 0], chances[:, 0]
        if self.absent:
            without = absent >= self.least
            given = torch.where(without[:, None], torch.full_like(given, -1), given)
            best = torch.where(without, absent, best)
        return given, best, spans, chances, absent


def following(values: Tensor, count: int) -> Tensor:
    """Each value and those after it, minus infinity past the end: (b, t) -> (b, t, count), for any t.

    >>> following(torch.tensor([[1.0, 2.0]]), 2)
    tensor([[[1., 2.],
             [2., -inf]]])
    """
    padded = torch.cat([values, torch.full_like(values[:, :1], -torch.inf).expand(-1, count)], 1)
    place = torch.arange(values.shape[1], device=values.device)[:, None] + torch.arange(count, device=values.device)
    return padded[:, place]
