"""Small runs of every kind of data and task, which are mutated and killed."""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

import wonderland
from tests.fuzz import subjects_of_media
from tests.kinds import test_battery as battery
from tests.kinds.graph.test_battery import TestGraphs
from tests.kinds.image.test_battery_boxes import TestBoxes, TestMasks
from tests.kinds.series.test_battery import TestManySeriesAndColumns, TestMonthly
from tests.kinds.test_environment import TestEnvironment
from tests.kinds.test_ratings import TestRatingGoal, TestRatings
from wonderland.kinds.image import annotated_recipe

STEPS = 4


@dataclass(frozen=True)
class Subject:
    """A run to mutate, and the path of data for predict and evaluate."""

    name: str
    folder: Path
    new: str


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


def _series(folder: Path) -> tuple[Path, Path]:
    return TestMonthly().make(folder)


def _labels(folder: Path) -> tuple[Path, Path]:
    """Texts with several labels each."""
    draw = np.random.default_rng(0)
    words = {"animals": "fox", "weather": "rain", "food": "bread"}
    chosen = [[topic for topic in words if draw.random() < 0.5] for _ in range(120)]
    texts = [" ".join(["day", str(i), "with", *(words[topic] for topic in topics)]) for i, topics in enumerate(chosen)]
    frame = pd.DataFrame({"text": texts, "topics": [";".join(topics) for topics in chosen]})
    frame.to_csv(folder / "texts.csv", index=False)
    frame.head(10).to_csv(folder / "new.csv", index=False)
    return folder / "texts.csv", folder / "new.csv"


def _grades(folder: Path) -> tuple[Path, Path]:
    """Texts with a number each."""
    draw = np.random.default_rng(0)
    grades = draw.integers(1, 6, 100)
    texts = [" ".join(draw.choice(["so", "very", "it", "was"], 6)) + " good" * int(grade) for grade in grades]
    frame = pd.DataFrame({"text": texts, "grade": grades + draw.normal(size=100).round(3)})
    frame.to_csv(folder / "texts.csv", index=False)
    frame.head(10).to_csv(folder / "new.csv", index=False)
    return folder / "texts.csv", folder / "new.csv"


def _listed(folder: Path) -> tuple[Path, Path]:
    """Images named in a table, with a number each."""
    draw = np.random.default_rng(0)
    (folder / "photos").mkdir()
    levels = draw.integers(20, 230, 60)
    for i, level in enumerate(levels):
        pixels = np.clip(draw.normal(level, 20, (9, 9)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{i}.png")
    frame = pd.DataFrame({"image": [f"photos/{i}.png" for i in range(60)], "level": levels / 10})
    frame.to_csv(folder / "list.csv", index=False)
    frame.head(6).to_csv(folder / "new.csv", index=False)
    return folder / "list.csv", folder / "new.csv"


RUNS: dict[str, tuple[Callable[[Path], tuple[Any, Any]], dict[str, Any]]] = {
    "table": (battery.TestTable().make, {}),
    "numbers": (_numbers, {}),
    "columns": (_dates_and_texts, {}),
    "blend": (battery.TestTable().make, {"blend": True}),
    "gp": (_numbers, {"model": "gp", "steps": None}),
    "image": (battery.TestImage().make, {}),
    "listed": (_listed, {}),
    "boxes": (TestBoxes().make, {}),
    "masks": (TestMasks().make, {}),
    "text": (battery.TestText().make, {}),
    "labels": (_labels, {}),
    "grades": (_grades, {}),
    "corpus": (battery.TestCorpus().make, {}),
    "pairs": (battery.TestPairs().make, {}),
    "nodes": (_nodes, {}),
    "links": (_links, {"kind": "graph"}),
    "graphs": (TestGraphs().make, {}),
    "series": (_series, TestMonthly.options),
    "panel": (TestManySeriesAndColumns().make, TestManySeriesAndColumns.options),
    "ratings": (TestRatings().make, TestRatings.options),
    "rating": (TestRatingGoal().make, TestRatingGoal.options),
    "environment": (TestEnvironment().make, TestEnvironment.options),
    "values": (TestEnvironment().make, {**TestEnvironment.options, "learner": "dqn"}),
    **subjects_of_media.RUNS,
}


def fit_options(name: str) -> dict[str, Any]:
    """The options of fit for a run."""
    return {"steps": STEPS, "threads": 1, **RUNS[name][1]}


@contextlib.contextmanager
def narrow() -> Iterator[None]:
    """Narrow networks for boxes and masks: faults of files do not depend on the width."""
    widths = annotated_recipe.WIDTHS
    annotated_recipe.WIDTHS = {"detection": (8, 8), "segmentation": (4, 4)}
    try:
        yield
    finally:
        annotated_recipe.WIDTHS = widths


def make_run(name: str, home: Path) -> Subject:
    """A finished run of a kind, with its checkpoint, under `home`; one that exists is used again."""
    make, _ = RUNS[name]
    folder = home / name
    if not (folder / "subject.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        source, new = make(folder)
        with narrow():
            wonderland.fit(source, out=folder / "run", **fit_options(name))
        (folder / "subject.json").write_text(json.dumps(str(new)))
    return Subject(name, folder / "run", json.loads((folder / "subject.json").read_text()))
