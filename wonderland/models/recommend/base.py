"""What recommenders have in common: rows of a user, an item and the items before it."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Part, WonderlandError


class Recommender(Part, nn.Module, ABC):
    """Scores of items. A row of x is (user, item, history): codes from 1, 0 for unknown; the newest of the history comes last.

    With the goal "ranking" every item is scored from user and history, whatever stands in the place of the item; with
    "rating" the item of the row is, as one number.

    Shapes: x (b, 2 + h) of whole numbers -> (b, items + 1), or (b, 1).
    """

    def __init__(self, users: int, items: int, goal: str = "ranking"):
        super().__init__()
        if goal not in ("ranking", "rating"):
            raise WonderlandError(f"A recommender has the goal 'ranking' or 'rating', not {goal!r}.")
        if users < 1 or items < 1:
            raise WonderlandError("A recommender needs at least one user and one item.")
        self.users, self.items, self.goal = users, items, goal

    @abstractmethod
    def score(self, x: Tensor, items: Tensor) -> Tensor:
        """Scores (b, k) of items: (k,) for the same in every row, or (b, 1)."""

    def forward(self, x: Tensor) -> Tensor:
        if self.goal == "rating":
            return self.score(x, x[:, 1:2])
        return self.score(x, torch.arange(self.items + 1, device=x.device))

    def item_vectors(self) -> Tensor | None:
        """A vector for each item (items + 1, d), by which items are alike; None where there is none."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Embedding) and module.num_embeddings == self.items + 1 and name.endswith("item"):
                return module.weight.detach()
        return None


def embedding(count: int, dim: int, scale: float = 0.05) -> nn.Embedding:
    """Vectors for codes from 0 to count."""
    table = nn.Embedding(count + 1, dim)
    nn.init.normal_(table.weight, std=scale)
    return table


def history_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """The history (b, h), and where it is real."""
    history = x[:, 2:]
    return history, history > 0


def mean_of(vectors: Any, real: Tensor) -> Tensor:
    """The mean of real vectors (b, h, d) over the root of their number: (b, d), 0 where there are none."""
    weight = real[..., None].to(vectors.dtype)
    return (vectors * weight).sum(1) / weight.sum(1).clamp_min(1).sqrt()
