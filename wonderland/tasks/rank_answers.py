"""Answers of an exported model that recommends: the probability of each item that is not excluded, and the best ones."""

import torch
from torch import Tensor, nn


class RankAnswers(nn.Module):
    """Scores (b, items + 1), place 0 for no item, and items already chosen (b, s), 0 for none, as what `Ranking.predictions` computes.

    `best` has the codes of the ten most probable items; items that are excluded have the probability 0.
    """

    names = ("best", "probabilities")
    classes = None
    reads_inputs = True

    def __init__(self, items: int, top: int):
        super().__init__()
        self.top = min(top, items)

    def forward(self, scores: Tensor, codes: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        kept = torch.ones_like(scores).scatter(1, seen, 0.0)
        kept = torch.cat([torch.zeros_like(kept[:, :1]), kept[:, 1:]], 1)
        share = torch.where(kept > 0, scores, torch.full_like(scores, -torch.inf)).softmax(-1)
        return share.topk(self.top, -1).indices, share
