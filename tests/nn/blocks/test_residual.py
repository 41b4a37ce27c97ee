"""A residual connection begins as the identity and always lets the gradient through."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.blocks.residual import Residual
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention


def test_at_a_scale_of_zero_it_is_the_identity_and_its_scale_learns():
    block = Residual(8, MLP.spec())
    x = torch.randn(2, 5, 8)
    y = block(x)
    assert torch.equal(y, x)
    y.square().sum().backward()
    assert block.scale.grad.abs() > 0


def test_its_gradient_is_that_of_the_branch_and_the_identity():
    block = Residual(8, Attention.spec(heads=2), scale=0.7).double()
    x, v = torch.randn(2, 2, 5, 8, dtype=torch.float64)
    _, whole = torch.autograd.functional.vjp(block, x, v)
    _, branch = torch.autograd.functional.vjp(block.inner, x, v)
    torch.testing.assert_close(whole, v + 0.7 * branch)


def test_a_built_module_and_an_infinite_scale_are_refused():
    with pytest.raises(WonderlandError) as error:
        Residual(8, MLP(8))
    assert str(error.value) == (
        "The inner of a block is a spec such as nn.MLP.spec(), which is built once a layer, not a built MLP."
    )
    with pytest.raises(WonderlandError) as error:
        Residual(8, MLP.spec(), scale=float("inf"))
    assert str(error.value) == "Residual needs scale to be a finite number, not inf."
