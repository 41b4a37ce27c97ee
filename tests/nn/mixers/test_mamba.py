"""Mamba: the published weights load and give the published outputs; its parts do what the equations say."""

import re

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.mamba import Mamba

pytestmark = pytest.mark.filterwarnings("ignore")


def peer(dim=16, state_size=4):
    from transformers import MambaConfig
    from transformers.models.mamba.modeling_mamba import MambaMixer

    torch.manual_seed(1)
    config = MambaConfig(hidden_size=dim, state_size=state_size, vocab_size=8, num_hidden_layers=1)
    theirs = MambaMixer(config, layer_idx=0)
    for weight in theirs.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return theirs


def loaded(theirs):
    ours = Mamba(theirs.hidden_size, state_size=theirs.ssm_state_size)
    ours.load_published(theirs.state_dict())
    return ours


def test_published_weights_give_the_published_outputs_and_gradients():
    theirs = peer()
    ours = loaded(theirs)
    x = torch.randn(2, 11, 16, requires_grad=True)
    expected, found = theirs(x), ours(x)
    assert torch.allclose(found, expected, atol=1e-5)
    weight = torch.randn_like(expected)
    (dx,) = torch.autograd.grad((expected * weight).sum(), x, retain_graph=True)
    (ours_dx,) = torch.autograd.grad((found * weight).sum(), x, retain_graph=True)
    assert torch.allclose(ours_dx, dx, atol=1e-4)
    (expected * weight).sum().backward()
    (found * weight).sum().backward()
    pairs = {"A_log": "A_log", "D": "D", "in_proj.weight": "in_proj.weight", "x_proj.weight": "x_proj.weight",
             "dt_proj.weight": "dt_proj.weight", "dt_proj.bias": "dt_proj.bias", "out_proj.weight": "out_proj.weight",
             "conv_bias": "conv1d.bias", "conv_weight": "conv1d.weight"}  # fmt: skip
    for mine, published in pairs.items():
        expected, found = theirs.get_parameter(published).grad, ours.get_parameter(mine).grad
        assert torch.allclose(found, expected.reshape(found.shape), rtol=1e-4, atol=1e-4), mine


def test_weights_of_another_size_are_refused():
    message = (
        "A_log has shape (32, 4) in the published weights and (32, 3) in this Mamba: build it with the same sizes."
    )
    with pytest.raises(WonderlandError, match=re.escape(message)):
        Mamba(16, state_size=3).load_published(peer().state_dict())


def test_missing_weights_are_named():
    weights = {name: weight for name, weight in peer().state_dict().items() if name != "D"}
    with pytest.raises(WonderlandError, match=re.escape("The published weights have no 'D', which Mamba needs.")):
        Mamba(16, state_size=4).load_published(weights)


def test_the_state_is_constant_in_time():
    mixer = Mamba(8, state_size=3)
    sizes = {t: [tuple(part.shape) for part in mixer.stream(torch.randn(2, t, 8))[1]] for t in (1, 2, 50)}
    assert sizes[1] == sizes[2] == sizes[50] == [(2, 3, 16), (2, 3, 16), (2,)]
    assert mixer.state_numbers(1) == mixer.state_numbers(10**6) == 3 * 16 + 3 * 16


def test_without_a_step_nothing_is_remembered():
    mixer = Mamba(4, state_size=2, width=1)
    with torch.no_grad():
        mixer.dt_proj.bias.fill_(-1e3)
        mixer.dt_proj.weight.zero_()
    _, state = mixer.stream(torch.randn(1, 5, 4))
    assert state[1].abs().max() < 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 0}, "Mamba needs a dim, the width of its tokens, of at least 1, not 0."),
        ({"dim": 8.0}, "Mamba needs a dim, the width of its tokens, of at least 1, not 8.0."),
        (
            {"dim": 8, "width": 0},
            "Mamba cannot be built with dim=8, state_size=16, expand=2, width=0, rank=1: each is at least 1.",
        ),
        ({"dim": 8, "rule": "zoh"}, "Mamba has the rules euler, hold, bilinear, not 'zoh'."),
    ],
)
def test_what_cannot_be_built_is_told(arguments, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        Mamba(**arguments)


def test_biases_are_where_they_are_asked_for():
    plain, full = Mamba(8, conv_bias=False), Mamba(8, bias=True)
    assert plain.conv_bias is None
    assert plain.in_proj.bias is None
    assert full.in_proj.bias is not None
    assert full.out_proj.bias is not None
    x = torch.randn(1, 5, 8)
    with torch.no_grad():
        for mixer in (plain, full):
            state, found = None, []
            for step in range(5):
                y, state = mixer.stream(x[:, step : step + 1], state)
                found.append(y)
            assert torch.allclose(torch.cat(found, 1), mixer(x), atol=1e-5)
