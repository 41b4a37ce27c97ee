"""Decode sessions: many steps equal the whole text read at once, and end when the model changes."""

import pytest
import torch

from wonderland import generation
from wonderland.core import WonderlandError
from wonderland.fast.decode_session import DecodeSession
from wonderland.generation import generate
from wonderland.generation.compiled import decode_session
from wonderland.generation.reading import Reader
from wonderland.models import Decoder
from wonderland.nn import GRU, LSTM, RWKV, Alibi, Attention, LayerNorm, Learned, Mamba, RMSNorm, Rotary, Sinusoidal

MODELS = {
    "attention": {},
    "window": {"mixer": Attention.spec(heads=2, window=4, position=Rotary.spec())},
    "window-1": {"mixer": Attention.spec(heads=2, window=1)},
    "alibi": {"mixer": Attention.spec(heads=4, kv_heads=2, position=Alibi.spec())},
    "learned": {"mixer": Attention.spec(heads=2), "position": Learned.spec(length=40)},
    "mamba": {"mixer": Mamba.spec(state_size=4)},
    "rwkv": {"mixer": RWKV.spec(), "embed_norm": LayerNorm.spec()},
    "gru": {"mixer": GRU.spec(), "embed_norm": RMSNorm.spec(), "norm": RMSNorm.spec()},
    "mixed": {"mixer": [LSTM.spec(), Attention.spec(heads=2)], "tie": False},
}


def made(name: str, dtype: torch.dtype = torch.float64) -> Decoder:
    torch.manual_seed(0)
    return Decoder(vocab=11, dim=8, depth=2, **MODELS[name]).to(dtype).eval()


@pytest.mark.parametrize("name", MODELS)
def test_steps_of_a_session_are_the_whole_text(name):
    model, text = made(name), torch.randint(11, (3, 30))
    with torch.no_grad():
        whole = model(text)
        state = model.stream(text[:, :3])[1]
        kept = [tensor.clone() for tensor in tensors(state)]
        session = decode_session(model, state)
        assert isinstance(session, DecodeSession)
        for at in range(3, 30):
            logits = session.step(text[:, at].tolist())
            assert logits is not None
            assert torch.allclose(logits, whole[:, at], atol=1e-12)
        assert all(torch.equal(old, new) for old, new in zip(kept, tensors(state), strict=True))
        # What it reached is a state like any other.
        after, _ = model.stream(text[:, :5], session.state)
        again, _ = model.stream(text[:, :5], model.stream(text)[1])
        assert torch.allclose(after, again, atol=1e-12)


def tensors(state) -> list[torch.Tensor]:
    return [state] if isinstance(state, torch.Tensor) else [one for part in state for one in tensors(part)]


def test_float32_works_too():
    model, text = made("attention", torch.float32), torch.randint(11, (1, 9))
    with torch.no_grad():
        session = decode_session(model, model.stream(text[:, :1])[1])
        found = [session.step([token]).clone() for token in text[0, 1:].tolist()]
    assert torch.allclose(torch.cat(found), model(text)[0, 1:], atol=1e-5)


def test_positions_that_are_computed_and_gradients_do_without():
    model = Decoder(vocab=11, dim=8, depth=1, position=Sinusoidal.spec()).eval()
    _, state = model.stream(torch.zeros(1, 2, dtype=torch.int64))
    with torch.no_grad():
        assert decode_session(model, state) is None
    model = made("attention")
    _, state = model.stream(torch.zeros(1, 2, dtype=torch.int64))
    assert decode_session(model, state) is None
    assert len(generate(model, [[1, 2]], 3).tokens[0]) == 3


def test_a_change_of_the_model_or_an_observer_ends_a_session():
    model = made("attention")
    with torch.no_grad():
        session = decode_session(model, model.stream(torch.zeros(1, 2, dtype=torch.int64))[1])
        assert session.step([1]) is not None
    assert session.step([1]) is None  # gradients are on
    with torch.no_grad():
        assert session.step([11]) is None
        assert session.step([1]) is not None
        model.embedding.weight = torch.nn.Parameter(torch.zeros_like(model.embedding.weight))
        assert session.step([1]) is None


def test_weights_that_change_between_tokens_are_read():
    model, other = made("attention"), made("attention")

    def double(token):
        if len(seen) == 3:
            with torch.no_grad():
                model.stack.norm.weight.mul_(-1)
            model.stack.norm.weight = torch.nn.Parameter(model.stack.norm.weight.clone())
        seen.append(token.id)

    seen: list[int] = []
    written = generate(model, [[1, 2]], 8, temperature=0, on_token=double).tokens[0]
    expected, text = [], [1, 2]
    for at in range(8):
        if at == 4:
            with torch.no_grad():
                other.stack.norm.weight.mul_(-1)
        logits = other(torch.tensor([text]))[0, -1]
        expected.append(int(logits.argmax()))
        text.append(expected[-1])
    assert written == expected


def test_a_position_beyond_the_table_is_the_sentence_of_the_model():
    model = made("learned")
    reader = Reader(model)
    with torch.no_grad():
        state = reader.session(model.stream(torch.zeros(1, 40, dtype=torch.int64))[1])
    with pytest.raises(WonderlandError, match="40"):
        reader.step([1], state, torch.device("cpu"))


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_end_leave_the_others_as_they_were(name):
    model = made(name)
    prompts = [[1], [2, 3], [4, 5, 6], [7, 8], [9]]
    together = generate(model, prompts, 12, stop=[0, 1, 2], seed=3)
    for row, prompt in enumerate(prompts):
        alone = generate(model, [prompt], 12, stop=[0, 1, 2], seed=3, rows=[row])
        assert alone.tokens[0] == together.tokens[row]
    assert generation.beam_search(model, [[1, 2]], 6, beams=3)[0].tokens
