"""torch.func and forward-mode derivatives go through the equations: kernels would silently drop what they carry."""

import pytest
import torch

from wonderland.nn import AFT, GRU, LRU, LSTM, RWKV, S4D, S5, Attention, LinearAttention, Mamba, RMSNorm

# What torch says about its own parts.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning"),
]

MIXERS = {
    "AFT": lambda: AFT(4), "Attention": lambda: Attention(4), "GRU": lambda: GRU(4), "LRU": lambda: LRU(4),
    "LSTM": lambda: LSTM(4), "LinearAttention": lambda: LinearAttention(4), "Mamba": lambda: Mamba(4),
    "RMSNorm": lambda: RMSNorm(4), "RWKV": lambda: RWKV(4), "S4D": lambda: S4D(4), "S5": lambda: S5(4),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXERS)
def test_forward_mode_is_the_directional_derivative(name):
    mixer = MIXERS[name]().double()
    x, v = torch.randn(2, 1, 3, 4, dtype=torch.float64)
    _, found = torch.func.jvp(mixer, (x,), (v,))
    with torch.no_grad():
        expected = (mixer(x + 1e-6 * v) - mixer(x - 1e-6 * v)) / 2e-6
    assert torch.allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("name", MIXERS)
def test_gradients_of_every_row_at_once_are_those_of_each(name):
    mixer = MIXERS[name]().double()
    x = torch.randn(3, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    found = torch.func.vmap(torch.func.grad(lambda row: mixer(row).square().sum()))(x.detach())
    (expected,) = torch.autograd.grad(sum(mixer(row).square().sum() for row in x), x)
    assert torch.allclose(found, expected)
