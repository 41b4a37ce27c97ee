"""Recordings through everything that a user does with a kind of data."""

import numpy as np
import pandas as pd

from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from tests.kinds.sound.made import tone, write_folder
from wonderland.data.recording import write_wave


class TestClassFolders(Battery):
    kind = "sound"

    def make(self, folder):
        return write_folder(folder / "recordings", 40), write_folder(folder / "new", 6, first=100, rate=11025)


class TestWavesWithNumbers(Battery):
    kind = "sound"
    options = {"target": "level"}

    def make(self, folder):
        rows, draw = [], np.random.default_rng(0)
        for row in range(44):
            level = draw.uniform(0.1, 0.9)
            (folder / f"{row}.wav").write_bytes(write_wave(tone(row, rises=False) * level, 8000))
            rows.append({"file": f"{row}.wav", "level": level})
        pd.DataFrame(rows[:38]).to_csv(folder / "levels.csv", index=False)
        pd.DataFrame(rows[38:]).to_csv(folder / "new.csv", index=False)
        return folder / "levels.csv", folder / "new.csv"

    def fit(self, source, out, **options):
        return super().fit(source, out, model="WaveConvNet(dim=8, depth=2)", **options)

    test_the_shell_does_it_too = None  # a model is no option of inspect


class TestTranscripts(Battery):
    kind = "sound"

    def make(self, folder):
        rows, draw = [], np.random.default_rng(0)
        for row in range(36):
            word = "".join(draw.choice(list("ab"), size=draw.integers(1, 4)))
            wave = np.concatenate([tone(row, letter == "b")[:1000] for letter in word])
            (folder / f"{row}.wav").write_bytes(write_wave(wave, 8000))
            rows.append({"file": f"{row}.wav", "text": word})
        pd.DataFrame(rows[:30]).to_csv(folder / "said.csv", index=False)
        pd.DataFrame(rows[30:]).to_csv(folder / "new.csv", index=False)
        return folder / "said.csv", folder / "new.csv"
