"""Parts are disjoint, complete, balanced, repeatable; groups stay whole and time runs forward."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wonderland import kinds
from wonderland.core import WonderlandError
from wonderland.data.split import PARTS
from wonderland.data.split import split as cut


class Rows:
    """The few things a split looks at."""

    test_rows = None
    assigned = None
    group = None

    def __init__(self, y, task="multiclass", groups=None, times=None):
        self.y, self.task, self.groups, self.times = (None if y is None else np.asarray(y)), task, groups, times
        known = y is not None and task != "regression"
        self.classes = [str(i) for i in range(int(np.max(y)) + 1)] if known else None
        self.rows = len(y if y is not None else groups)

    def __len__(self):
        return self.rows


def refused(text):
    return pytest.raises(WonderlandError, match="^" + re.escape(text) + "$")


def complete(split, rows):
    together = np.concatenate(list(split.parts.values()))
    assert np.array_equal(np.sort(together), np.arange(rows))
    for part in split.parts.values():
        assert part.dtype == np.int64
        assert (np.diff(part) > 0).all()


labels = st.lists(st.integers(0, 4), min_size=12, max_size=300)


@settings(max_examples=60, deadline=None)
@given(labels, st.integers(0, 2**40))
@example([0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3], 0)
def test_classes(y, seed):
    rows = Rows(y)
    split = cut(rows, seed=seed)
    complete(split, len(y))
    for code in set(y):
        count = y.count(code)
        held = {name: int((rows.y[part] == code).sum()) for name, part in split.parts.items()}
        if count >= 4:
            assert min(held.values()) >= 1
            assert abs(held["test"] - 0.2 * count) < 2.5
        assert held["train"] >= 1
    assert cut(rows, seed=seed).digest == split.digest


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 40), st.integers(0, 1000), st.booleans())
def test_groups_stay_whole(count, seed, folded):
    random = np.random.default_rng(seed)
    groups = random.permutation(np.concatenate([np.arange(count), random.integers(0, count, 5 * count)]))
    rows = Rows(random.integers(0, 3, len(groups)), groups=groups)
    split = cut(rows, seed=seed, folds=3 if folded else None)
    complete(split, len(groups))
    home = np.empty(len(groups), int)
    for i, part in enumerate(split.parts.values()):
        home[part] = i
        assert len(part) or folded
    for group in range(count):
        assert len(set(home[groups == group])) == 1
        if folded:
            assert len(set(split.folds[groups == group])) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=8, max_size=200).filter(lambda times: len(set(times)) >= 4))
def test_time_runs_forward(times):
    times = np.array(times, float)
    rows = Rows(np.arange(len(times)) % 2, times=times)
    split = cut(rows)
    complete(split, len(times))
    edges = [(times[split.parts[name]].min(), times[split.parts[name]].max()) for name in PARTS]
    assert all(before[1] < after[0] for before, after in pairwise(edges))


@settings(max_examples=40, deadline=None)
@given(labels.filter(lambda y: len(y) >= 24), st.integers(2, 4), st.integers(0, 99))
def test_folds(y, folds, seed):
    rows = Rows(y)
    split = cut(rows, seed=seed, folds=folds)
    complete(split, len(y))
    assert len(split.validation) == len(split.calibration) == 0
    assert split.folds.dtype == np.int8
    assert (split.folds[split.test] == -1).all()
    assert set(split.folds[split.train]) == set(range(folds))
    for code in set(y):
        counts = np.bincount(split.folds[split.train][rows.y[split.train] == code], minlength=folds)
        assert counts.max() - counts.min() <= 1


def test_sizes_are_the_fractions():
    for rows in (Rows(np.arange(1797) % 10), Rows(np.random.default_rng(0).normal(size=1797), "regression")):
        sizes = cut(rows).to_json()["sizes"]
        assert abs(sizes["test"] - 359.4) <= 3
        assert abs(sizes["train"] - 1078.2) <= 8
    sizes = cut(Rows(np.arange(700) // 7)).to_json()["sizes"]
    assert abs(sizes["test"] - 140) <= 5, "many small classes do not bias the sizes"


def test_regression_is_spread_over_the_target():
    y = np.random.default_rng(0).lognormal(size=400)
    split = cut(Rows(y, "regression"))
    for name in PARTS:
        assert abs(np.median(y[split.parts[name]]) - np.median(y)) < 0.3


def test_seeds_give_different_splits_and_digests():
    rows = Rows(np.arange(100) % 2)
    one, two = cut(rows, seed=1), cut(rows, seed=2)
    assert one.digest != two.digest
    record = one.to_json()
    assert json.loads(json.dumps(record)) == record
    assert record["seed"] == 1
    assert record["fractions"] == {"train": 0.6, "validation": 0.1, "calibration": 0.1, "test": 0.2}
    assert record["digest"] == one.digest
    assert cut(rows, folds=5).to_json()["folds"] == 5


def test_digest_is_stable():
    """A split may not change between versions: runs are rebuilt from their seed."""
    assert cut(kinds.open("iris")).digest[:16] == "f1b6a831138281e3"
    assert cut(kinds.open("diabetes"), seed=7, folds=5).digest[:16] == "3519257b9a9de1dc"


def test_a_part_may_be_left_out():
    split = cut(Rows(np.arange(50) % 2), validation=0, calibration=0)
    assert [len(part) for part in split.parts.values()] == [40, 0, 0, 10]


def test_without_a_target():
    complete(cut(Rows(None, None, groups=np.arange(20))), 20)


def test_small_classes_are_noted():
    y = np.array([0] * 30 + [1] * 30 + [2])
    assert cut(Rows(y)).note == "Not every part holds a row of class '2'."
    y = np.array([0] * 30 + [1] * 30 + [2] * 4)
    assert cut(Rows(y), folds=5).note == "Class '2' has fewer rows than there are folds."
    assert cut(Rows(np.arange(60) % 3)).note == ""
    groups = np.repeat(np.arange(6), 5)
    assert "has no row to train on." in cut(Rows(groups, groups=groups)).note


def test_groups_in_order_of_time():
    times = np.arange(60.0)
    split = cut(Rows(np.arange(60) % 2, times=times, groups=np.arange(60) // 3))
    complete(split, 60)
    assert split.train.tolist() == list(range(36))
    with refused(
        "Groups overlap in time, so no split keeps groups whole and the future out of training. "
        "Give a group column or a time column, not both."
    ):
        cut(Rows(np.arange(60) % 2, times=times, groups=np.arange(60) % 7))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (Rows([0, 1, 0]), {}, "3 rows are too few to cut into 4 parts: at least 8 are needed. Add rows."),
        (
            Rows([0, 1] * 9, groups=np.arange(18) % 3),
            {},
            "There are 3 groups; 4 parts need at least 4 groups. Choose a column with more groups, or leave the option group out.",
        ),
        (
            Rows([0, 1] * 9, times=np.arange(18.0) // 6),
            {},
            "The time column holds 3 different times; 4 parts need at least 4. Give finer times, or leave the option time out.",
        ),
        (
            Rows([0, 1] * 9, times=np.arange(18.0)),
            {"folds": 3},
            "Folds mix past and future, so they cannot be used with a time column. Leave folds out.",
        ),
        (
            Rows([0, 1] * 9),
            {"folds": 9},
            "14 rows are too few for 9 folds: at least 18 are needed. Add rows, or use fewer folds.",
        ),
        (Rows([0, 1] * 9), {"folds": 1}, "folds is 1; it must be between 2 and 100."),
        (Rows([0, 1] * 9), {"test": 1.5}, "test is 1.5; it must be at least 0 and below 1."),
        (
            Rows([0, 1] * 9),
            {"test": 0.9},
            "test, validation and calibration together take 110% of the rows; leave some to train on.",
        ),
    ],
)
def test_errors_to_the_word(rows, options, message):
    with refused(message):
        cut(rows, **options)


def test_the_column_of_too_few_groups_is_named():
    rows = Rows([0, 1] * 9, groups=np.zeros(18, int))
    rows.group = "who"
    with refused(
        "There is 1 group in column 'who'; 4 parts need at least 4 groups. Choose a column with more groups, or leave the "
        "option group out."
    ):
        cut(rows)
    rows.groups = np.arange(18) % 3
    with refused(
        "There are 2 groups in column 'who'; 3 folds need at least 3 groups. Choose a column with more groups, or use fewer "
        "folds."
    ):
        cut(rows, folds=3)
