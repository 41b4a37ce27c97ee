"""Compiles detects graph breaks and changed outputs."""

import torch
from torch import nn

from wonderland.laws import Example, compiles

X = Example.floats(2, 3, 4)


def test_a_linear_layer_compiles():
    assert compiles(nn.Linear(4, 4), X).outcome == "holds"


def test_a_branch_on_data_is_a_break():
    class Branch(nn.Module):
        def forward(self, x):
            return x if x.sum().item() > 0 else -x

    verdict = compiles(Branch(), X)
    assert not verdict
    assert verdict.witness.startswith("it does not compile: ")
    assert "test_compiles.py" in verdict.witness


def test_an_answer_that_depends_on_compiling_is_found():
    class Other(nn.Module):
        def forward(self, x):
            return x + 1 if torch.compiler.is_compiling() else x

    verdict = compiles(Other(), X)
    assert not verdict
    assert verdict.witness.endswith("when compiled")
