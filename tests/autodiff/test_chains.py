"""Checkpointing of chains: the book's numbers, and the optimum against exhaustive search."""

import itertools
import math
import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.autodiff.chains import alive, evaluations, optimal, square_root
from wonderland.core import WonderlandError


def test_the_example_of_the_book():
    assert evaluations(4, [1, 2, 4]) == 5
    assert evaluations(4, [1, 2, 4]) / 4 == 1.25
    assert evaluations(4, [1, 2, 3, 4]) == 4


@pytest.mark.parametrize("blocks", [1, 2, 3, 10, 16, 100, 101])
def test_square_roots_keep_few_for_less_than_one_more_pass(blocks):
    stored = square_root(blocks)
    assert alive(blocks, stored) <= 2 * math.isqrt(blocks) + 2
    assert evaluations(blocks, stored) < 2 * blocks or blocks == 1


def searched(work, sizes, budget):
    """The least work by trying every choice of what to store at every sweep."""
    count = len(work)

    @cache
    def go(stored, j):
        if j == 1:
            return 0
        t = j - 1
        if t in stored:
            return go(frozenset(one for one in stored if one < t), t)
        start = max(one for one in stored if one < t)
        best = math.inf
        for many in range(t - start):
            for chosen in itertools.combinations(range(start + 1, t), many):
                now = stored | set(chosen)
                if sum(sizes[one] for one in now if one) <= budget:
                    best = min(best, sum(work[start:t]) + go(frozenset(now), t))
        return best

    best = math.inf
    for many in range(count):
        for chosen in itertools.combinations(range(1, count), many):
            if sum(sizes[one] for one in chosen) <= budget:
                best = min(best, sum(work) + go(frozenset({0, *chosen}), count))
    return best


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=6),
    st.integers(0, 10),
)
def test_the_best_plan_is_the_best_of_all(blocks, budget):
    work, sizes = zip(*blocks, strict=True)
    total, stored = optimal(work, sizes, budget)
    assert total == searched(work, sizes, budget)
    assert sum(sizes[k] for k in stored) <= budget


def test_the_best_plan_beats_square_roots():
    total, stored = optimal([1] * 25, [1] * 25, budget=8)
    assert alive(25, square_root(25)) == 9
    assert total <= evaluations(25, square_root(25))
    assert len(stored) <= 8


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: evaluations(4, [5]), "A chain of 4 blocks has no block 5: blocks are counted from 1."),
        (
            lambda: optimal([1], [], 1),
            "A chain needs one size for each block's work, and at least one block: got 1 works and 0 sizes.",
        ),
        (lambda: optimal([1], [1], -1), "Work, sizes and budget of a chain must not be negative."),
    ],
)
def test_chains_that_make_no_sense_are_told(run, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        run()
