"""One token through attention in one kernel: the same numbers as many operations give."""

import contextlib

import pytest
import torch

from wonderland.fast.compiled_step import MOST_ROWS, CompiledStep
from wonderland.nn.contract.state import consuming
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.positions import Alibi, RelativeBias, Rotary
from wonderland.ops import native

pytestmark = pytest.mark.skipif(not native.available(), reason="kernels are not built here")

FORMS = {
    "plain": {},
    "bias": {"bias": True},
    "grouped": {"kv_heads": 2},
    "own widths": {"key_dim": 3, "value_dim": 21},
    "window": {"window": 5},
    "window of one": {"window": 1},
    "scaled": {"scale": 0.7},
    "rotary": {"position": Rotary.spec()},
    "rotary, interleaved": {"position": Rotary.spec(layout="interleaved")},
    "rotary, half of it": {"position": Rotary.spec(fraction=0.5)},
    "alibi": {"position": Alibi.spec(trainable=True)},
    "alibi in a window": {"position": Alibi.spec(), "window": 4},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("consumed", [False, True])
def test_the_kernel_is_the_equation(form, dtype, consumed, monkeypatch):
    mixer = Attention(48, heads=4, **FORMS[form]).to(dtype)
    x = torch.randn(3, 37, mixer.dim, dtype=dtype)
    expected = mixer(x)
    taken = []
    real = CompiledStep.run
    monkeypatch.setattr(CompiledStep, "run", lambda *args, **named: taken.append(1) or real(*args, **named))
    with torch.no_grad(), consuming() if consumed else contextlib.nullcontext():
        y, state = mixer.stream(x[:, :2])
        outs = [y]
        for step in range(2, 37):
            y, state = mixer.stream(x[:, step : step + 1], state)
            outs.append(y)
    assert len(taken) == 35
    assert torch.allclose(torch.cat(outs, 1), expected, atol=1e-5 if dtype == torch.float32 else 1e-12)
    assert state[-1].tolist() == [37] * 3


@pytest.mark.parametrize("row", [1, 3])
def test_a_state_is_not_written_to_without_leave(row):
    mixer = Attention(24)
    with torch.no_grad():
        state = mixer.stream(torch.randn(row, 5, 24))[1]
        state = mixer.stream(torch.randn(row, 1, 24), state)[1]
        kept, x = state[0].clone(), torch.randn(2, row, 1, 24)
        one, other = mixer.stream(x[0], state)[1], mixer.stream(x[1], state)[1]
        assert torch.equal(state[0], kept)
        assert not torch.equal(one[0][:, -1], other[0][:, -1])


def test_rows_taken_from_a_consumed_state_go_their_own_way():
    mixer = Attention(24)
    x = torch.randn(2, 8, 24)
    with torch.no_grad(), consuming():
        _, state = mixer.stream(x[:, :6])
        _, state = mixer.stream(x[:, 6:7], state)
        beam = tuple(entry.index_select(0, torch.tensor([1, 1])) for entry in state)
        y, _ = mixer.stream(x[:, 7:], beam)
    expected = mixer(torch.cat([x[1:, :7].expand(2, -1, -1), x[:, 7:]], 1))[:, 7:]
    assert torch.allclose(y, expected, atol=1e-5)


def test_a_broken_past_is_not_hidden():
    mixer = Attention(24)
    x = torch.randn(1, 6, 24)
    x[0, 2, 0] = float("nan")
    with torch.no_grad():
        _, state = mixer.stream(x)
        assert mixer.stream(torch.randn(1, 1, 24), state)[0].isnan().all()


@pytest.mark.parametrize("why", ["gradients", "many rows", "a table", "dropout", "an adapter"])
def test_other_cases_take_the_other_road(why, monkeypatch):
    mixer = Attention(24, dropout=0.1, position=RelativeBias.spec(length=4) if why == "a table" else None)
    mixer.train(why == "dropout")
    if why == "an adapter":
        mixer.out = torch.nn.Sequential(mixer.out)
    monkeypatch.setattr(CompiledStep, "run", lambda *args, **named: pytest.fail("the kernel was called"))
    rows = MOST_ROWS + 1 if why == "many rows" else 2
    with contextlib.nullcontext() if why == "gradients" else torch.no_grad():
        _, state = mixer.stream(torch.randn(rows, 3, 24))
        mixer.stream(torch.randn(rows, 1, 24), state)
