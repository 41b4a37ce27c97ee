"""Batch independence detects outputs that depend on other rows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from wonderland.laws import Example, batch_independence


class Mates(nn.Module):
    """One row is moved by another."""

    def __init__(self, row: int, by: int):
        super().__init__()
        self.row, self.by = row, by

    def forward(self, x):
        y = x.clone()
        if len(x) > max(self.row, self.by):
            y[self.row, 2] = y[self.row, 2] + x[self.by, 2]
        return y


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(4)))
def test_the_row_that_is_moved_is_named(order):
    verdict = batch_independence(Mates(*order[:2]), Example.floats(4, 5, 3))
    assert not verdict
    assert verdict.witness.startswith(f"output 2 (row {order[0]}) differs by")
    assert verdict.witness.endswith(f"from row {order[0]} alone, among 4 rows")


def test_statistics_of_the_batch_are_found_also_for_a_batch_of_one():
    block = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(5, track_running_stats=False))
    assert not batch_independence(block, Example.floats(4, 5, 3))
    assert not batch_independence(block, Example.floats(1, 5, 3))


def test_running_statistics_are_independent():
    block = nn.BatchNorm1d(5)
    assert batch_independence(block, Example.floats(4, 5, 3)).outcome == "holds"
    assert block.training


def test_every_input_with_a_batch_is_cut():
    class Sum(nn.Module):
        def forward(self, x, context, scale=None):
            return x + context.mean(1, keepdim=True) + scale

    example = Example(
        (torch.randn(3, 5, 2), torch.randn(3, 4, 2)),
        {"scale": torch.randn(2)},
        axes={0: ("batch", "time"), "scale": ()},
    )
    assert batch_independence(Sum(), example).outcome == "holds"


def test_without_a_batch_it_does_not_apply():
    verdict = batch_independence(nn.Identity(), Example.floats(5, 3, axes=("time",)))
    assert verdict.witness == "the input or the output has no batch"


class Leaks(nn.Module):
    """The first row reaches one of the others."""

    def __init__(self, row):
        super().__init__()
        self.row = row

    def forward(self, x):
        y = x.clone()
        if len(x) > self.row:
            y[self.row] = y[self.row] + x[0]
        return y


@pytest.mark.parametrize(("row", "rows"), [(10, 12), (11, 12), (99, 100)])
def test_rows_behind_the_first_are_looked_at(row, rows):
    found = batch_independence(Leaks(row), torch.randn(rows, 5, 3))
    assert found.outcome == "broken"
    assert f"(row {row})" in found.witness


def test_a_vector_is_one_row():
    verdict = batch_independence(nn.Linear(8, 8), torch.randn(8))
    assert (verdict.outcome, verdict.witness) == ("not applicable", "an input of one axis is one row, and has no mates")
