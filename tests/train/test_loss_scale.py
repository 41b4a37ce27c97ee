"""Loss scaling keeps gradients that float16 would lose, and gives way when they overflow."""

import pytest
import torch
from torch import nn

from wonderland import WonderlandError
from wonderland.train import LossScale


def test_small_gradients_of_half_precision_are_kept():
    master = nn.Parameter(torch.ones(4))
    for scale, expected in ((LossScale(1.0), 0.0), (LossScale(65536.0), 1e-8)):
        master.grad = None
        half = master.to(torch.float16)
        scale.scale((half * 1.0).sum().float() * 1e-8).backward()
        assert scale.unscale([master])
        assert torch.allclose(master.grad, torch.full((4,), expected), rtol=1e-2, atol=1e-12)


def test_an_overflow_halves_the_scale_and_leaves_the_step_out():
    weight = nn.Parameter(torch.ones(2))
    scale = LossScale(8.0, patience=2)
    weight.grad = torch.tensor([float("inf"), 1.0])
    assert not scale.unscale([weight])
    assert weight.grad is None
    assert scale.value == 4.0
    for _ in range(2):
        scale.scale(weight.sum()).backward()
        assert scale.unscale([weight])
        assert torch.equal(weight.grad, torch.ones(2))
        weight.grad = None
    assert scale.value == 8.0
    again = LossScale()
    again.load_state_dict(scale.state_dict())
    assert (again.value, again.good) == (8.0, 0)
    with pytest.raises(WonderlandError) as told:
        LossScale(0.5)
    assert str(told.value) == "A loss scale begins between 1 and its largest value, and waits for at least one step."
