"""Compiled steps equal the mixers they stand for, and are not used where they do not fit."""

import copy
import re

import pytest
import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

from wonderland.core import WonderlandError
from wonderland.fast import entry
from wonderland.fast.compiled_step import MOST_ROWS, CompiledStep, allowed, compiled_step, longer
from wonderland.fast.decode_program import ACTIVATIONS
from wonderland.fast.step_rules import alone
from wonderland.generation.compiled import step as model_step
from wonderland.laws.compiles import _compiler_settings
from wonderland.models import Decoder
from wonderland.nn import (
    GLU,
    GRU,
    LSTM,
    MLP,
    RNN,
    RWKV,
    S4D,
    Alibi,
    Attention,
    Block,
    Learned,
    LiGRU,
    Mamba,
    RMSNorm,
    Rotary,
    RWKVChannel,
)
from wonderland.nn.contract.state import consuming, maker

MIXERS = {
    "LSTM": lambda: LSTM(9),
    "LSTM-wide": lambda: LSTM(8, state_size=11),
    "GRU": lambda: GRU(9),
    "GRU-before": lambda: GRU(9, reset="before"),
    "GRU-bare": lambda: GRU(8, bias=False),
    "RNN": lambda: RNN(9),
    "RNN-relu": lambda: RNN(8, activation="relu", state_size=5),
    "LiGRU": lambda: LiGRU(9),
    "LiGRU-identity": lambda: LiGRU(8, activation="identity"),
    "Mamba": lambda: Mamba(12, state_size=3),
    "Mamba-width-1": lambda: Mamba(8, width=1),
    "RWKV": lambda: RWKV(13),
    "RWKV-book": lambda: RWKV(8, count="book"),
    "RWKVChannel": lambda: RWKVChannel(11),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", MIXERS)
def test_a_step_equals_the_whole(name, dtype, monkeypatch):
    taken, real = [], CompiledStep.run
    monkeypatch.setattr(CompiledStep, "run", lambda *args, **named: taken.append(1) or real(*args, **named))
    mixer = MIXERS[name]().to(dtype)
    x = torch.randn(3, 6, mixer.dim, dtype=dtype)
    whole, state, outputs = mixer(x), None, []
    with torch.no_grad():
        for i in range(6):
            y, state = mixer.stream(x[:, i : i + 1], state)
            outputs.append(y)
    assert len(taken) == 5
    assert torch.allclose(torch.cat(outputs, 1), whole, atol=1e-12 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("name", MIXERS)
def test_a_step_does_not_write_into_the_state_it_was_given(name):
    mixer = MIXERS[name]()
    with torch.no_grad():
        _, state = mixer.stream(torch.randn(2, 4, mixer.dim))
        before = [part.clone() for part in state]
        mixer.stream(torch.randn(2, 1, mixer.dim), state)
    assert all(torch.equal(part, old) for part, old in zip(state, before, strict=True))


def test_steps_are_not_used_with_gradients_pieces_and_large_batches():
    like = torch.zeros(1)
    with torch.no_grad():
        assert allowed(1, 1, like)
        assert not allowed(1, 2, like)
        assert not allowed(MOST_ROWS + 1, 1, like)
        assert not allowed(1, 1, like.half())
    assert not allowed(1, 1, like)


MODELS = {
    "Mamba": {"mixer": Mamba.spec(state_size=3), "norm": RMSNorm.spec()},
    "RWKV": {"mixer": RWKV.spec(), "tie": False},
    "Attention": {"mixer": Attention.spec(heads=2, kv_heads=1, position=Rotary.spec()), "channel": GLU.spec()},
    "window": {"mixer": Attention.spec(heads=2, window=3, position=Alibi.spec()), "channel": MLP.spec(bias=True)},
    "positions": {"mixer": Attention.spec(heads=2), "position": Learned.spec(length=9)},
    "tanh": {"mixer": Attention.spec(heads=2, bias=True), "channel": MLP.spec(activation="tanh")},
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", MODELS)
def test_a_whole_model_steps_in_one_call_and_equals_itself(name, dtype):
    model = Decoder(11, 8, 3, **MODELS[name]).to(dtype).eval()
    tokens = torch.randint(11, (2, 7))
    whole = model(tokens)
    with torch.no_grad():
        logits, state = model.stream(tokens[:, :2])
        for i in range(2, 7):
            assert model_step(model, tokens[:, i : i + 1], state) is not None
            logits, state = model.stream(tokens[:, i : i + 1], state)
            assert torch.allclose(logits, whole[:, i : i + 1], atol=1e-10 if dtype == torch.float64 else 1e-5)
    assert state[0].tolist() == [7, 7]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_of_a_program_is_that_of_torch(activation):
    mixer = MLP(8, activation=activation).double()
    x = 3 * torch.randn(2, 1, 8, dtype=torch.float64)
    with torch.no_grad():
        step = compiled_step(mixer, torch.float64, 8, alone)
        assert step is not None
        y, state = step.run(x, (), x.shape)
        assert state == ()
        assert torch.allclose(y, mixer(x), atol=1e-10)


@pytest.mark.parametrize(
    "arguments",
    [
        {"mixer": S4D.spec()},
        {"mixer": Mamba.spec(rule="hold")},
        {"mixer": RWKV.spec(), "placement": "post"},
        {"mixer": RWKV.spec(), "layer_scale": 0.1},
        {"mixer": RWKV.spec(), "channel": MLP.spec(activation="elu")},
    ],
    ids=str,
)
def test_what_has_no_program_goes_without(arguments):
    model = Decoder(11, 8, 2, **arguments).eval()
    tokens = torch.randint(11, (2, 5))
    with torch.no_grad():
        _, state = model.stream(tokens[:, :4])
        assert model_step(model, tokens[:, 4:], state) is None
        logits, _ = model.stream(tokens[:, 4:], state)
    assert torch.allclose(logits, model(tokens)[:, 4:], atol=1e-5)


def test_a_token_outside_the_vocabulary_meets_a_sentence():
    model = Decoder(11, 8, 1, mixer=RWKV.spec()).eval()
    message = "Token 11 in row 0, position 0 is not in the vocabulary: tokens are 0 to 10."
    with torch.no_grad():
        _, state = model.stream(torch.zeros(1, 2, dtype=torch.int64))
        with pytest.raises(WonderlandError, match=re.escape(message)):
            model.stream(torch.tensor([[11]]), state)


class Doubled(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        return 2 * self.inside(x)


def test_an_adapter_around_a_linear_layer_is_called():
    mixer = RWKV(8)
    mixer.output = Doubled(mixer.output)
    x = torch.randn(1, 3, 8)
    with torch.no_grad():
        _, state = mixer.stream(x[:, :2])
        y, _ = mixer.stream(x[:, 2:], state)
    assert torch.allclose(y, mixer(x)[:, 2:], atol=1e-6)


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", MIXERS)
def test_a_state_of_other_numbers_never_reaches_a_kernel(name, kind):
    mixer = MIXERS[name]()
    state = mixer.start(2, dtype=kind)
    with torch.no_grad():
        assert entry.step(mixer, torch.zeros(2, 1, mixer.dim), state) is None
        with pytest.raises(WonderlandError, match="go on in the type that the state was made in"):
            mixer.stream(torch.zeros(2, 1, mixer.dim), state)


def test_a_model_refuses_a_state_of_other_numbers():
    model = Decoder(11, 8, 2, mixer=RWKV.spec()).eval()
    tokens = torch.zeros(1, 1, dtype=torch.int64)
    with torch.no_grad():
        _, state = model.stream(tokens)
        message = (
            "The state of this Decoder holds torch.float32 and its weights torch.float64: "
            "continue in the type that the state was made in."
        )
        with pytest.raises(WonderlandError, match=re.escape(message)):
            model.double().stream(tokens, state)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", MODELS)
def test_under_autocast_a_model_streams_without_programs(name, kind):
    model = Decoder(11, 8, 2, **MODELS[name]).eval()
    tokens = torch.randint(11, (2, 4))
    whole = model(tokens)
    with torch.no_grad(), torch.autocast("cpu", dtype=kind):
        _, state = model.stream(tokens[:, :3])
        logits, _ = model.stream(tokens[:, 3:], state)
    assert torch.allclose(logits.float(), whole[:, 3:], atol=0.05)


def test_room_for_one_more_is_new_unless_the_cache_is_consumed():
    cache = torch.randn(2, 3, 4)
    grown, room, copied = longer(cache, 0, None, False)
    assert (grown.shape, room, copied) == ((2, 4, 4), 0, 1)
    grown, room, copied = longer(cache, 0, None, True)
    assert (room, copied) == (16, 1)
    for known in (0, room):
        again, room, copied = longer(grown, known, None, True)
        assert (again.data_ptr(), again.shape, room, copied) == (grown.data_ptr(), (2, 5, 4), 16, 0)
    assert longer(grown, room, 9, True)[2] == 1


def test_a_count_is_counted_up_where_it_lies_only_in_the_state_a_module_gave_last_itself():
    mixers = Attention(8, heads=2), Attention(8, heads=2)
    x = torch.randn(2, 6, 8)
    with torch.no_grad(), consuming():
        _, (entries, places, seen) = mixers[0].stream(x[:, :3])
        _, (others, _, _) = mixers[1].stream(x[:, :3])
        states = [(entries, places, seen), (others, places, seen)]
        for i in range(3, 6):
            for which, mixer in enumerate(mixers):
                y, states[which] = mixer.stream(x[:, i : i + 1], states[which])
                assert torch.allclose(y, mixer(x)[:, i : i + 1], atol=1e-6)
                assert states[which][2].tolist() == [i + 1] * 2
        assert seen.tolist() == [3, 3]
        kept = states[0][2]
        assert mixers[0].stream(x[:, :1], states[0])[1][2] is kept
    with torch.no_grad():
        state = mixers[0].stream(x[:, :3])[1]
        for _ in range(2):
            state, before = mixers[0].stream(x[:, 3:4], state)[1], state
        assert before[2].tolist() == [4, 4]


def test_rows_of_a_cache_may_lie_at_any_distance():
    mixer, x = Attention(8, heads=2), torch.randn(2, 4, 8)
    with torch.no_grad(), consuming():
        _, (entries, places, seen) = mixer.stream(x[:, :3])
        apart = torch.zeros(2, 5 * 16 + 7)[:, : 3 * 16].view(2, 3, 16).copy_(entries)
        y, _ = mixer.stream(x[:, 3:], (apart, places, seen))
    assert torch.allclose(y, mixer(x)[:, 3:], atol=1e-6)


def test_a_cache_that_lies_apart_in_memory_is_gathered():
    mixer = Attention(8, heads=2)
    x = torch.randn(2, 4, 8)
    with torch.no_grad():
        _, (entries, places, seen) = mixer.stream(x[:, :3])
        apart = torch.cat([entries, entries], -1)[..., 16:]
        y, _ = mixer.stream(x[:, 3:], (apart, places, seen))
    assert torch.allclose(y, mixer(x)[:, 3:], atol=1e-6)


CHANGES = {
    "a child": lambda model: setattr(
        model.stack.blocks[1].channel, "inward", Doubled(model.stack.blocks[1].channel.inward)
    ),
    "a weight": lambda model: setattr(model.stack.norm, "weight", nn.Parameter(torch.randn(8))),
    "numbers": lambda model: model.embedding.weight.data.normal_(),
    "memory": lambda model: setattr(model.embedding.weight, "data", torch.randn(11, 8)),
    "a number": lambda model: setattr(model.stack.blocks[0].mixer, "scale", 2.0),
    "dropout": lambda model: setattr(model.train().stack.blocks[0].channel, "dropout", 0.999999),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_the_model_between_tokens_are_noticed(change):
    model = Decoder(11, 8, 2, mixer=Attention.spec(heads=2), channel=MLP.spec(bias=True)).eval()
    token = torch.zeros(2, 1, dtype=torch.int64)
    with torch.no_grad():
        _, state = model.stream(token.expand(2, 3))
        for _ in range(2):
            _, state = model.stream(token, state)
        CHANGES[change](model)
        logits, _ = model.stream(token, state)
    expected, _ = model.stream(token, state)  # with gradients, in plain operations
    if change == "dropout":
        assert model_step(model, token, state) is None
    else:
        assert torch.allclose(logits, expected, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rows", [1, 2, 5, 16, 19])
def test_rows_of_a_batch_go_through_a_program_together(name, rows):
    model = Decoder(11, 40, 2, **MODELS[name]).double().eval()
    tokens = torch.randint(11, (rows, 5))
    whole = model(tokens)
    with torch.no_grad():
        _, state = model.stream(tokens[:, :3])
        for i in (3, 4):
            logits, state = model_step(model, tokens[:, i : i + 1], state)
            assert torch.allclose(logits, whole[:, i : i + 1], atol=1e-10)


def test_a_state_may_be_continued_twice_and_another_in_between():
    model = Decoder(11, 8, 2, mixer=RWKV.spec()).eval()
    a, b = torch.randint(11, (2, 4)), torch.randint(11, (3, 5))
    with torch.no_grad():
        _, first = model.stream(a[:, :2])
        _, second = model.stream(a[:, 2:3], first)
        _, other = model.stream(b[:, :4])
        model.stream(b[:, 4:], other)
        once, _ = model.stream(a[:, 3:], second)
        twice, _ = model.stream(a[:, 3:], second)
        assert torch.equal(once, twice)
        assert torch.allclose(once, model(a)[:, 3:], atol=1e-5)
        message = "entry 0 is for 2 rows and the input has 3"
        with pytest.raises(WonderlandError, match=re.escape(message)):
            model.stream(b[:, :1], second)


def test_counts_of_one_kind_are_shared_and_stay_signed():
    model = Decoder(11, 8, 3, mixer=RWKV.spec()).eval()
    tokens = torch.randint(11, (2, 4))
    with torch.no_grad():
        _, state = model.stream(tokens[:, :3])
        _, state = model.stream(tokens[:, 3:], state)
    counts = [block[slot][-1] for block in state[1] for slot in (0, 1)]
    assert len({id(count) for count in counts}) == 2
    assert [maker(count) for count in counts[:2]] == ["RWKV", "RWKVChannel"]
    assert all(count.tolist() == [4, 4] for count in counts)


def test_a_copy_of_a_model_has_no_program_of_the_original():
    model = Decoder(11, 8, 1, mixer=RWKV.spec()).eval()
    tokens = torch.randint(11, (1, 3))
    with torch.no_grad():
        _, state = model.stream(tokens[:, :1])
        _, state = model.stream(tokens[:, 1:2], state)
        twin = copy.deepcopy(model)
        twin.embedding.weight.mul_(2)
        logits, _ = twin.stream(tokens[:, 2:], state)
    assert torch.allclose(logits, twin.stream(tokens[:, 2:], state)[0], atol=1e-6)


def test_dispatch_modes_see_operators():
    model = Decoder(11, 8, 1, mixer=RWKV.spec()).eval()
    tokens = torch.randint(11, (1, 2))
    with torch.no_grad():
        _, state = model.stream(tokens[:, :1])
        with FlopCounterMode(display=False) as counter:
            model.stream(tokens[:, 1:], state)
    assert counter.get_total_flops() > 0


@pytest.mark.parametrize("mixer", [Attention, RWKV, RWKVChannel, Mamba, GRU])
def test_hooks_are_called_in_single_steps_too(mixer):
    block = Block(8, mixer.spec()).eval()
    inner = next(one for one in block.modules() if type(one) is nn.Linear or type(one).__name__ == "LayerNorm")
    x = torch.randn(2, 4, 8)

    def streamed():
        state, found = None, []
        for i in range(4):
            y, state = block.stream(x[:, i : i + 1], state)
            found.append(y)
        return torch.cat(found, 1)

    with torch.no_grad():
        plain = streamed()
        hook = inner.register_forward_hook(lambda module, given, found: 2 * found)
        torch.testing.assert_close(streamed(), block(x))
        assert not torch.allclose(streamed(), plain)
        hook.remove()
        torch.testing.assert_close(streamed(), plain)
        assert block.__dict__["_compiled_step"].written
        own = inner.forward
        inner.forward = lambda *given: 3 * own(*given)
        torch.testing.assert_close(streamed(), block(x))
        del inner.forward
        torch.testing.assert_close(streamed(), plain)


def begun(mixer, x):
    """The state after all tokens but the last two, the last but one taken by a program."""
    _, state = mixer.stream(x[:, :-2])
    return mixer.stream(x[:, -2:-1], state)[1]


ALTERED = {
    "turned": lambda mixer: setattr(mixer.out.weight, "data", mixer.out.weight.data.t()),
    "scaled": lambda mixer: setattr(mixer, "scale", 5.0),
    "narrowed": lambda mixer: setattr(mixer, "window", 2),
}


@pytest.mark.parametrize("name", ALTERED)
def test_a_program_ends_when_what_it_was_written_from_is_altered_in_place(name):
    mixer, x = Attention(8, heads=2), torch.randn(2, 5, 8)
    with torch.no_grad():
        begun(mixer, x)
        ALTERED[name](mixer)
        parts, state = [], None
        for i in range(5):
            y, state = mixer.stream(x[:, i : i + 1], state)
            parts.append(y)
        torch.testing.assert_close(torch.cat(parts, 1), mixer(x))


def test_a_shallow_copy_has_a_program_of_its_own():
    mixer, x = Attention(8, heads=2), torch.randn(2, 5, 8)
    with torch.no_grad():
        begun(mixer, x)
        other = copy.copy(mixer)
        other.scale = 5.0
        torch.testing.assert_close(other.stream(x[:, -1:], begun(other, x))[0], other(x)[:, -1:])


def test_a_state_that_was_moved_in_memory_is_read_where_it_lies():
    mixer, x = Attention(8, heads=2), torch.randn(2, 5, 8)
    with torch.no_grad():
        state = begun(mixer, x)
        for one in state:
            one.share_memory_()
        y, state = mixer.stream(x[:, -1:], state)
        torch.testing.assert_close(y, mixer(x)[:, -1:])
        assert state[2].tolist() == [5, 5]


def test_a_subclass_has_no_rule_and_runs_in_plain_torch():
    class Silent(Attention):
        def mix(self, x, state, seen, mask):
            y, state = super().mix(x, state, seen, mask)
            return y * 0, state

    mixer, x = Silent(8, heads=2), torch.randn(2, 5, 8)
    with torch.no_grad():
        state = begun(mixer, x)
        assert entry.step(mixer, x[:, -1:], state) is None
        y, _ = mixer.stream(x[:, -1:], state)
    assert not y.any()


def test_tensors_that_are_more_than_their_numbers_are_left_to_torch():
    mixer, x = Attention(8, heads=2), torch.randn(2, 5, 8)
    with torch.no_grad():
        expected = mixer(x)[:, -1:]
        turned = torch._neg_view(-x[:, -1:])
        torch.testing.assert_close(mixer.stream(turned, begun(mixer, x))[0], expected)
        both = TwoTensor(x[:, -1:], x[:, -1:])
        torch.testing.assert_close(mixer.stream(both, begun(mixer, x))[0].a, expected)
        weight = mixer.out.weight
        mixer.out.weight = nn.Parameter(TwoTensor(weight, weight))
        torch.testing.assert_close(mixer.stream(x[:, -1:], begun(mixer, x))[0].a, expected)


def test_sparse_features_are_told_also_after_a_first_step():
    mixer, x = Attention(8, heads=2), torch.randn(2, 5, 8)
    with torch.no_grad():
        state = begun(mixer, x)
        with pytest.raises(WonderlandError, match="takes dense features"):
            mixer.stream(x[:, -1:].to_sparse(), state)


def test_programs_stay_on_the_cpu_whatever_the_default_device_is():
    model, tokens = Decoder(11, 8, 2).eval(), torch.randint(11, (2, 4))
    with torch.no_grad():
        expected = model(tokens)[:, -1:]
        _, state = model.stream(tokens[:, :-1])
        torch.set_default_device("meta")
        try:
            y, _ = model.stream(tokens[:, -1:], state)
        finally:
            torch.set_default_device(None)
    torch.testing.assert_close(y, expected)


def test_a_stream_compiles_also_after_a_step_by_a_program():
    mixer, x = Attention(8, heads=2), torch.randn(2, 5, 8)
    with torch.no_grad():
        state = begun(mixer, x)
        with _compiler_settings():
            y, _ = torch.compile(mixer.stream, backend="eager", fullgraph=True)(x[:, -1:], state)
        torch.testing.assert_close(y, mixer(x)[:, -1:])
