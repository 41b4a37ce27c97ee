"""The attention-free transformer: its definition in every form, and what the forms have in common."""

import re

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.mixers import aft
from wonderland.nn.mixers.aft import AFT


def definition(mixer, x):
    t = x.shape[1]
    q, k, v = mixer.qkv(x).chunk(3, 2)
    places = torch.arange(t).unsqueeze(0)
    w = torch.zeros(1, t, t, dtype=x.dtype) if mixer.form == "simple" else mixer.pairs(places, places)
    if mixer.causal:
        w = w.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -torch.inf)
    weights = torch.exp(k.unsqueeze(1) + w.unsqueeze(3))
    return mixer.out(torch.sigmoid(q) * (weights * v.unsqueeze(1)).sum(2) / weights.sum(2))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("options", [{}, {"form": "local", "window": 2}, {"form": "full"}, {"form": "full", "rank": 2}])
def test_it_is_the_definition(options, causal):
    mixer = AFT(6, causal=causal, length=9, **options).double()
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    assert torch.allclose(mixer(x), definition(mixer, x))


def test_with_no_weights_for_pairs_the_full_form_is_the_simple_one():
    full, simple = AFT(6, form="full", length=8).double(), AFT(6).double()
    with torch.no_grad():
        full.bias.zero_()
    simple.load_state_dict({name: weight for name, weight in full.state_dict().items() if name != "bias"})
    x = torch.randn(1, 8, 6, dtype=torch.float64)
    assert torch.allclose(full(x), simple(x))


def test_beyond_the_window_nothing_is_trained():
    mixer = AFT(4, form="local", window=2, length=6)
    places = torch.arange(6).unsqueeze(0)
    far = (places.mT - places).abs() >= 2
    assert (mixer.pairs(places, places)[0][far] == 0).all()


def test_many_rows_are_taken_in_pieces_with_the_same_answer(monkeypatch):
    mixer = AFT(4, form="full", length=12).double()
    x = torch.randn(2, 12, 4, dtype=torch.float64, requires_grad=True)
    expected = mixer(x)
    (grad,) = torch.autograd.grad(expected.square().sum(), x)
    monkeypatch.setattr(aft, "AT_ONCE", 1)
    found = mixer(x)
    assert torch.allclose(found, expected)
    assert torch.allclose(torch.autograd.grad(found.square().sum(), x)[0], grad)


def test_keys_of_a_thousand_stay_finite():
    for form in ("simple", "full"):
        assert AFT(4, form=form, length=5)(1e4 * torch.randn(1, 5, 4)).isfinite().all()


def test_the_simple_form_has_a_constant_state():
    assert AFT(8).state_numbers(1) == AFT(8).state_numbers(999) == 3 * 8
    assert AFT(8, form="full").state_numbers(10) == 10 * 16


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: AFT(8, form="ful"), "AFT has the forms simple, local, full, not 'ful'. Did you mean 'full'?"),
        (
            lambda: AFT(8, window=0),
            "AFT cannot be built with dim=8, length=256, window=0, rank=None: each is at least 1.",
        ),
        (
            lambda: Block(4, AFT.spec(form="local", length=3, rank=1))(torch.zeros(1, 4, 4)),
            "This AFT knows positions up to 3 and the sequence has 4: build it with a larger length.",
        ),
        (
            lambda: AFT(4, form="full", length=3)(torch.zeros(1, 4, 4)),
            "This AFT knows positions up to 3 and the sequence has 4: build it with a larger length.",
        ),
        (
            lambda: AFT(4, form="full", length=3).stream(
                torch.zeros(1, 2, 4), AFT(4, form="full", length=3).stream(torch.zeros(1, 2, 4))[1]
            ),
            "This AFT knows positions up to 3 and the stream has come to 4: build it with a larger length.",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        run()
