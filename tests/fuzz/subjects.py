"""What is mutated: one small run of every kind of data, checkpoints of published families, and tokenizers."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import wonderland
from tests.kinds import test_battery as battery
from tests.kinds.test_environment import TestEnvironment
from tests.kinds.test_ratings import TestRatingGoal, TestRatings

STEPS = 4


@dataclass(frozen=True)
class Subject:
    """A folder to mutate. `kind` is "run", "checkpoint" or "tokenizer"; `new` is data for predict and evaluate."""

    name: str
    kind: str
    folder: Path
    new: str = ""


def _numbers(folder: Path) -> tuple[Path, Path]:
    frame, new = battery.TestNumbers().make(folder)
    frame.to_csv(folder / "rows.csv", index=False)
    new.to_csv(folder / "new.csv", index=False)
    return folder / "rows.csv", folder / "new.csv"


def _dates_and_texts(folder: Path) -> tuple[Path, Path]:
    """A table with every kind of column."""
    draw = np.random.default_rng(2)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 900, 150), unit="D")
    words = [" ".join(draw.choice(["red", "old", "shop", "bus", "late"], 12)) + f" {i}" for i in range(150)]
    frame = pd.DataFrame({"day": days.strftime("%Y-%m-%d"), "note": words, "paid": draw.choice(["yes", "no"], 150)})
    frame["city"] = draw.choice(["Oslo", "Rome", "Lima"], 150)
    frame["y"] = draw.normal(size=150) + (frame["city"] == "Rome")
    frame.loc[::9, "paid"] = None
    frame.to_csv(folder / "rows.csv", index=False)
    frame.head(10).to_csv(folder / "new.csv", index=False)
    return folder / "rows.csv", folder / "new.csv"


def _nodes(folder: Path) -> tuple[Path, Path]:
    draw = np.random.default_rng(0)
    group = np.repeat([0, 1], 30)
    pairs = [(a, b) for a in range(60) for b in range(a) if draw.random() < (0.15 if group[a] == group[b] else 0.02)]
    nodes = pd.DataFrame({"id": range(60), "size": draw.normal(group, 1.0), "shape": draw.choice(["a", "b"], 60)})
    nodes["label"] = np.where(group == 1, "odd", "even")
    (folder / "graph").mkdir()
    nodes.to_csv(folder / "graph" / "nodes.csv", index=False)
    pd.DataFrame(pairs, columns=["source", "target"]).to_csv(folder / "graph" / "edges.csv", index=False)
    return folder / "graph", folder / "graph"


def _links(folder: Path) -> tuple[Path, Path]:
    source, _ = _nodes(folder)
    shutil.copy(source / "edges.csv", folder / "links.csv")
    pd.read_csv(folder / "links.csv").head(40).to_csv(folder / "new.csv", index=False)
    return folder / "links.csv", folder / "new.csv"


RUNS: dict[str, tuple[Callable[[Path], tuple[Any, Any]], dict[str, Any]]] = {
    "table": (battery.TestTable().make, {}),
    "numbers": (_numbers, {}),
    "columns": (_dates_and_texts, {}),
    "image": (battery.TestImage().make, {}),
    "text": (battery.TestText().make, {}),
    "corpus": (battery.TestCorpus().make, {}),
    "pairs": (battery.TestPairs().make, {}),
    "nodes": (_nodes, {}),
    "links": (_links, {"kind": "graph"}),
    "ratings": (TestRatings().make, TestRatings.options),
    "rating": (TestRatingGoal().make, TestRatingGoal.options),
    "environment": (TestEnvironment().make, TestEnvironment.options),
}


def make_run(name: str, home: Path) -> Subject:
    """A finished run of a kind, with its checkpoint, under `home`; one that exists is used again."""
    make, options = RUNS[name]
    folder = home / name
    if not (folder / "subject.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        source, new = make(folder)
        wonderland.fit(source, out=folder / "run", steps=STEPS, threads=1, **options)
        (folder / "subject.json").write_text(json.dumps(str(new)))
    return Subject(name, "run", folder / "run", json.loads((folder / "subject.json").read_text()))
