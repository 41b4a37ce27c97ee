"""Activations are named, and a wrong name gets the choices."""

import math

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.nn.channel.activations import (
    ACTIVATIONS,
    activation,
    elu,
    elu_plus_one,
    gelu,
    gelu_tanh,
    hard_swish,
    identity,
    leaky_relu,
    mish,
    quick_gelu,
    relu,
    relu6,
    sigmoid,
    silu,
    softplus,
    squared_relu,
    tanh,
)
from wonderland.nn.channel.mlp import MLP


def test_every_activation_has_a_name_and_keeps_shapes():
    x = torch.linspace(-3, 3, 7, dtype=torch.float64)
    for name, function in ACTIVATIONS.items():
        assert activation(name) is function
        assert function(x).shape == x.shape


def test_a_function_is_taken_as_it_is():
    assert activation(torch.sin) is torch.sin


def test_an_unknown_name_gets_the_choices():
    with pytest.raises(WonderlandError) as error:
        activation("gleu")
    assert str(error.value) == (
        "There is no activation 'gleu'. Did you mean 'gelu'? The choices are identity, relu, "
        "leaky_relu, squared_relu, gelu, gelu_tanh, quick_gelu, mish, relu6, hard_swish, silu, tanh, sigmoid, softplus, elu, elu_plus_one, or a function."
    )


def test_values_of_the_book():
    points = torch.tensor([-0.751791, -1.278465], dtype=torch.float64)
    assert gelu(points[0]).item() == pytest.approx(-0.1700, abs=1e-4)
    assert silu(points[1]).item() == pytest.approx(-0.2785, abs=1e-4)
    assert elu_plus_one(torch.tensor([-50.0, 2.0])).tolist() == pytest.approx([0, 3])
    assert squared_relu(torch.tensor([-2.0, 3.0])).tolist() == [0, 9]


def _sigmoid(s):
    return 1 / (1 + math.exp(-s))


# Each activation by its formula, for one number.
FORMULAS = {
    identity: lambda s: s,
    relu: lambda s: max(s, 0),
    leaky_relu: lambda s: s if s > 0 else 0.01 * s,
    squared_relu: lambda s: max(s, 0) ** 2,
    gelu: lambda s: s * 0.5 * (1 + math.erf(s / math.sqrt(2))),
    gelu_tanh: lambda s: 0.5 * s * (1 + math.tanh(math.sqrt(2 / math.pi) * (s + 0.044715 * s**3))),
    quick_gelu: lambda s: s * _sigmoid(1.702 * s),
    mish: lambda s: s * math.tanh(math.log1p(math.exp(s))),
    relu6: lambda s: min(max(s, 0), 6),
    hard_swish: lambda s: s * min(max(s + 3, 0), 6) / 6,
    silu: lambda s: s * _sigmoid(s),
    tanh: lambda s: math.sinh(s) / math.cosh(s),
    sigmoid: _sigmoid,
    softplus: lambda s: math.log1p(math.exp(s)),
    elu: lambda s: s if s > 0 else math.exp(s) - 1,
    elu_plus_one: lambda s: s + 1 if s > 0 else math.exp(s),
}
POINTS = (-20.0, -4.0, -3.0, -1.3, -0.1, -1e-3, 0.0, 1e-3, 0.05, 0.1, 1.0, 2.9, 3.0, 5.5, 6.5, 25.0)


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__name__)
def test_values_are_those_of_the_formula(function):
    x = torch.tensor(POINTS, dtype=torch.float64)
    expected = torch.tensor([FORMULAS[function](s) for s in POINTS], dtype=torch.float64)
    torch.testing.assert_close(function(x), expected, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(function(x.float()), expected.float(), rtol=1e-5, atol=1e-6)


def test_every_activation_has_a_formula():
    assert set(FORMULAS) == set(ACTIVATIONS.values())


def test_softplus_and_elu_meet_the_lines_they_smooth():
    """Alice 5.4: softplus is log 2 at 0 and its derivative the sigmoid; ELU has derivative 1 on both sides of 0."""
    s = torch.tensor([-2.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(softplus(s).sum(), s)
    torch.testing.assert_close(gradient, torch.sigmoid(s.detach()))
    assert softplus(s)[1].item() == pytest.approx(math.log(2))
    near = torch.tensor([-1e-9, 1e-9], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(elu(near).sum(), near)
    assert gradient.tolist() == pytest.approx([1, 1])
    assert elu(torch.tensor(-50.0)).item() == pytest.approx(-1)


def test_a_spec_can_name_a_function():
    spec = Spec.from_json(MLP.spec(dim=4, activation=relu).to_json())
    assert spec.build().activation is relu
