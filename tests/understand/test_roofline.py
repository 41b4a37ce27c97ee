"""The roofline: large batches are limited by arithmetic, single rows of dense layers by memory."""

import pytest
import torch
from torch import nn

from wonderland import WonderlandError
from wonderland.understand import Machine, cost, measure_machine, roofline


def test_a_dense_layer_is_bound_by_its_weights_for_one_row_and_by_arithmetic_for_many():
    net = nn.Sequential(nn.Linear(1000, 1000), nn.ReLU())
    measured = cost(net, torch.randn(1, 1000))
    machine = Machine(flops=1e11, bandwidth=1e10, latency=1e-6)
    one, many = ({bound.name: bound for bound in roofline(measured, machine, rows=rows)} for rows in (1, 10_000))
    assert machine.ridge == 10
    assert one["0"].limit == "memory"
    assert one["0"].intensity == pytest.approx(2e6 / (4 * (1_001_000 + 2000)), rel=0.01)
    assert many["0"].limit == "arithmetic"
    assert many["0"].seconds == pytest.approx(10_000 * 2e6 / 1e11, rel=0.01)
    with pytest.raises(WonderlandError) as told:
        roofline(measured, machine, rows=0)
    assert str(told.value) == "A batch has at least one row, not 0."


def test_this_machine_has_bounds():
    machine = measure_machine(size=128, seconds=0.02)
    assert 1e8 < machine.flops < 1e14
    assert 1e8 < machine.bandwidth < 1e13
    assert 0 < machine.latency < 1e-3
