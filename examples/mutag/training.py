"""MUTAG in folds: training of GIN, with the accuracy on held-out graphs after every epoch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from wonderland.core import mix, permutation
from wonderland.core.graph_input import GraphInput
from wonderland.kinds import open as open_data
from wonderland.kinds.graph.examples import GraphExamples
from wonderland.models.graph_net import WholeGraphNet

FOLDS = 10


@dataclass(frozen=True)
class Setting:
    """What the paper of GIN searches over: width, size of a batch, dropout."""

    dim: int = 32
    batch: int = 32
    dropout: float = 0.0

    def __str__(self) -> str:
        return f"width {self.dim}, batch {self.batch}, dropout {self.dropout:g}"


@dataclass(frozen=True)
class Molecules:
    """All graphs, with the kind of each atom one-hot and nothing of the bonds but that they are there, and their classes."""

    examples: GraphExamples
    y: torch.Tensor

    def batch(self, rows: np.ndarray) -> GraphInput:
        """Some graphs as one."""
        return self.examples.given(rows)


def read(folder: Path) -> Molecules:
    """The files of MUTAG."""
    data: Any = open_data(folder)
    assert data.y is not None
    codes = np.unique(data.node_frame.iloc[:, 0], return_inverse=True)[1]
    x = F.one_hot(torch.from_numpy(codes)).float()
    examples = GraphExamples("graphs", data.graph, x, None, data.rows, data.y, "graph")
    return Molecules(examples, torch.as_tensor(data.y))


def folds(y: np.ndarray, count: int, seed: int) -> np.ndarray:
    """The fold of each row (n,), classes spread evenly."""
    fold = np.empty(len(y), np.int64)
    for code in np.unique(y):
        rows = np.flatnonzero(y == code)
        fold[rows[permutation(mix(seed, int(code)), 0, len(rows))]] = np.arange(len(rows)) % count
    return fold


def train(data: Molecules, rows: np.ndarray, held: np.ndarray, setting: Setting, epochs: int, seed: int) -> np.ndarray:
    """Whether each held-out graph is right after each epoch (epochs, held).

    As in the paper: four layers of GIN-0 with sums read out of every layer, Adam 0.01 halved every 50 epochs.
    """
    torch.manual_seed(seed)
    model = WholeGraphNet(
        data.examples.features.shape[1],
        2,
        layer="gin",
        dim=setting.dim,
        depth=4,
        dropout=setting.dropout,
        readout=["sum"],
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 50, 0.5)
    asked, right = data.batch(held), []
    for epoch in range(epochs):
        model.train()
        order = rows[permutation(seed, epoch, len(rows))]
        for first in range(0, len(order), setting.batch):
            piece = order[first : first + setting.batch]
            if len(piece) > 1:
                optimizer.zero_grad()
                F.cross_entropy(model(data.batch(piece)), data.y[piece]).backward()
                optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            right.append((model(asked).argmax(1) == data.y[held]).numpy())
    return np.stack(right)
