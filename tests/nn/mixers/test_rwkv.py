"""RWKV: the published weights load and give the published outputs; token shift and decay do what the equations say."""

import re

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel

pytestmark = pytest.mark.filterwarnings("ignore")


def peers(dim=16):
    from transformers import RwkvConfig
    from transformers.models.rwkv.modeling_rwkv import RwkvFeedForward, RwkvSelfAttention

    torch.manual_seed(1)
    config = RwkvConfig(hidden_size=dim, num_hidden_layers=1, vocab_size=8, intermediate_size=3 * dim)
    found = RwkvSelfAttention(config, 0), RwkvFeedForward(config, 0)
    for module in found:
        for weight in module.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    return found


@pytest.mark.parametrize("index", [0, 1], ids=["time", "channel"])
def test_published_weights_give_the_published_outputs_and_gradients(index):
    theirs = peers()[index]
    ours = RWKV(16) if index == 0 else RWKVChannel(16, expand=3)
    ours.load_published(theirs.state_dict())
    x = torch.randn(2, 9, 16, requires_grad=True)
    expected, found = theirs(x)[0], ours(x)
    assert torch.allclose(found, expected, atol=1e-5)
    weight = torch.randn_like(expected)
    (dx,) = torch.autograd.grad((expected * weight).sum(), x, retain_graph=True)
    (ours_dx,) = torch.autograd.grad((found * weight).sum(), x, retain_graph=True)
    assert torch.allclose(ours_dx, dx, atol=1e-5)
    (expected * weight).sum().backward()
    (found * weight).sum().backward()
    for published, mine in ours.PUBLISHED.items():
        expected, found = theirs.get_parameter(published).grad, ours.get_parameter(mine).grad
        assert torch.allclose(found, expected.reshape(found.shape), rtol=1e-4, atol=1e-4), mine


def test_the_first_output_is_its_own_value_behind_the_gate():
    mixer = RWKV(6).double()
    x = torch.randn(1, 3, 6, dtype=torch.float64)
    first = x[:, 0]
    gate = torch.sigmoid(mixer.receptance(mixer.mix_receptance * first))
    assert torch.allclose(mixer(x)[:, 0], mixer.output(gate * mixer.value(mixer.mix_value * first)))


def test_with_full_blends_no_token_is_shifted():
    mixer = RWKVChannel(6)
    with torch.no_grad():
        mixer.mix_key.fill_(1)
        mixer.mix_receptance.fill_(1)
    x = torch.randn(1, 4, 6)
    assert torch.allclose(mixer(x)[:, 2:3], mixer(x[:, 2:3]), atol=1e-6)


def test_the_book_counts_one_decay_more():
    paper, book = RWKV(6).double(), RWKV(6, count="book").double()
    book.load_state_dict(paper.state_dict())
    x = torch.randn(1, 5, 6, dtype=torch.float64)
    assert not torch.allclose(paper(x), book(x))
    with torch.no_grad():
        paper.bonus.add_(torch.exp(paper.decay))
    assert torch.allclose(paper(x), book(x))


def test_with_a_large_decay_and_bonus_only_the_present_counts():
    mixer = RWKV(6).double()
    with torch.no_grad():
        mixer.bonus.fill_(1e3)
    x = torch.randn(1, 5, 6, dtype=torch.float64)
    before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
    value = mixer.value(torch.lerp(before, x, mixer.mix_value))
    gate = torch.sigmoid(mixer.receptance(torch.lerp(before, x, mixer.mix_receptance)))
    assert torch.allclose(mixer(x), mixer.output(gate * value))


def test_the_state_is_constant_in_time():
    assert [tuple(part.shape) for part in RWKV(8).stream(torch.randn(2, 50, 8))[1]] == [
        (2, 1, 8),
        (2, 2, 8),
        (2, 8),
        (2,),
    ]
    assert RWKV(8).state_numbers(1) == RWKV(8).state_numbers(1000) == 4 * 8


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: RWKV(8, count="books"),
            "RWKV cannot be built with dim=8, count='books': dim is at least 1, count is 'paper' or 'book'.",
        ),
        (lambda: RWKVChannel(8, expand=0), "RWKVChannel cannot be built with dim=8, expand=0: each is at least 1."),
    ],
)
def test_what_cannot_be_built_is_told(build, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        build()
