"""A fit that is killed between any two file operations, or whose disk is full, read-only or broken, is continued to the same bits."""

import os

import pytest

from tests.fuzz import kills
from tests.fuzz.subjects import RUNS

# Of each kind of run; WONDERLAND_KILLS sets another number for a run by hand.
EACH = int(os.environ.get("WONDERLAND_KILLS", "25"))


def failures(name, home, many, seed):
    code, said = kills.fork(lambda: [case for case in kills.kills(name, home, many, seed) if case["wrong"]])
    assert code == 0, said
    return said


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_thousand_kills_over_all_kinds_of_run(name, tmp_path):
    assert failures(name, tmp_path, EACH, 1) == "[]"


def test_a_few_kills(tmp_path):
    assert failures("numbers", tmp_path, 2, 3) == "[]"
