"""Single steps: the kernels equal the mixers they stand for, and give way where they do not fit."""

import pytest
import torch
from torch import nn

from wonderland.nn.mamba import Mamba
from wonderland.nn.rwkv import RWKV, RWKVChannel
from wonderland.ops import steps

MIXERS = {
    "Mamba": lambda: Mamba(12, state_size=3),
    "Mamba-width-1": lambda: Mamba(8, width=1),
    "RWKV": lambda: RWKV(13),
    "RWKV-book": lambda: RWKV(8, count="book"),
    "RWKVChannel": lambda: RWKVChannel(11),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", MIXERS)
def test_a_step_equals_the_whole(name, dtype):
    mixer = MIXERS[name]().to(dtype)
    x = torch.randn(3, 6, mixer.dim, dtype=dtype)
    whole, state, outputs = mixer(x), None, []
    with torch.no_grad():
        for i in range(6):
            y, state = mixer.stream(x[:, i : i + 1], state)
            outputs.append(y)
    assert torch.allclose(torch.cat(outputs, 1), whole, atol=1e-12 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("name", MIXERS)
def test_a_step_does_not_write_into_the_state_it_was_given(name):
    mixer = MIXERS[name]()
    with torch.no_grad():
        _, state = mixer.stream(torch.randn(2, 4, mixer.dim))
        before = [part.clone() for part in state]
        mixer.stream(torch.randn(2, 1, mixer.dim), state)
    assert all(torch.equal(part, old) for part, old in zip(state, before, strict=True))


def test_steps_give_way_to_gradients_pieces_and_large_batches():
    one = torch.zeros(1, 1, 4)
    with torch.no_grad():
        assert steps.fits(one, one)
        assert not steps.fits(torch.zeros(1, 2, 4), one)
        assert not steps.fits(torch.zeros(steps.MOST_ROWS + 1, 1, 4), one)
        assert not steps.fits(one.half(), one.half())
        assert not steps.fits(one, one.double())
    assert not steps.fits(one, one)


class Doubled(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        return 2 * self.inside(x)


def test_an_adapter_around_a_linear_layer_is_heard():
    mixer = RWKV(8)
    mixer.output = Doubled(mixer.output)
    x = torch.randn(1, 3, 8)
    with torch.no_grad():
        _, state = mixer.stream(x[:, :2])
        y, _ = mixer.stream(x[:, 2:], state)
    assert torch.allclose(y, mixer(x)[:, 2:], atol=1e-6)
