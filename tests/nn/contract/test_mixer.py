"""The contract itself: bad input meets a sentence, states are copied or consumed as asked, masks hide."""

import re

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.contract.state import consuming, detach, grow, rows
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.mixers.rnn import RNN
from wonderland.nn.mixers.rwkv import RWKV

X = torch.randn(2, 3, 8)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda m: m(torch.zeros(2, 3, 5)),
            "RWKV takes a tensor (batch, time, 8) with at least one row and one position, not one of shape (2, 3, 5).",
        ),
        (
            lambda m: m(torch.zeros(2, 0, 8)),
            "RWKV takes a tensor (batch, time, 8) with at least one row and one position, not one of shape (2, 0, 8).",
        ),
        (
            lambda m: m([1, 2]),
            "RWKV takes a tensor (batch, time, 8) with at least one row and one position, not one of type list.",
        ),
        (
            lambda m: m(torch.zeros(2, 3, 8, dtype=torch.int64)),
            "RWKV takes floating point features, not torch.int64: embed tokens first.",
        ),
        (
            lambda m: m(torch.zeros(2, 3, 8, dtype=torch.complex64)),
            "RWKV takes floating point features, not torch.complex64: embed tokens first.",
        ),
        (
            lambda m: m(X.double()),
            "RWKV has weights of torch.float32 and got features of torch.float64: convert one of them with .to().",
        ),
        (
            lambda m: m.stream(X, m.start(2, dtype=torch.float64)),
            "The state of this RWKV holds torch.float64 and the input torch.float32: "
            "go on in the type that the state was made in.",
        ),
        (
            lambda m: m.stream(X, (*m.start(2)[:-1], torch.zeros(2))),
            "The state does not fit this RWKV: entry 3 holds torch.float32 where torch.int64 belongs. "
            "A state belongs to the module and the batch that made it; state=None starts anew.",
        ),
        (
            lambda m: m(X, torch.ones(2, 3)),
            "RWKV takes a mask of booleans (2, 3), True where a token is real, not torch.float32 (2, 3).",
        ),
        (
            lambda m: m(X, torch.ones(2, 4, dtype=torch.bool)),
            "RWKV takes a mask of booleans (2, 3), True where a token is real, not torch.bool (2, 4).",
        ),
        (
            lambda m: m(X, torch.tensor([[True, True, True], [False, True, True]])),
            "RWKV got a mask whose row 1 has a real token after a hidden one: put padding at the right end.",
        ),
        (
            lambda m: m(X, torch.tensor([[True, True, True], [False, False, False]])),
            "RWKV got a mask whose row 1 has no real token: leave empty sequences out of the batch.",
        ),
        (
            lambda m: m.stream(X, m.start(3)),
            "The state does not fit this RWKV: entry 0 is for 3 rows and the input has 2. "
            "A state belongs to the module and the batch that made it; state=None starts anew.",
        ),
        (
            lambda m: m.stream(X, Mamba(8).start(2)),
            "The state does not fit this RWKV: it is a tuple of 3 where a tuple of 4 belongs. "
            "A state belongs to the module and the batch that made it; state=None starts anew.",
        ),
        (
            lambda m: m.stream(X, RWKV(4).start(2)),
            "The state does not fit this RWKV: entry 0 has shape (2, 1, 4) where (2, 1, 8) belongs. "
            "A state belongs to the module and the batch that made it; state=None starts anew.",
        ),
        (
            lambda m: m.stream(X, (1, 2, 3, 4)),
            "The state does not fit this RWKV: entry 0 is a int where a tensor belongs. "
            "A state belongs to the module and the batch that made it; state=None starts anew.",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        run(RWKV(8))


def test_a_mixer_that_sees_the_future_does_not_stream():
    message = "This Attention is not causal, so it cannot stream: call it on the whole sequence."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        Attention(8, heads=2, causal=False).stream(X)


def test_a_row_without_tokens_is_allowed_in_a_stream_and_changes_nothing():
    mixer = RWKV(8)
    _, state = mixer.stream(X)
    y, after = mixer.stream(X, state, torch.tensor([[True, True, True], [False, False, False]]))
    assert (y[1] == 0).all()
    assert all(torch.equal(new[1], old[1]) for new, old in zip(after, state, strict=True))


def test_the_written_out_start_is_no_state():
    for mixer in (RWKV(8), Mamba(8), Attention(8, heads=2)):
        assert torch.allclose(mixer.stream(X, mixer.start(2))[0], mixer(X), atol=1e-6)


def test_rows_of_a_state_can_be_chosen_for_beams():
    mixer = Attention(8, heads=2)
    _, state = mixer.stream(X)
    index = torch.tensor([1, 1, 0])
    y, _ = mixer.stream(X[index], rows(state, index))
    expected, _ = mixer.stream(X, state)
    assert torch.allclose(y, expected[index], atol=1e-6)


def test_a_detached_state_truncates_the_gradient():
    mixer = RWKV(8)
    first = X.clone().requires_grad_()
    _, state = mixer.stream(first)
    y, _ = mixer.stream(X, detach(state))
    assert not torch.autograd.grad(y.sum(), first, allow_unused=True)[0]


def test_a_consumed_cache_grows_in_place_by_doubling():
    cache, places = torch.zeros(2, 0, 4), []
    with torch.no_grad(), consuming():
        for i in range(200):
            cache = grow(cache, torch.full((2, 1, 4), float(i)))
            places.append(cache.data_ptr())
    assert cache.shape == (2, 200, 4)
    assert torch.equal(cache[1, :, 2], torch.arange(200.0))
    assert len(set(places)) <= 6


def test_a_cache_is_copied_unless_it_may_be_consumed():
    with torch.no_grad(), consuming():
        cache = grow(torch.zeros(1, 1, 2), torch.ones(1, 1, 2))
    with torch.no_grad():
        one, two = grow(cache, torch.full((1, 1, 2), 2.0)), grow(cache, torch.full((1, 1, 2), 3.0))
    assert one[0, 2, 0] == 2
    assert two[0, 2, 0] == 3
    with consuming():
        assert grow(cache, torch.ones(1, 1, 2)).data_ptr() != cache.data_ptr()


def test_the_size_of_a_state_is_told_for_any_length():
    assert Attention(8, heads=2).state_numbers(100) == 100 * 16
    assert RWKV(8).state_numbers(100) == 32


def test_sizes_that_are_no_whole_numbers_are_told():
    with pytest.raises(WonderlandError, match=re.escape("Attention needs heads to be a whole number, not 2.0.")):
        Attention(8, heads=2.0)


def test_what_the_builder_gives_is_left_out_of_a_spec():
    message = "nn.RWKV is given dim where it is built: leave it out of its spec."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        RWKV.spec(dim=8).build(dim=8)


def test_a_state_of_another_kind_of_module_is_refused_though_it_would_fit():
    _, state = RNN(8).stream(torch.zeros(2, 3, 8))
    message = (
        "The state does not fit this GRU: entry 1 comes from a module of the kind RNN. "
        "A state belongs to the module and the batch that made it; state=None starts anew."
    )
    for kept in (state, rows(state, torch.tensor([1, 0])), detach(state)):
        with pytest.raises(WonderlandError, match=re.escape(message)):
            GRU(8).stream(torch.zeros(2, 1, 8), kept)
    RNN(8).stream(torch.zeros(2, 1, 8), state)


@pytest.mark.parametrize("kind", [RWKV, Mamba, GRU, Attention])
def test_a_state_from_inference_mode_is_continued_with_gradients(kind):
    mixer = kind(8)
    with torch.inference_mode():
        _, state = mixer.stream(X)
    y, _ = mixer.stream(X, state)
    y.sum().backward()
    assert torch.allclose(y, mixer(torch.cat([X, X], 1))[:, 3:], atol=1e-6)
    assert all(weight.grad is not None for weight in mixer.parameters())
