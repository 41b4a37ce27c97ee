"""Held-out citations of Cora by the default recipe for links, beside common neighbours, Adamic-Adar and others."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import wonderland
from examples.lab import DATA, Claim, above, run, table
from examples.lab.files import find
from wonderland.kinds import KINDS
from wonderland.kinds import open as open_data
from wonderland.kinds.graph.baselines import link_baselines
from wonderland.kinds.graph.tables import Tables

STATED = 0.78


def read(path: Path) -> Tables:
    """The papers with their words, and who cites whom; the topics are left out."""
    data = np.load(path)
    nodes, wide = int(data["num_nodes"]), int(data["num_features"])
    words = np.zeros((nodes, wide), np.float32)
    words[data["feature_row"], data["feature_col"]] = data["feature_value"]
    source, target = data["edge_index"]
    once = source < target
    edges = pd.DataFrame({"source": source[once], "target": target[once]})
    return Tables(pd.DataFrame({"id": np.arange(nodes)}), edges, features=words)


def lab(data: str | None = None, seeds: int = 1, steps: int | None = None) -> tuple[list[Claim], str, dict[str, str]]:
    """A fifth of the citations and as many pairs without one are held out, and are no messages."""
    tables, ours = read(find("cora.npz", data)), []
    beside: dict[str, list[float]] = {}
    kind, data_set = KINDS["graph"], open_data(tables, of="links")
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            more: Any = {} if steps is None else {"steps": steps}
            ours.append(wonderland.fit(tables, of="links", out=folder, seed=seed, threads=1, **more).metrics)
        parts = kind.split(data_set, test=0.2, seed=seed)
        examples = kind.encoder(data_set, parts).examples(data_set)
        for each in link_baselines(examples, parts):
            beside.setdefault(each["name"], []).append(each["value"])
    accuracy = float(np.mean([each["accuracy"] for each in ours]))
    rows = [("this model", f"{accuracy:.4f}"), *((name, f"{np.mean(values):.4f}") for name, values in beside.items())]
    best = max(float(np.mean(values)) for values in beside.values())
    claims = [
        above("right pairs", accuracy, STATED),
        above("the model less the best of the others", accuracy - best, 0.05),
    ]
    return claims, table(("", "right"), rows), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    more = {"--seeds": {"type": int, "default": 1}, "--steps": {"type": int, "default": None}}
    return run("links", __doc__, lab, given, {**DATA, **more})


if __name__ == "__main__":
    sys.exit(main())
