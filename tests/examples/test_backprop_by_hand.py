"""Gradients on paper are gradients."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.backprop_by_hand.__main__ import agreement, cost, main, problem, training, vanishing
from examples.backprop_by_hand.network import ACTIVATIONS, LOSSES, by_hand, objective
from examples.backprop_by_hand.picture import graph


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("samples", [1, 9])
def test_hand_equals_torch(loss, activation, samples):
    w1, w2, x, y = problem(samples)
    inputs = [entry.clone().requires_grad_() for entry in (w1, w2, x)]
    objective(*inputs, y, 0.3, activation, loss).backward()
    for found, entry in zip(by_hand(w1, w2, x, y, 0.3, activation, loss), inputs, strict=True):
        torch.testing.assert_close(found, entry.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("claims", [agreement, training, lambda: (cost(), None), lambda: (vanishing(), None)])
def test_the_stated_numbers(claims):
    assert [str(claim) for claim in claims()[0] if not claim.met] == []


def test_the_graph_is_well_formed():
    ElementTree.fromstring(graph())


@pytest.mark.slow
def test_the_lab(tmp_path):
    assert main(["--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"graph", "training"}
