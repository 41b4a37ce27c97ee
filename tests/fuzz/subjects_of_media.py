"""Small runs of the kinds that read sound, clips, signals, words and molecules, that generate, and that keep draws of their weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from tests.kinds import test_battery as battery
from tests.kinds.answers.test_kind import TestAnswers
from tests.kinds.clip.test_clips import TestFoldersOfFrames
from tests.kinds.graph.graphs import link_folder, node_folder
from tests.kinds.matches.test_kind import TestMatches
from tests.kinds.signal.test_battery import TestFileOfSeries, TestLongTableWithANetwork
from tests.kinds.sound.test_battery import TestClassFolders, TestTranscripts, TestWavesWithNumbers
from tests.kinds.tags.test_kind import TestTags

MODELS = {"wave": "WaveConvNet(dim=8, depth=2)", "signals": "InceptionTime(dim=4, depth=3)", "clip": "ClipConvNet(dim=4)",
          "images": "FlowMatching(net=VelocityUNet(channels=3, classes=2, dim=8))", "matches": "MatchEncoder(dim=8)"}  # fmt: skip


def _people(folder: Path) -> tuple[Path, Path]:
    return node_folder(folder / "people"), node_folder(folder / "others", seed=1)


def _friends(folder: Path) -> tuple[Path, Path]:
    source = link_folder(folder / "friends")
    pd.read_csv(source / "edges.csv").head(20).to_csv(folder / "new.csv", index=False)
    return source, folder / "new.csv"


def _two_texts(folder: Path) -> tuple[Path, Path]:
    """Pairs of texts with a class."""
    rows = [(f"the {a} sat {i}", f"a {b} sat there", "same" if a == b else "other") for i, (a, b) in enumerate([("fox", "fox"), ("fox", "cow"), ("cow", "cow"), ("cow", "fox")] * 25)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["premise", "hypothesis", "label"])
    frame.to_csv(folder / "pairs.csv", index=False)
    frame.head(8).to_csv(folder / "new.csv", index=False)
    return folder / "pairs.csv", folder / "new.csv"


RUNS: dict[str, tuple[Callable[[Path], tuple[Any, Any]], dict[str, Any]]] = {
    "answers": (TestAnswers().make, {}),
    "clip": (TestFoldersOfFrames().make, {"model": MODELS["clip"]}),
    "drawn-images": (battery.TestDrawnImages().make, {"task": "generate", "model": MODELS["images"]}),
    "drawn-rows": (battery.TestTable().make, {"task": "generate"}),
    "drawn-vae": (battery.TestTable().make, {"task": "generate", "model": "VAE"}),
    "friends": (_friends, {}),
    "inductive": (_people, {"inductive": True}),
    "laplace": (battery.TestTable().make, {"uncertainty": "laplace"}),
    "matches": (TestMatches().make, {**TestMatches.options, "model": MODELS["matches"]}),
    "neighbours": (_people, {"batches": "neighbours"}),
    "signal": (TestFileOfSeries().make, {"steps": None}),
    "signals": (TestLongTableWithANetwork().make, {**TestLongTableWithANetwork.options, "model": MODELS["signals"]}),
    "sound": (TestClassFolders().make, {}),
    "swag": (battery.TestTable().make, {"uncertainty": "swag"}),
    "tags": (TestTags().make, {}),
    "transcripts": (TestTranscripts().make, {}),
    "two-texts": (_two_texts, {}),
    "wave": (TestWavesWithNumbers().make, {**TestWavesWithNumbers.options, "model": MODELS["wave"]}),
}
