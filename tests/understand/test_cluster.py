"""Plans on paper: intervals of checkpoints, stragglers and steps on many devices."""

import pytest

from wonderland import WonderlandError
from wonderland.understand import (
    Device,
    daly_interval,
    expected_share,
    simulated_share,
    step_plan,
    straggler_factor,
    young_interval,
)


def test_dalys_interval_loses_least_and_the_simulation_counts_the_same():
    save, restart, mtbf = 120.0, 300.0, 7200.0
    best = expected_share(daly_interval(save, mtbf), save, restart, mtbf)
    assert best >= expected_share(young_interval(save, mtbf), save, restart, mtbf)
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert expected_share(factor * daly_interval(save, mtbf), save, restart, mtbf) < best
    counted = simulated_share(daly_interval(save, mtbf), save, restart, mtbf, hours=4000)
    assert counted == pytest.approx(best, abs=0.01)
    with pytest.raises(WonderlandError, match=r"^Times of saving, work and failures are above 0, not \(0, 1\.0\)\.$"):
        young_interval(0, 1.0)


def test_more_devices_compute_faster_and_wait_longer():
    device = Device(1e14, 8e10, 1e10)
    plans = [step_plan(device, n, parameters=1e9, tokens=1e6) for n in (1, 8, 64)]
    assert [round(plan.compute * plan.devices, 6) for plan in plans] == [60.0] * 3
    assert plans[0].efficiency == 1.0
    assert plans[2].efficiency < plans[1].efficiency or plans[1].efficiency == 1.0
    sharded = step_plan(device, 8, parameters=1e9, tokens=1e6, sharded=True)
    assert sharded.memory == pytest.approx(plans[1].memory / 8)
    assert 1.0 < straggler_factor(8, 0.1) < straggler_factor(512, 0.1) < 1.5
