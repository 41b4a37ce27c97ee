"""Every kind of data goes through the battery, and so does a toy kind that is written down here."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.golden.runs import Sources
from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from tests.kinds.toy import ToyKind
from wonderland import kinds


class TestTable(Battery):
    kind = "table"

    def make(self, folder: Path):
        draw = np.random.default_rng(0)
        frame = pd.DataFrame({"age": draw.normal(size=120), "city": draw.choice(["Oslo", "Rome", "Lima"], 120)})
        frame["answer"] = np.where(frame["age"] + (frame["city"] == "Rome") > 0.3, "yes", "no")
        frame.loc[::17, "age"] = np.nan
        frame.to_csv(folder / "rows.csv", index=False)
        frame.head(20).to_csv(folder / "new.csv", index=False)
        return folder / "rows.csv", folder / "new.csv"


class TestNumbers(TestTable):
    """A table whose target is a number, opened from memory."""

    def make(self, folder: Path):
        draw = np.random.default_rng(1)
        frame = pd.DataFrame({"a": draw.normal(size=100), "b": draw.normal(size=100)})
        frame["y"] = 3 * frame["a"] - frame["b"] + draw.normal(size=100) / 10
        return frame, frame.head(12)


class TestImage(Battery):
    kind = "image"

    def make(self, folder: Path):
        draw = np.random.default_rng(0)
        for part, count in (("photos", 30), ("new", 4)):
            for label, level in (("dark", 60), ("light", 180)):
                (folder / part / label).mkdir(parents=True)
                for i in range(count):
                    pixels = np.clip(draw.normal(level, 30, (10, 9, 3)), 0, 255).astype(np.uint8)
                    Image.fromarray(pixels).save(folder / part / label / f"{i}.png")
        return folder / "photos", folder / "new"


class TestDrawnRows(TestTable):
    """A table whose distribution is learned."""

    options = {"task": "generate"}


class TestDrawnImages(TestImage):
    """Images whose distribution is learned."""

    options = {"task": "generate"}


class TestText(Battery):
    kind = "text"

    def make(self, folder: Path):
        source = Sources(folder / "sources").folder / "reviews.csv"
        pd.read_csv(source).head(12).to_csv(folder / "new.csv", index=False)
        return source, folder / "new.csv"


class TestCorpus(Battery):
    kind = "corpus"
    bounded = False

    def make(self, folder: Path):
        source = Sources(folder / "sources").folder / "corpus.txt"
        (folder / "new.txt").write_text(source.read_text()[:400])
        return source, folder / "new.txt"


class TestPairs(Battery):
    kind = "pairs"

    def make(self, folder: Path):
        source = Sources(folder / "sources").folder / "pairs.csv"
        pd.read_csv(source).head(9).to_csv(folder / "new.csv", index=False)
        return source, folder / "new.csv"


@pytest.fixture(autouse=True, scope="module")
def _with_the_toy():
    kinds.KINDS["toy"] = ToyKind()
    yield
    del kinds.KINDS["toy"]


class TestToy(Battery):
    kind = "toy"
    bounded = False

    def make(self, folder: Path):
        draw = np.random.default_rng(0)
        for name, count in (("waves.toy", 60), ("new.toy", 8)):
            lines = []
            for i in range(count):
                wave = np.sin(np.arange(8) * (1 + i % 2)) + draw.normal(size=8) / 5
                lines.append(f"{'fast' if i % 2 else 'slow'}: {' '.join(f'{value:.3f}' for value in wave)}")
            (folder / name).write_text("\n".join(lines))
        return folder / "waves.toy", folder / "new.toy"
