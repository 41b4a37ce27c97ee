"""Energies of solvation of 642 molecules by an MPNN, beside ridge regression on fingerprints and on counts of atoms."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from examples.lab import DATA, Claim, above, below, run, spread, table
from examples.lab.files import find
from wonderland.core import mix, need, permutation
from wonderland.kinds import open as open_data
from wonderland.kinds.graph.examples import GraphExamples
from wonderland.kinds.graph.features import Columns
from wonderland.kinds.graph.molecules import counted_atoms
from wonderland.models import MPNN

SEEDS, EPOCHS, BATCH = 2, 60, 32
STATED = 1.2


@dataclass(frozen=True)
class Parts:
    """Numbers of the training, validation and test molecules."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    @staticmethod
    def of(count: int, seed: int) -> "Parts":
        """Eight, one and one tenth, at random."""
        order = permutation(mix(seed, 7), 0, count)
        return Parts(*np.split(order, [count * 8 // 10, count * 9 // 10]))


class Molecules:
    """The molecules of FreeSolv as graphs, as counts of atoms, and as fingerprints, and their energies in kcal/mol."""

    def __init__(self, path: Path):
        self.data: Any = open_data(path, target="expt")
        assert self.data.y is not None
        self.y = self.data.y.astype(np.float64)
        self.atoms = counted_atoms(self.data.tables)[0]
        chem = need("rdkit.Chem", extra="molecules", why="for fingerprints")
        maker = need("rdkit.Chem.rdFingerprintGenerator", extra="molecules", why="for fingerprints").GetMorganGenerator(
            radius=2, fpSize=2048
        )
        self.fingerprints = np.stack([
            maker.GetCountFingerprintAsNumPy(chem.MolFromSmiles(text)).astype(np.float64) for text in pd.read_csv(path)["smiles"]
        ])  # fmt: skip

    def examples(self, rows: np.ndarray) -> GraphExamples:
        """All graphs, their columns as numbers by what the training molecules hold."""
        nodes = np.flatnonzero(np.isin(self.data.graph.node_graph.numpy(), rows))
        atoms = Columns.fit(self.data.node_frame, nodes, "nodes")
        used = np.unique(self.data.edge_row[np.isin(self.data.graph.edges[1].numpy(), nodes)])
        bonds = Columns.fit(self.data.edge_frame, used, "edges")
        x = atoms.encode(self.data.node_frame, self.data.graph.nodes, "nodes")
        frame = self.data.edge_frame.iloc[self.data.edge_row].reset_index(drop=True)
        edge = bonds.encode(frame, len(frame), "edges")
        return GraphExamples("graphs", self.data.graph, x, edge, self.data.rows, self.y, "graph")  # pyright: ignore


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def ridge(x: np.ndarray, y: np.ndarray, parts: Parts) -> float:
    """Ridge regression, its penalty chosen on the validation part."""
    mean, best = y[parts.train].mean(), (np.inf, 0.0)
    centre = x[parts.train].mean(0)
    a = x[parts.train] - centre
    values, vectors = np.linalg.eigh(a @ a.T)
    for penalty in 10.0 ** np.arange(-2, 5):
        dual = vectors @ ((vectors.T @ (y[parts.train] - mean)) / (values.clip(0) + penalty))
        predicted = (x - centre) @ (a.T @ dual) + mean
        best = min(
            best, (rmse(predicted[parts.validation], y[parts.validation]), rmse(predicted[parts.test], y[parts.test]))
        )
    return best[1]


def train(molecules: Molecules, parts: Parts, seed: int, epochs: int = EPOCHS) -> float:
    """The error on the test part of the weights that are best on the validation part."""
    torch.manual_seed(seed)
    examples = molecules.examples(parts.train)
    mean, scale = molecules.y[parts.train].mean(), molecules.y[parts.train].std()
    y = torch.as_tensor((molecules.y - mean) / scale, dtype=torch.float32)
    assert examples.edge is not None
    model = MPNN(examples.features.shape[1], 1, dim=64, rounds=3, edge_dim=examples.edge.shape[1], dropout=0.1)
    steps = epochs * (len(parts.train) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    best, held, asked = (np.inf, 0.0), examples.given(parts.validation), examples.given(parts.test)
    for epoch in range(epochs):
        model.train()
        order = parts.train[permutation(seed, epoch, len(parts.train))]
        for first in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[first : first + BATCH]
            optimizer.zero_grad()
            F.mse_loss(model(examples.given(rows))[:, 0], y[torch.as_tensor(rows)]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            validation, test = (model(given)[:, 0].double().numpy() * scale + mean for given in (held, asked))
        best = min(best, (rmse(validation, molecules.y[parts.validation]), rmse(test, molecules.y[parts.test])))
    return best[1]


def lab(data: str | None = None, seeds: int = SEEDS, epochs: int = EPOCHS) -> tuple[list[Claim], str, dict[str, str]]:
    """Random splits, the same for all three."""
    molecules = Molecules(find("freesolv.csv", data))
    scores: dict[str, list[float]] = {
        "MPNN": [],
        "ridge on fingerprints": [],
        "ridge on counts of atoms": [],
        "mean": [],
    }
    for seed in range(seeds):
        parts = Parts.of(len(molecules.y), seed)
        scores["MPNN"].append(train(molecules, parts, seed, epochs))
        scores["ridge on fingerprints"].append(ridge(molecules.fingerprints, molecules.y, parts))
        scores["ridge on counts of atoms"].append(ridge(molecules.atoms, molecules.y, parts))
        scores["mean"].append(rmse(np.full(len(parts.test), molecules.y[parts.train].mean()), molecules.y[parts.test]))
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    least = min(means["ridge on fingerprints"], means["ridge on counts of atoms"])
    claims = [
        below("error of the MPNN", means["MPNN"], STATED),
        above("the better ridge less the MPNN", least - means["MPNN"], 0.3),
    ]
    rows = [(name, spread(values)) for name, values in scores.items()]
    return claims, table(("", "root mean squared error, kcal/mol"), rows), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    more = {"--seeds": {"type": int, "default": SEEDS}, "--epochs": {"type": int, "default": EPOCHS}}
    return run("freesolv", __doc__, lab, given, {**DATA, **more})


if __name__ == "__main__":
    sys.exit(main())
