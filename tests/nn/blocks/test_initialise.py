"""Weights begin with the variance that the equations give, and a signal keeps its size through a hundred layers."""

import math

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.initialise import gpt2, kaiming, orthogonal, signal, spectral_radius, xavier, zero_residuals
from wonderland.nn.blocks.residual import Residual
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.shift import Shift
from wonderland.nn.vision.residual_convolution import ResidualConvolution

DEPTH, WIDTH = 100, 256


def said(call) -> str:
    with pytest.raises(WonderlandError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("shape", [(200, 300), (60, 40, 3, 3)])
def test_variances_are_those_of_the_equations_and_of_torch(shape, uniform):
    torchs = torch.nn.init
    for ours, theirs in (
        (xavier(torch.empty(shape), uniform=uniform), torchs.xavier_uniform_ if uniform else torchs.xavier_normal_),
        (kaiming(torch.empty(shape), uniform=uniform), torchs.kaiming_uniform_ if uniform else torchs.kaiming_normal_),
    ):
        expected = theirs(torch.empty(shape))
        assert abs(float(ours.std() / expected.std()) - 1) < 0.03
        assert abs(float(ours.mean())) < 5 * float(expected.std()) / ours.numel() ** 0.5
        assert abs(float(ours.abs().max() / expected.abs().max()) - 1) < (0.01 if uniform else 0.3)
    out = kaiming(torch.empty(shape), mode="outward")
    assert abs(float(out.std()) * math.sqrt(shape[0] * math.prod(shape[2:]) / 2) - 1) < 0.03


def test_plain_draws_have_the_mean_and_deviation_asked_for():
    """D2L 6.3: N(0, 0.01) for weights and a constant for biases, by torch itself."""
    layer = nn.Linear(200, 300)
    torch.nn.init.normal_(layer.weight, std=0.01)
    torch.nn.init.constant_(layer.bias, 0.25)
    weight = layer.weight.detach()
    assert abs(float(weight.std()) / 0.01 - 1) < 0.02
    assert abs(float(weight.mean())) < 5 * 0.01 / weight.numel() ** 0.5
    assert set(layer.bias.tolist()) == {0.25}


def test_a_generator_decides_the_draw():
    for fill in (xavier, kaiming, orthogonal):
        a, b = (fill(torch.empty(4, 5), generator=torch.Generator().manual_seed(3)) for _ in range(2))
        assert torch.equal(a, b)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 3, 2, 2)])
def test_orthogonal_turns_and_does_not_stretch(shape):
    w = orthogonal(torch.empty(shape, dtype=torch.float64), gain=2).flatten(1)
    gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    torch.testing.assert_close(gram, 4 * torch.eye(len(gram), dtype=torch.float64))


def test_the_spectral_radius_is_the_one_asked_for():
    w = spectral_radius(torch.randn(40, 40, dtype=torch.float64), 0.9)
    assert abs(float(torch.linalg.eigvals(w).abs().max()) - 0.9) < 1e-12


def plain(fill, activation):
    layers = []
    for _ in range(DEPTH):
        layer = nn.Linear(WIDTH, WIDTH, bias=False)
        fill(layer.weight)
        layers.append(nn.Sequential(layer, activation))
    return signal(layers, torch.randn(32, WIDTH))


def ratios(found):
    return [max(values) / min(values) for values in found]


@pytest.mark.parametrize(
    ("fill", "activation", "most"),
    [
        (kaiming, nn.ReLU(), 5),
        (lambda w: kaiming(w, mode="outward"), nn.ReLU(), 5),
        (xavier, nn.Identity(), 3),
        (lambda w: kaiming(w, activation="identity"), nn.Identity(), 3),
        (orthogonal, nn.Identity(), 1.001),
        (lambda w: orthogonal(w, gain=math.sqrt(2)), nn.ReLU(), 5),
    ],
)
def test_activations_and_gradients_keep_their_size_through_a_hundred_layers(fill, activation, most):
    assert max(ratios(plain(fill, activation))) < most


def test_other_weights_do_not_and_the_measure_shows_it():
    forward, backward = ratios(plain(xavier, nn.ReLU()))
    assert min(forward, backward) > 1e10
    assert min(ratios(plain(lambda w: nn.init.normal_(w, std=0.03), nn.Identity()))) > 1e10


