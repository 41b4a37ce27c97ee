"""The token-wise MLP."""

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.nn.mlp import MLP


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
