"""Replay: experience that is learned from more than once, all alike or by how surprising it was."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError


class Replay:
    r"""The last `size` transitions. With `priority` above 0, drawn in proportion to a power of their last error.

    .. math:: P(i) \propto (|\delta_i| + 10^{-6})^\alpha, \qquad w_i = (n P(i))^{-\beta} / \max_j w_j

    Shapes: observations (n, features), actions and rewards (n,). Paper: Schaul et al., 2016.

    >>> replay = Replay(4, features=1)
    >>> replay.add(np.zeros((3, 1)), np.arange(3), np.ones(3), np.ones((3, 1)), np.zeros(3))
    >>> sorted(set(replay.draw(np.random.default_rng(0), 50)[0].tolist()))
    [0, 1, 2]
    """

    def __init__(self, size: int, features: int, *, priority: float = 0.0):
        if size < 1:
            raise WonderlandError("A replay holds at least one transition.")
        self.size, self.priority, self.count, self.place = size, priority, 0, 0
        self.fields = {
            "seen": torch.zeros(size, features),
            "action": torch.zeros(size, dtype=torch.long),
            "reward": torch.zeros(size),
            "next": torch.zeros(size, features),
            "factor": torch.zeros(size),
            "weight": torch.zeros(size, dtype=torch.float64),
        }
        self.largest = 1.0

    def add(
        self, seen: np.ndarray, action: np.ndarray, reward: np.ndarray, following: np.ndarray, factor: np.ndarray
    ) -> None:
        """Remember transitions, in the place of the oldest. `factor` is that of the value of what follows: 0 after an end."""
        rows = torch.from_numpy((self.place + np.arange(len(seen))) % self.size)
        for name, value in (
            ("seen", seen),
            ("action", action),
            ("reward", reward),
            ("next", following),
            ("factor", factor),
        ):
            self.fields[name][rows] = torch.as_tensor(value).to(self.fields[name].dtype)
        self.fields["weight"][rows] = self.largest
        self.place = (self.place + len(seen)) % self.size
        self.count = min(self.size, self.count + len(seen))

    def draw(self, chance: np.random.Generator, rows: int, correct: float = 1.0) -> tuple[Tensor, Tensor]:
        """Row numbers (rows,), and the weights that undo how they were drawn."""
        if not self.priority:
            return torch.from_numpy(chance.integers(self.count, size=rows)), torch.ones(rows)
        weights = self.fields["weight"][: self.count].numpy()
        total = np.cumsum(weights)
        index = np.searchsorted(total, chance.random(rows) * total[-1], side="right").clip(max=self.count - 1)
        importance = (self.count * weights[index] / total[-1]) ** -correct
        return torch.from_numpy(index), torch.from_numpy(importance / importance.max()).float()

    def surprise(self, rows: Tensor, errors: Tensor) -> None:
        """How wrong the values of these rows were."""
        if self.priority:
            weights = (errors.double().abs() + 1e-6) ** self.priority
            self.fields["weight"][rows] = weights
            self.largest = max(self.largest, float(weights.max()))

    def state_dict(self) -> dict[str, Any]:
        """All that is remembered."""
        kept = {name: value[: self.count].clone() for name, value in self.fields.items()}
        return {"fields": kept, "place": self.place, "count": self.count, "largest": self.largest}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Back from `state_dict`."""
        self.place, self.count, self.largest = saved["place"], saved["count"], saved["largest"]
        for name, value in saved["fields"].items():
            self.fields[name][: self.count] = value
