"""The cost of a model against hand-computed numbers, and no side effects on the model."""

import json

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.understand import cost


class Product(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 6, 7))

    def forward(self, x):  # (4, 5, 6) -> (4, 5, 7)
        return torch.bmm(x, self.weight)


class Biased(Product):
    def forward(self, x):
        return torch.baddbmm(torch.zeros(4, 5, 7), x, self.weight)


class Attention(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x)


def test_linear():
    total = cost(nn.Linear(10, 3), torch.zeros(4, 10))
    assert (total.parameters, total.trainable) == (33, 33)
    assert total.flops == 2 * 10 * 3
    assert total.activation_bytes == 4 * 10
    assert total.by_layer[0].output == (3,)


def test_convolution():
    total = cost(nn.Conv2d(3, 8, 5, padding=2, stride=2), torch.zeros(2, 3, 16, 16))
    assert total.parameters == 8 * 3 * 25 + 8
    assert total.flops == 2 * 8 * 8 * 8 * 3 * 25
    assert total.by_layer[0].output == (8, 8, 8)


@pytest.mark.parametrize("model", [Product(), Biased()], ids=["bmm", "baddbmm"])
def test_batched_products(model):
    assert cost(model, torch.zeros(4, 5, 6)).flops == 2 * 5 * 6 * 7


def test_attention():
    assert cost(Attention(), torch.zeros(2, 3, 5, 8)).flops == 2 * 3 * 5 * 5 * 8 * 2


@pytest.mark.parametrize(("kind", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
@pytest.mark.parametrize("frozen", [False, True])
def test_recurrent(kind, gates, frozen):
    model = kind(4, 6, batch_first=True).requires_grad_(not frozen)
    assert cost(model, torch.zeros(2, 5, 4)).flops == 2 * 5 * gates * 6 * (4 + 6)


def test_a_frozen_transformer_costs_what_a_trained_one_does():
    model = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    trained = cost(model, torch.zeros(2, 7, 16))
    frozen = cost(model.requires_grad_(False), torch.zeros(2, 7, 16))
    assert trained.flops == frozen.flops == 7 * 2 * 16 * (3 * 16 + 16 + 32 + 32) + 4 * 2 * 2 * 7 * 7 * 4
    assert (frozen.trainable, frozen.activation_bytes) == (0, 0)


def test_numbers_are_for_one_example():
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
    single, many = cost(model, torch.zeros(1, 1, 8, 8)), cost(model, torch.zeros(32, 1, 8, 8))
    assert single.flops == many.flops
    assert many.activation_bytes <= single.activation_bytes
    assert single.by_layer == many.by_layer


def test_layers_sum_to_the_total():
    total = cost(nn.Sequential(nn.Linear(6, 6), Product()), torch.zeros(4, 5, 6))
    assert [layer.flops for layer in total.by_layer] == [2 * 5 * 36, 2 * 5 * 6 * 7]
    assert sum(layer.flops for layer in total.by_layer) == total.flops
    assert sum(layer.parameters for layer in total.by_layer) == total.parameters


def test_a_shared_layer_works_twice_and_is_stored_once():
    shared = nn.Linear(8, 8)
    total = cost(nn.Sequential(shared, nn.ReLU(), shared), torch.zeros(3, 8))
    assert [layer.flops for layer in total.by_layer] == [2 * 2 * 64, 0]
    assert total.parameters == 72


def test_the_model_is_left_as_it_was():
    class Restless(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.register_buffer("mean", torch.zeros(3))
            self.body = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))

        def forward(self, x):
            self.calls += 1
            self.mean = x.mean(0)
            return self.body(x + torch.randn(()))

    model = Restless()
    model.body[1].eval()
    model.body[0].weight.grad = torch.ones(3, 3)
    modes = [module.training for module in model.modules()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    x = torch.ones(4, 3)
    with torch.no_grad():
        cost(model, x)
    assert torch.equal(torch.get_rng_state(), random)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.equal(model.body[0].weight.grad, torch.ones(3, 3))
    assert model.body[0].bias.grad is None
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_failing_model_is_left_as_it_was_too():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(4, 4))
    with pytest.raises(RuntimeError, match="shapes"):
        cost(model, torch.zeros(2, 3))
    assert model.training
    assert all(not module._forward_hooks for module in model.modules())


def test_works_in_inference_mode_and_with_several_arguments():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(3, 2), nn.Linear(4, 2)

        def forward(self, x, y):
            return self.left(x) + self.right(y)

    model = Sum()
    with torch.inference_mode():
        total = cost(model, (torch.zeros(5, 3), torch.zeros(5, 4)))
    assert total.flops == 2 * 2 * (3 + 4)
    assert total.activation_bytes == 4 * (3 + 4)


def test_json_and_table():
    total = cost(nn.Sequential(nn.Linear(8, 4), nn.ReLU()), torch.zeros(2, 8))
    assert json.loads(json.dumps(total.to_json())) == {
        "parameters": 36,
        "trainable": 36,
        "flops": 64,
        "activation_bytes": 48,
        "by_layer": [
            {"name": "0", "kind": "Linear", "parameters": 36, "flops": 64, "output": [4]},
            {"name": "1", "kind": "ReLU", "parameters": 0, "flops": 0, "output": [4]},
        ],
    }
    lines = total.table().splitlines()
    assert lines[0].split() == ["layer", "kind", "output", "parameters", "FLOPs"]
    assert lines[-2].split() == ["total", "36", "64"]


def test_errors():
    with pytest.raises(WonderlandError) as error:
        cost(nn.LazyLinear(3), torch.zeros(2, 3))
    assert str(error.value) == "The model has lazy layers whose shapes are not known yet. Call it once on data first."
    for nothing in (torch.zeros(0, 3), 7, torch.tensor(1.0)):
        with pytest.raises(WonderlandError) as error:
            cost(nn.Linear(3, 3), nothing)
        assert str(error.value) == "The cost of a model needs an example with at least one row, the batch axis first."
