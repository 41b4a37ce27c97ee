"""Gated linear units."""

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.nn.channel.glu import GLU
from wonderland.nn.channel.mlp import MLP

GATES = {"sigmoid": torch.sigmoid, "silu": F.silu, "gelu": F.gelu, "relu": F.relu, "identity": lambda x: x}


@pytest.mark.parametrize("gate", GATES)
def test_each_gate_is_its_equation(gate):
    glu = GLU(6, gate=gate, hidden=5, bias=True).double()
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    (w_gate, w_value), (b_gate, b_value) = glu.inward.weight.split(5), glu.inward.bias.split(5)
    hidden = GATES[gate](x @ w_gate.T + b_gate) * (x @ w_value.T + b_value)
    assert torch.allclose(glu(x), hidden @ glu.outward.weight.T + glu.outward.bias)


def test_the_books_form_has_no_output_matrix():
    glu = GLU(6, gate="sigmoid", project=False)
    x = torch.randn(2, 3, 6)
    first, second = glu.inward.weight.split(6)
    assert torch.allclose(glu(x), torch.sigmoid(x @ first.T) * (x @ second.T), atol=1e-6)


def test_the_default_costs_as_much_as_an_mlp():
    def count(module):
        return sum(p.numel() for p in module.parameters())

    assert count(GLU(96)) == count(MLP(96))


def test_a_width_without_an_output_matrix_is_refused():
    with pytest.raises(WonderlandError) as error:
        GLU(6, hidden=5, project=False)
    assert str(error.value) == (
        "GLU without an output matrix has hidden = dim = 6, not 5: leave hidden out or project."
    )
