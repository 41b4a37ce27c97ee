"""The token-wise MLP."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention


def test_it_is_two_matrices_and_a_function():
    mlp = MLP(6, bias=True, activation="gelu_tanh").double()
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    hidden = F.gelu(x @ mlp.inward.weight.T + mlp.inward.bias, approximate="tanh")
    assert torch.allclose(mlp(x), hidden @ mlp.outward.weight.T + mlp.outward.bias)


def test_the_default_has_four_times_the_width_and_no_bias():
    mlp = MLP(6)
    assert sum(p.numel() for p in mlp.parameters()) == 2 * 4 * 6 * 6
    assert MLP(6, expansion=1.5).inward.out_features == 9
    assert MLP(6, hidden=7).inward.out_features == 7


def test_tokens_do_not_see_each_other():
    """T10-18: no derivative across tokens, and any reordering commutes."""
    mlp = MLP(4).double()
    x = torch.randn(1, 3, 4, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(mlp, x)[0, :, :, 0]
    for i in range(3):
        for j in range(3):
            assert (jacobian[i, :, j].abs().max() == 0) == (i != j)
    order = torch.tensor([2, 0, 1])
    assert torch.equal(mlp(x[:, order]), mlp(x)[:, order])


def test_dropout_acts_in_training_only():
    mlp, x = MLP(8, dropout=0.5), torch.randn(1, 4, 8)
    assert not torch.equal(mlp(x), mlp(x))
    mlp.eval()
    assert torch.equal(mlp(x), mlp(x))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hidden": 0}, "MLP needs at least one hidden unit, not 0: raise hidden or expansion."),
        ({"dropout": 1}, "MLP takes a dropout probability of at least 0 and below 1, not 1."),
    ],
)
def test_what_cannot_be_built_is_told(options, words):
    with pytest.raises(WonderlandError) as error:
        MLP(4, **options)
    assert str(error.value) == words


def test_functions_of_ones_own_are_taken_whatever_they_are_called():
    def relu(x):
        return x.clamp(0, 0.1)

    mlp, x = MLP(64, activation=relu), torch.randn(4, 33, 64)
    expected = mlp.outward(relu(mlp.inward(x)))
    assert torch.equal(mlp(x), expected)
    block = Block(64, mixer=Attention.spec(heads=4), channel=MLP.spec()).eval()
    block.channel.activation = relu
    with torch.no_grad():
        whole = block(x)
        pieces, state = [], None
        for token in x.split(1, 1):
            y, state = block.stream(token, state)
            pieces.append(y)
    h = x + block.mixer(block.norms[0](x))
    expected = h + block.channel.outward(relu(block.channel.inward(block.norms[1](h))))
    assert torch.allclose(whole, expected, atol=1e-5)
    assert torch.allclose(torch.cat(pieces, 1), expected, atol=1e-5)


def test_what_a_subclass_changes_is_changed_in_blocks_too():
    class Twice(MLP):
        def apply_to(self, x):
            return 2 * super().apply_to(x)

    block, x = Block(16, mixer=Attention.spec(), channel=MLP.spec()).eval(), torch.randn(8, 16, 16)
    block.channel.__class__ = Twice
    h = x + block.mixer(block.norms[0](x))
    expected = h + block.channel(block.norms[1](h))
    assert torch.allclose(block(x), expected, atol=1e-5)
    with torch.no_grad():
        first, state = block.stream(x[:, :1])
        second, _ = block.stream(x[:, 1:2], state)
    assert torch.allclose(torch.cat([first, second], 1), expected[:, :2], atol=1e-5)


@pytest.mark.parametrize(
    "misfit",
    [
        lambda mlp: setattr(mlp, "outward", nn.Linear(100, 64)),
        lambda mlp: setattr(mlp, "inward", nn.Linear(60, 256)),
        lambda mlp: setattr(mlp.inward, "bias", nn.Parameter(torch.zeros(3))),
    ],
)
def test_weights_of_other_sizes_are_no_business_of_kernels(misfit):
    block = Block(64, mixer=Attention.spec(heads=4), channel=MLP.spec())
    misfit(block.channel)
    for module in (block, block.channel):
        with pytest.raises(RuntimeError):
            module(torch.randn(4, 33, 64))
