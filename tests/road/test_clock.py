"""A clock that jumps, and files dated in the past or the future, change nothing in a run that is interrupted and continued."""

import os
import random
import time

import pytest

import wonderland
from tests.kinds.battery import Cut, digest
from tests.road.test_kill import table
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.learner import GradientDescent

DAY = 86_400.0


@pytest.fixture
def jumping(monkeypatch):
    """A wall clock that jumps by up to thirty years at each look."""
    draw, now = random.Random(0), time.time()
    monkeypatch.setattr(time, "time", lambda: now + draw.uniform(-1e4, 1e4) * DAY)
    monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * (now + draw.uniform(-1e4, 1e4) * DAY)))


def test_a_clock_that_jumps_changes_no_bit(tmp_path, monkeypatch, jumping):
    monkeypatch.setattr(Checkpoints, "due", lambda self: True)
    source = table(tmp_path)
    wonderland.fit(source, out=tmp_path / "whole", steps=6)
    plain, steps = GradientDescent.step, [4]

    def step(self, state, batch):
        steps[0] -= 1
        if not steps[0]:
            raise Cut
        return plain(self, state, batch)

    monkeypatch.setattr(GradientDescent, "step", step)
    with pytest.raises(Cut):
        wonderland.fit(source, out=tmp_path / "cut", steps=6)
    draw = random.Random(1)
    for path in (tmp_path / "cut").rglob("*"):
        if path.is_file():
            os.utime(path, (draw.uniform(0, 4e9), draw.uniform(0, 4e9)))
    assert wonderland.fit(resume=tmp_path / "cut")
    names = {path.name for path in (tmp_path / "whole").iterdir() if path.is_file()} - {"times.jsonl", ".lock"}
    for name in names:
        assert digest(tmp_path / "cut" / name) == digest(tmp_path / "whole" / name), name
