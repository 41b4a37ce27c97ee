"""Signals through everything that a user does with a kind of data."""

from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from tests.kinds.signal.made import long_table, write_ts
from wonderland.kinds.signal.learner import FitSignals


class TestFileOfSeries(Battery):
    kind = "signal"
    learner = FitSignals

    def make(self, folder):
        return write_ts(folder / "waves.ts", range(30)), write_ts(folder / "new.ts", range(100, 106))


class TestLongTableWithANetwork(Battery):
    kind = "signal"
    options = {"series": "id", "target": "pitch"}

    def make(self, folder):
        long_table(range(30)).to_csv(folder / "waves.csv", index=False)
        long_table(range(100, 106)).to_csv(folder / "new.csv", index=False)
        return folder / "waves.csv", folder / "new.csv"

    def fit(self, source, out, **options):
        return super().fit(source, out, model="InceptionTime(dim=4, depth=3)", **options)

    test_the_shell_does_it_too = None  # a model is no option of inspect
