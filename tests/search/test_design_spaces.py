"""Design spaces of AnyNet: samples keep the rules of their space, and distributions are compared with their noise."""

import numpy as np
import pytest
import torch

from wonderland import WonderlandError
from wonderland.models import AnyNet
from wonderland.models.vision.anynet import design_space
from wonderland.search import anynet_design, compare_spaces, distribution_band
from wonderland.understand import cost


def test_designs_keep_the_rules_of_their_space_and_build():
    for space in "ABCDE":
        designs = [anynet_design(space, number, widest=32, depths=(1, 3)) for number in range(30)]
        assert designs == [anynet_design(space, number, widest=32, depths=(1, 3)) for number in range(30)]
        found = {design_space(d.depths, d.dims, d.group_widths, d.bottlenecks) for d in designs}
        assert min(found) >= space
        assert space in found
    design = designs[0]
    net = AnyNet(10, 1, depths=design.depths, dims=design.dims, group_widths=design.group_widths,
                 bottlenecks=design.bottlenecks, dim=8)  # fmt: skip
    counted = cost(net, torch.zeros(1, 1, 28, 28)).flops
    assert design.operations(size=28, stem=8, channels=1) == pytest.approx(counted, rel=0.03)
    with pytest.raises(WonderlandError, match=r"^There is no design space 'F'\. Known are A, B, C, D and E\.$"):
        anynet_design("F", 0)
    with pytest.raises(WonderlandError, match=r"^Of 10,000 designs of space A none was accepted"):
        anynet_design("A", 0, accept=lambda design: False)


def test_equal_spaces_are_alike_and_bands_hold_the_curve():
    draw = np.random.default_rng(0)
    same = [compare_spaces(draw.normal(size=40), draw.normal(size=40), draws=200, seed=s).verdict for s in range(20)]
    assert same.count("alike") >= 15
    assert compare_spaces(draw.normal(size=60) - 1, draw.normal(size=60)).verdict == "better"
    low, high = distribution_band([0.1, 0.2, 0.3, 0.4], [0.0, 0.25, 1.0])
    assert low.tolist()[0] == high.tolist()[0] == 0.0
    assert low[1] < 0.5 < high[1]
    assert low[2] == high[2] == 1.0
