"""Activations are named, and a wrong name gets the choices."""

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.nn.channel.activations import ACTIVATIONS, activation, elu_plus_one, gelu, relu, silu, squared_relu
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


def test_a_spec_can_name_a_function():
    spec = Spec.from_json(MLP.spec(dim=4, activation=relu).to_json())
    assert spec.build().activation is relu
