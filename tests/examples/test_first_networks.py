"""XOR, overfitting and towers: the quick facts in the default suite, the whole labs in the slow one."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.overfitting import __main__ as overfitting
from examples.towers import __main__ as towers
from examples.xor import __main__ as xor


def test_no_line_parts_xor_and_two_units_do():
    assert xor.best_line(90, 81) == 0.75
    assert torch.equal(xor.by_hand(xor.POINTS), xor.ANSWERS)
    x, y = xor.parity(2)
    assert torch.equal(x, xor.POINTS)
    assert torch.equal(y, xor.ANSWERS)


def test_a_hidden_layer_learns_xor():
    model, curve = xor.train(*xor.parity(2), 8, 0, steps=200)
    assert xor.right(model, *xor.parity(2)) == 1
    assert curve[-1] < 0.1 * curve[0]


def test_a_memory_knows_its_rows_and_nothing_else():
    own, fresh, always = overfitting.memory(30, 0)
    assert own == 0
    assert fresh == always > 1


def test_the_smallest_weights_fit_exactly_from_as_many_features_as_rows_on():
    assert overfitting.wide(20, 40, 0)[0] > 1e-3
    assert overfitting.wide(80, 40, 0)[0] < 1e-20
    assert overfitting.wide(80, 40, 0, ridge=1.0)[0] > 1e-4
    own, fresh = overfitting.polynomial(3, 20, 0)
    assert own < fresh < 0.1


def test_equal_units_stay_equal():
    assert towers.symmetry(0) == (1, 8)
    assert towers.stretch([1.0, 100.0]) == 2
    assert towers.products(0, True) < towers.products(0, False)


@pytest.mark.slow
@pytest.mark.parametrize("lab", [xor, overfitting, towers], ids=["xor", "overfitting", "towers"])
def test_the_labs(lab, tmp_path):
    assert lab.main(["--out", str(tmp_path)]) == 0
    assert len(list(tmp_path.iterdir())) == 2