def test_zero_residuals_keep_a_signal_exactly():
    blocks = [Residual(16, MLP.spec(activation="relu")) for _ in range(DEPTH)]
    found = signal(blocks, torch.randn(2, 3, 16))
    assert len(set(found.forward)) == len(set(found.backward)) == 1


@pytest.mark.parametrize(
    ("build", "branches"),
    [
        (lambda: Block(8, Attention.spec(heads=2), channel=MLP.spec(bias=True)), 2),
        (lambda: Block(8, Shift.spec(), channel=MLP.spec(), layer_scale=0.1), 2),
        (lambda: Residual(8, MLP.spec(), scale=0.5), 1),
    ],
)
def test_zeroed_models_begin_as_their_shortcuts(build, branches):
    model = build()
    x = torch.randn(2, 5, 8)
    assert not torch.equal(model(x), x)
    assert zero_residuals(model) == branches
    assert torch.equal(model(x), x)


def test_a_residual_convolution_is_silenced_too():
    model = ResidualConvolution(3)
    nn.init.normal_(model.conv_out.weight)
    x = torch.randn(2, 3, 5, 5)
    assert zero_residuals(model) == 1
    assert torch.equal(model(x), x)


def test_gpt2_begins_with_branches_that_add_up_to_one():
    blocks = nn.Sequential(
        *[Block(64, Attention.spec(heads=2, bias=True), channel=MLP.spec(bias=True)) for _ in range(8)]
    )
    assert gpt2(blocks, generator=torch.Generator().manual_seed(0)) == 16
    for name, value in blocks.named_parameters():
        if name.endswith("bias"):
            assert (value == 0).all(), name
        elif value.dim() > 1:
            wide = 0.02 / 4 if name.endswith(("out.weight", "outward.weight")) else 0.02
            assert abs(value.std().item() / wide - 1) < 0.05, name
        else:
            assert (value == 1).all(), name


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: xavier(torch.empty(4)), "xavier takes a weight (out, in, ...) with entries, not of shape (4,)."),
        (lambda: xavier(torch.empty(4, 4), gain=-1), "xavier takes a gain above 0, not -1."),
        (
            lambda: kaiming(torch.empty(4, 4), activation="rellu"),
            "kaiming knows the activations identity, tanh, relu, selu, not 'rellu'. Did you mean 'relu' or 'selu'?",
        ),
        (lambda: kaiming(torch.empty(4, 4), mode="in"), "kaiming takes a mode of 'inward' or 'outward', not 'in'."),
        (lambda: orthogonal(torch.empty(4, 4), gain=0), "orthogonal takes a gain above 0, not 0."),
        (
            lambda: spectral_radius(torch.ones(2, 3)),
            "spectral_radius takes a square weight (n, n), not of shape (2, 3).",
        ),
        (lambda: spectral_radius(torch.eye(2), -1), "spectral_radius takes a radius above 0, not -1."),
        (
            lambda: spectral_radius(torch.tensor([[0.0, 1.0], [0.0, 0.0]])),
            "spectral_radius takes a weight with an eigenvalue other than 0, which it can rescale.",
        ),
        (
            lambda: zero_residuals(nn.Linear(2, 2)),
            "zero_residuals takes a model with residual branches, and this one has none.",
        ),
        (
            lambda: zero_residuals(Block(8, Shift.spec())),
            "zero_residuals finds no last matrix in Shift: give its Block a layer_scale instead.",
        ),
        (lambda: gpt2(nn.Linear(2, 2)), "gpt2 takes a model with residual blocks, and this one has none."),
        (
            lambda: gpt2(Block(8, Shift.spec())),
            "gpt2 finds no last matrix in Shift: give its Block a layer_scale instead.",
        ),
        (lambda: gpt2(Block(8, MLP.spec()), deviation=0), "gpt2 takes a deviation above 0, not 0."),
        (lambda: signal([], torch.ones(2)), "signal takes at least one layer to send x through."),
    ],
)
def test_wrong_use_meets_a_sentence(call, sentence):
    assert said(call) == sentence
