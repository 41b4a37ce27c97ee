"""The builder's guide of D2L: modules, parameters, laziness, saving and devices, with the mistake it prints."""

import pytest
import torch
from torch import nn

from wonderland import autodiff
from wonderland.core import WonderlandError, load_tensors, save_tensors
from wonderland.nn import MLP, Shift, Stack
from wonderland.understand import cost


class Chain(nn.Module):
    """A sequential container of one's own."""

    def __init__(self, *layers):
        super().__init__()
        for i, layer in enumerate(layers):
            self.add_module(str(i), layer)

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


class Mine(nn.Module):
    """A layer with parameters, W (in, out) as Alice 5.2 has it."""

    def __init__(self, inputs, units, detached=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, units))
        self.bias = nn.Parameter(torch.randn(units))
        self.detached = detached

    def forward(self, x):
        if self.detached:  # as D2L 6.5 prints it
            return torch.relu(x @ self.weight.data + self.bias.data)
        return torch.relu(x @ self.weight + self.bias)


def test_a_module_composes_and_counts():
    model = nn.Sequential(Mine(3, 5), Mine(5, 4))
    assert model(torch.randn(2, 3)).shape == (2, 4)
    # (c + 1) c' numbers a layer; the book prints (c' + 1) c.
    assert sum(p.numel() for p in model.parameters()) == (3 + 1) * 5 + (5 + 1) * 4 == 44


def test_a_chain_of_ones_own_is_torchs():
    layers = [nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)]
    x = torch.randn(5, 3)
    assert torch.equal(Chain(*layers)(x), nn.Sequential(*layers)(x))


def test_a_stack_is_a_chain_of_its_blocks():
    stack = Stack(8, 3, [MLP.spec(), Shift.spec()], norm=False)
    x = torch.randn(2, 5, 8)
    assert [type(block) for block in stack.blocks] == [MLP, Shift, MLP]
    assert torch.equal(stack(x), Chain(*stack.blocks)(x))
    assert torch.equal(stack(x), nn.Sequential(*stack.blocks)(x))
    assert not torch.equal(stack(x), Chain(*reversed(stack.blocks))(x))


def test_constants_do_not_learn_and_a_shared_layer_learns_twice():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("fixed", torch.rand(4, 4))
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            x = torch.relu(self.linear(x) @ self.fixed + 1)
            x = self.linear(x)
            while x.abs().sum() > 1:
                x = x / 2
            return x.sum()

    model = Odd()
    model(torch.rand(2, 4)).backward()
    assert [name for name, _ in model.named_parameters()] == ["linear.weight", "linear.bias"]
    once = nn.Linear(2, 2, bias=False)
    x = torch.randn(1, 2)
    once(once(x)).sum().backward()
    copies = [nn.Linear(2, 2, bias=False) for _ in range(2)]
    for copy in copies:
        copy.load_state_dict(once.state_dict())
    copies[1](copies[0](x)).sum().backward()
    torch.testing.assert_close(once.weight.grad, copies[0].weight.grad + copies[1].weight.grad)


def test_parameters_are_reached_by_name():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 1)))
    assert model[1][0].bias is model.get_parameter("1.0.bias")
    assert list(model.state_dict()) == [name for name, _ in model.named_parameters()]
    assert model.state_dict()["0.weight"].shape == (3, 2)


def test_parameters_are_a_dictionary_for_functions_of_them():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    own = autodiff.parameters(model)
    assert list(own) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    for name, value in own.items():
        assert torch.equal(value, model.get_parameter(name))
        assert not value.requires_grad
    x = torch.randn(4, 2)
    gradients = autodiff.grad(lambda own: autodiff.call(model, own, x).sum())(own)
    model(x).sum().backward()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, model.get_parameter(name).grad)
    tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    tied[1].weight = tied[0].weight
    assert list(autodiff.parameters(tied)) == ["0.weight", "0.bias", "1.bias"]


def test_parameters_used_through_data_never_learn():
    for detached in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), Mine(3, 2, detached))
        model(torch.randn(8, 3)).sum().backward()
        assert (model[1].weight.grad is None) == detached


def test_lazy_layers_take_their_width_from_the_first_input():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    assert isinstance(model[0].weight, nn.UninitializedParameter)
    model(torch.randn(3, 7))
    assert model[0].weight.shape == (4, 7)


def test_tensors_and_parameters_are_saved_without_pickle(tmp_path):
    model = nn.Linear(3, 2)
    path = tmp_path / "weights.safetensors"
    save_tensors(path, {**model.state_dict(), "x": torch.arange(4)}, {"names": ["a", "b"]})
    tensors, meta = load_tensors(path)
    assert meta == {"names": ["a", "b"]}
    assert tensors["x"].tolist() == [0, 1, 2, 3]
    twin = nn.Linear(3, 2)
    twin.load_state_dict({name: tensors[name] for name in ("weight", "bias")})
    x = torch.randn(1, 3)
    assert torch.equal(model(x), twin(x))
    path.write_bytes(b"no tensors")
    with pytest.raises(WonderlandError):
        load_tensors(path)


def test_devices_must_agree():
    here, nowhere = torch.zeros(2), torch.zeros(2, device="meta")
    assert here.device.type == "cpu"
    assert here.to("meta").is_meta
    assert here.to("cpu") is here
    with pytest.raises((RuntimeError, NotImplementedError)):
        (here + nowhere).item()
    with torch.device("meta"):
        assert nn.Linear(10**6, 10**6).weight.is_meta  # no memory is taken


def test_a_summary_tells_layers_shapes_and_parameters():
    found = cost(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)), torch.zeros(1, 8))
    assert found.parameters == 46
    assert "Linear" in str(found)
