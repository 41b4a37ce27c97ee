"""Self-attention: equal to its peers, to itself in pieces, and to its numbers in the books."""

import math
import re
import sys

import pytest
import torch
from torch import nn

import wonderland
from wonderland.core import WonderlandError
from wonderland.nn.contract.state import consuming, detach, rows
from wonderland.nn.mixers import attend
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import RMSNorm
from wonderland.nn.positions import Alibi, Learned, RelativeBias, Rotary, Sinusoidal
from wonderland.ops.short_attention import longest

SCHEMES = {
    "none": None,
    "rotary": Rotary.spec(),
    "rotary interleaved": Rotary.spec(layout="interleaved", fraction=0.5),
    "alibi": Alibi.spec(),
    "alibi trained": Alibi.spec(trainable=True),
    "relative": RelativeBias.spec(length=5),
    "free": RelativeBias.spec(length=17, tied=False),
}


def shaken(mixer: nn.Module) -> nn.Module:
    with torch.no_grad():
        for value in mixer.parameters():
            value += 0.3 * torch.randn_like(value)
    return mixer.double()


def gradients(y, *leaves):
    weight = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1))
    return torch.autograd.grad((y * weight).sum(), leaves)


def equal(ours, theirs, tolerance=1e-5):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_multihead_attention_of_torch(causal):
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    ours = Attention(12, heads=3, causal=causal, bias=True)
    ours.project.load_state_dict({"weight": theirs.in_proj_weight, "bias": theirs.in_proj_bias})
    ours.out.load_state_dict(theirs.out_proj.state_dict())
    x = torch.randn(2, 9, 12, requires_grad=True)
    blocked = torch.ones(9, 9, dtype=torch.bool).triu(1) if causal else None
    expected, maps = theirs(x, x, x, attn_mask=blocked, average_attn_weights=False)
    y = ours(x)
    equal([y, ours.maps(x)], [expected, maps])
    equal(
        gradients(y, x, ours.project.weight, ours.project.bias, ours.out.weight),
        gradients(expected, x, theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj.weight),
    )


def test_padding_is_key_padding_of_torch():
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, bias=False)
    ours = Attention(12, heads=3, causal=False)
    ours.project.load_state_dict({"weight": theirs.in_proj_weight})
    ours.out.load_state_dict(theirs.out_proj.state_dict())
    x, mask = torch.randn(2, 6, 12), torch.arange(6) < torch.tensor([[6], [4]])
    expected = theirs(x, x, x, key_padding_mask=~mask)[0]
    equal([ours(x, mask)[mask]], [expected[mask]])


def test_it_is_the_attention_of_gpt2():
    transformers = pytest.importorskip("transformers")
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    config = transformers.GPT2Config(n_embd=16, n_head=4, attn_implementation="eager", bos_token_id=0, eos_token_id=0)
    theirs = GPT2Attention(config, layer_idx=0).eval()
    nn.init.normal_(theirs.c_attn.bias)
    ours = Attention(16, heads=4, bias=True)
    ours.project.load_state_dict({"weight": theirs.c_attn.weight.t(), "bias": theirs.c_attn.bias})
    ours.out.load_state_dict({"weight": theirs.c_proj.weight.t(), "bias": theirs.c_proj.bias})
    x = torch.randn(2, 7, 16, requires_grad=True)
    hidden = torch.full((7, 7), -math.inf).triu(1)[None, None]
    expected, y = theirs(x, attention_mask=hidden)[0], ours(x)
    equal([y], [expected])
    found = gradients(y, x, ours.project.weight, ours.project.bias, ours.out.weight)
    equal(
        [found[0], found[1].t(), found[2], found[3].t()],
        gradients(expected, x, theirs.c_attn.weight, theirs.c_attn.bias, theirs.c_proj.weight),
    )


def test_it_is_the_grouped_rotary_attention_of_llama():
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

    config = transformers.LlamaConfig(
        hidden_size=24, num_attention_heads=6, num_key_value_heads=2, attn_implementation="eager"
    )
    theirs, turns = LlamaAttention(config, layer_idx=0).eval(), LlamaRotaryEmbedding(config)
    ours = Attention(24, heads=6, kv_heads=2, position=Rotary.spec())
    stacked = torch.cat([theirs.q_proj.weight, theirs.k_proj.weight, theirs.v_proj.weight])
    ours.project.load_state_dict({"weight": stacked})
    ours.out.load_state_dict(theirs.o_proj.state_dict())
    x = torch.randn(2, 11, 24, requires_grad=True)
    hidden = torch.full((11, 11), -math.inf).triu(1)[None, None]
    expected = theirs(x, position_embeddings=turns(x, torch.arange(11)[None]), attention_mask=hidden)[0]
    y = ours(x)
    equal([y], [expected])
    weights = (theirs.q_proj.weight, theirs.k_proj.weight, theirs.v_proj.weight)
    mine, into = gradients(y, ours.project.weight, x)
    *parts, theirs_into = gradients(expected, *weights, x)
    equal([mine, into], [torch.cat(parts), theirs_into])


def test_groups_are_repeated_keys_and_values():
    grouped, plain = Attention(8, heads=4, kv_heads=2), Attention(8, heads=4)
    q, k, v = grouped.project.weight.split([8, 4, 4])
    repeat = [part.view(2, 2, 8).repeat_interleave(2, 0).reshape(8, 8) for part in (k, v)]
    plain.project.load_state_dict({"weight": torch.cat([q, *repeat])})
    plain.out.load_state_dict(grouped.out.state_dict())
    x = torch.randn(2, 9, 8)
    equal([grouped(x)], [plain(x)], 1e-6)


def test_one_head_of_multi_query_attention_is_plain_attention():
    one, other = Attention(8, heads=1, kv_heads=1), Attention(8, heads=1)
    other.load_state_dict(one.state_dict())
    x = torch.randn(1, 5, 8)
    assert torch.equal(one(x), other(x))


def test_the_golden_value_of_two_unit_tokens():
    mixer = Attention(2, heads=1, causal=False)
    nn.init.eye_(mixer.out.weight)
    mixer.project.load_state_dict({"weight": torch.eye(2).repeat(3, 1)})
    near, far = 0.66976155, 0.33023845
    assert torch.allclose(mixer(torch.eye(2)[None]), torch.tensor([[[near, far], [far, near]]]), atol=1e-7)


def test_the_equation_written_out():
    mixer = shaken(Attention(8, heads=2, key_dim=3, value_dim=5, causal=False))
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    q, k, v = (x[0] @ mixer.project.weight.t()).split([6, 6, 10], 1)
    heads = []
    for head in range(2):
        scores = q[:, 3 * head : 3 * head + 3] @ k[:, 3 * head : 3 * head + 3].t() / math.sqrt(3)
        heads.append(scores.softmax(-1) @ v[:, 5 * head : 5 * head + 5])
    assert torch.allclose(mixer(x)[0], torch.cat(heads, 1) @ mixer.out.weight.t(), atol=1e-12)


def test_parameters_do_not_depend_on_the_sequence():
    mixer = Attention(10, heads=2, key_dim=3, value_dim=7)
    assert sum(value.numel() for value in mixer.parameters()) == 2 * (2 * 3 * 10 + 7 * 10) + 2 * 7 * 10


@pytest.mark.parametrize("options", [{}, {"kv_heads": 1}, {"window": 3}, {"causal": False}, {"position": Alibi.spec()}])
def test_heads_write_contributions_that_add_up(options):
    mixer = shaken(Attention(8, heads=4, **options))
    x, mask = torch.randn(2, 7, 8, dtype=torch.float64), torch.arange(7) < torch.tensor([[7], [4]])
    assert torch.allclose(mixer.contributions(x).sum(1), mixer(x), atol=1e-12)
    assert torch.allclose(mixer.contributions(x, mask).sum(1), mixer(x, mask), atol=1e-12)


def test_contributions_leave_the_bias_of_the_output_aside():
    mixer = shaken(Attention(8, heads=4, bias=True))
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    assert torch.allclose(mixer.contributions(x).sum(1) + mixer.out.bias, mixer(x), atol=1e-12)


def test_maps_are_points_on_the_simplex_and_hide_padding():
    mixer = shaken(Attention(8, heads=2, causal=False))
    x, mask = torch.randn(2, 5, 8, dtype=torch.float64), torch.arange(5) < torch.tensor([[5], [3]])
    maps = mixer.maps(x, mask)
    assert (maps >= 0).all()
    assert torch.allclose(maps.sum(-1), mask[:, None].expand(2, 2, 5).double())
    assert maps[1, :, :, 3:].eq(0).all()


def test_the_first_token_of_causal_attention_sees_itself_alone():
    maps = Attention(8, heads=2).maps(torch.randn(1, 5, 8))
    assert maps[:, :, 0, 0].eq(1).all()
    assert maps.triu(1).eq(0).all()


def test_hiding_the_future_after_the_softmax_would_leak():
    """The wrong form that the right one must differ from: its denominators know the future."""
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    mixer = shaken(Attention(8, heads=1, causal=False))
    wrong = mixer.maps(x).tril()
    assert (wrong.sum(-1)[..., :-1] < 1 - 1e-6).all()
    causal = Attention(8, heads=1).double()
    causal.load_state_dict(mixer.state_dict())
    assert torch.allclose(wrong / wrong.sum(-1, keepdim=True), causal.maps(x))


@pytest.mark.parametrize("window", [None, 1, 3, 8])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_ragged_pieces_give_the_whole_in_values_and_gradients(scheme, window):
    mixer = shaken(Attention(8, heads=2, window=window, position=SCHEMES[scheme]))
    x = torch.randn(3, 17, 8, dtype=torch.float64, requires_grad=True)
    pieces = torch.tensor([[5, 5, 2], [1, 0, 1], [4, 3, 0], [7, 1, 6]])
    state, at, outs, whole = None, [0, 0, 0], [], []
    for lengths in pieces:
        t = int(lengths.max())
        mask = torch.arange(t) < lengths[:, None]
        piece = [
            torch.cat([x[row, at[row] : at[row] + n], x.new_full((t - n, 8), math.nan)])
            for row, n in enumerate(lengths.tolist())
        ]
        y, state = mixer.stream(torch.stack(piece), state, mask)
        assert y[~mask].eq(0).all()
        outs.append((y, mask))
        at = [start + n for start, n in zip(at, lengths.tolist(), strict=True)]
    rowwise = [torch.cat([y[row, mask[row]] for y, mask in outs]) for row in range(3)]
    whole = [mixer(x[row : row + 1, : at[row]])[0] for row in range(3)]
    found, expected = torch.cat(rowwise), torch.cat(whole)
    assert torch.allclose(found, expected, atol=1e-11)
    leaves = (x, *mixer.parameters())
    equal(gradients(found, *leaves), gradients(expected, *leaves), 1e-9)
    assert state[-1].tolist() == at


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("window", [None, 4])
def test_masked_and_plain_pieces_mix(scheme, window):
    mixer = shaken(Attention(8, heads=2, window=window, position=SCHEMES[scheme]))
    x = torch.randn(2, 12, 8, dtype=torch.float64)
    everything = torch.ones(2, 5, dtype=torch.bool)
    a, state = mixer.stream(x[:, :4])
    b, state = mixer.stream(x[:, 4:9], state, everything)
    c, state = mixer.stream(x[:, 9:10], state)
    d, state = mixer.stream(x[:, 10:], state)
    assert torch.allclose(torch.cat([a, b, c, d], 1), mixer(x), atol=1e-12)


@pytest.mark.parametrize("t", [1, 5, 9, 10, 23])
@pytest.mark.parametrize("scheme", ["none", "rotary", "alibi", "relative"])
def test_a_window_is_a_band_of_the_maps(scheme, t):
    mixer = shaken(Attention(8, heads=2, window=4, position=SCHEMES[scheme]))
    x = torch.randn(2, t, 8, dtype=torch.float64)
    maps = mixer.maps(x)
    band = torch.ones(t, t).tril().triu(-3).bool()
    assert maps[:, :, ~band].eq(0).all()
    assert torch.allclose(mixer.contributions(x).sum(1), mixer(x), atol=1e-12)


def test_a_window_may_end_with_the_table_of_positions():
    mixer = Attention(8, heads=2, window=3, position=RelativeBias.spec(length=16, tied=False))
    mixer(torch.randn(1, 16, 8))


def test_a_window_wider_than_the_sequence_changes_nothing():
    mixer, wide = Attention(8, heads=2), Attention(8, heads=2, window=9)
    wide.load_state_dict(mixer.state_dict())
    x = torch.randn(1, 9, 8)
    assert torch.equal(mixer(x), wide(x))


def test_the_state_of_a_window_is_bounded():
    mixer = Attention(8, heads=2, window=5)
    _, state = mixer.stream(torch.randn(2, 40, 8))
    for mask in (None, torch.ones(2, 3, dtype=torch.bool)):
        for _ in range(3):
            _, state = mixer.stream(torch.randn(2, 3, 8), state, mask)
            assert state[0].shape == (2, 4, 16)
            assert state[0].untyped_storage().nbytes() <= 4 * 2 * (4 + 3 + 1) * 16
    assert [mixer.state_numbers(t) for t in (0, 2, 4, 100)] == [0, 32, 64, 64]


def test_the_state_is_two_widths_for_each_token_and_less_with_groups():
    assert Attention(8, heads=4).state_numbers(10) == 2 * 8 * 10
    assert Attention(8, heads=4, kv_heads=1).state_numbers(10) == 2 * 8 * 10 // 4


def test_one_step_builds_no_mask(monkeypatch):
    given = []
    plain = attend.fused_attention
    for name in ("nn.mixers.attend", "ops.short_attention"):
        monkeypatch.setattr(
            sys.modules[f"wonderland.{name}"],
            "fused_attention",
            lambda *args, **more: given.append(args[3]) or plain(*args, **more),
        )
    mixer = Attention(8, heads=2)
    _, state = mixer.stream(torch.randn(1, 5, 8))
    mixer.stream(torch.randn(1, 1, 8), state)
    mixer(torch.randn(1, longest(True) + 1, 8))
    assert given == [None, None]


def test_consuming_gives_the_same_numbers_without_copying_the_past():
    mixer = Attention(8, heads=2, position=Rotary.spec())
    x = torch.randn(2, 70, 8)
    places = []
    with torch.no_grad():
        expected = mixer(x)
        with consuming():
            y, state = mixer.stream(x[:, :3])
            outs = [y]
            for step in range(3, 70):
                y, state = mixer.stream(x[:, step : step + 1], state)
                outs.append(y)
                places.append(state[0].data_ptr())
    assert torch.allclose(torch.cat(outs, 1), expected, atol=1e-5)
    assert len(set(places)) <= 5


def test_consuming_works_with_masks():
    mixer = Attention(8, heads=2)
    x = torch.randn(2, 9, 8)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    with torch.no_grad():
        states = []
        for context in (torch.no_grad(), consuming()):
            with context:
                _, state = mixer.stream(x[:, :3])
                _, state = mixer.stream(x[:, 3:6], state, mask)
                y, state = mixer.stream(x[:, 6:], state)
                states.append((y, *state))
    assert all(torch.equal(one, other) for one, other in zip(*states, strict=True))


def test_without_leave_to_consume_a_state_is_not_written_to():
    mixer = Attention(8, heads=2)
    _, state = mixer.stream(torch.randn(1, 5, 8))
    kept = [entry.clone() for entry in state]
    x = torch.randn(1, 2, 8)
    first, second = mixer.stream(x, state)[0], mixer.stream(x, state)[0]
    assert torch.equal(first, second)
    assert all(torch.equal(one, other) for one, other in zip(state, kept, strict=True))


@pytest.mark.parametrize("window", [None, 4])
def test_beams_follow_their_rows(window):
    mixer = shaken(Attention(8, heads=2, window=window, position=Alibi.spec()))
    x = torch.randn(3, 9, 8, dtype=torch.float64)
    mask = torch.arange(6) < torch.tensor([[6], [4], [2]])
    _, state = mixer.stream(x[:, :6], None, mask)
    order = torch.tensor([2, 0, 0])
    y, _ = mixer.stream(x[:, 6:], rows(state, order))
    for row, source in enumerate(order.tolist()):
        alone = torch.cat([x[source, mask[source].nonzero()[:, 0]], x[row, 6:]])[None]
        assert torch.allclose(mixer(alone)[0, -3:], y[row], atol=1e-12)


def test_gradients_flow_through_the_cache_unless_it_is_cut_off():
    mixer = Attention(8, heads=2)
    x = torch.randn(1, 4, 8, requires_grad=True)
    _, state = mixer.stream(x)
    late = torch.randn(1, 1, 8)
    assert torch.autograd.grad(mixer.stream(late, state)[0].sum(), x)[0].abs().max() > 0
    cut = mixer.stream(late, detach(state))[0].sum()
    assert torch.autograd.grad(cut, x, allow_unused=True) == (None,)


def test_starting_from_a_written_out_state_is_starting():
    mixer = Attention(8, heads=2, position=Alibi.spec())
    x = torch.randn(2, 5, 8)
    assert torch.allclose(mixer.stream(x, mixer.start(2))[0], mixer(x), atol=1e-6)


def test_a_broken_token_does_not_reach_those_before_it_and_does_reach_the_rest():
    mixer = Attention(8, heads=2)
    x = torch.randn(2, 40, 8)
    y = mixer(x)
    x[0, 30, 2] = math.nan
    found = mixer(x)
    assert torch.allclose(found[0, :30], y[0, :30], atol=1e-6)
    assert found[0, 30:].isnan().all()
    assert torch.allclose(found[1], y[1], atol=1e-6)
    _, state = mixer.stream(x)
    late = mixer.stream(torch.randn(2, 1, 8), state)[0]
    assert late[0].isnan().all()
    assert late[1].isfinite().all()


def test_a_broken_token_leaves_the_window_again():
    mixer = Attention(8, heads=2, window=3)
    x = torch.randn(1, 20, 8)
    x[0, 10, 2] = math.inf
    assert mixer(x)[0].isnan().any(-1).nonzero()[:, 0].tolist() == [10, 11, 12]


def test_positions_break_the_symmetry_of_order():
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    plain = shaken(Attention(8, heads=2, causal=False))
    assert torch.allclose(plain(x.flip(1)), plain(x).flip(1))
    table = Sinusoidal(8).double().embed(torch.arange(6)[None])
    assert not torch.allclose(plain(x.flip(1) + table), plain(x + table).flip(1))


def test_dropout_acts_in_training_only():
    mixer = Attention(8, heads=2, dropout=0.5)
    x = torch.randn(1, 9, 8)
    assert not torch.equal(mixer(x), mixer(x))
    mixer.eval()
    assert torch.equal(mixer(x), mixer(x))


def test_a_step_compiles_in_one_piece():
    from wonderland.laws.compiles import _compiler_settings

    mixer = Attention(8, heads=2, position=Rotary.spec())
    x = torch.randn(2, 5, 8)
    _, state = mixer.stream(x[:, :4])
    with _compiler_settings():
        y, _ = torch.compile(mixer.proceed, fullgraph=True, backend="aot_eager")(x[:, 4:], state, None)
    assert torch.allclose(y, mixer(x)[:, 4:], atol=1e-6)


def test_heads_are_four_or_what_divides():
    assert [Attention(dim).heads for dim in (64, 6, 10, 7, 1)] == [4, 3, 2, 1, 1]


def test_a_spec_builds_each_layer_its_own():
    spec = Attention.spec(heads=2, position=RelativeBias.spec(length=4))
    one, other = (type(spec).from_json(spec.to_json()).build(dim=8) for _ in range(2))
    assert one.position is not other.position
    assert one.position.weight.shape == (7, 2)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: Attention(8, heads=3),
            "Attention cannot be built with dim=8, heads=3: heads divides dim, unless key_dim and value_dim are given.",
        ),
        (lambda: Attention(0), "Attention needs a dim, the width of its tokens, of at least 1, not 0."),
        (
            lambda: Attention(8, heads=4, kv_heads=3),
            "Attention cannot be built with dim=8, heads=4, kv_heads=3: kv_heads divides heads.",
        ),
        (
            lambda: Attention(8, heads=2, key_dim=0),
            "Attention cannot be built with dim=8, heads=2, key_dim=0, value_dim=4: widths are whole numbers from 1.",
        ),
        (
            lambda: Attention(8, heads=2, dropout=1.0),
            "Attention cannot be built with dim=8, heads=2, dropout=1.0: dropout is at least 0 and below 1.",
        ),
        (
            lambda: Attention(8, window=0),
            "Attention cannot be built with window=0: a token sees itself, so it is 1 or more.",
        ),
        (
            lambda: Attention(8, position=Learned.spec(length=4)),
            "Attention cannot use nn.Learned as its position: it takes one that rotates or biases "
            "(Rotary, Alibi, RelativeBias); one that embeds is added to the embeddings, by the model.",
        ),
        (
            lambda: Attention(8, heads=2, position=RelativeBias.spec(length=4, tied=False))(torch.zeros(1, 5, 8)),
            "RelativeBias has 4 positions and was asked for position 4, counted from 0: "
            "give shorter sequences, or build it with a larger length.",
        ),
        (
            lambda: Attention(8, causal=False).stream(torch.zeros(1, 1, 8)),
            "This Attention is not causal, so it cannot stream: call it on the whole sequence.",
        ),
        (
            lambda: Attention(8, heads=2).stream(torch.zeros(2, 1, 8), Attention(8).stream(torch.zeros(1, 1, 8))[1]),
            "The state does not fit this Attention: entry 0 is for 1 rows and the input has 2. "
            "A state belongs to the module and the batch that made it; state=None starts anew.",
        ),
    ],
)
def test_errors_say_what_to_do(build, sentence):
    with pytest.raises(WonderlandError) as error:
        build()
    assert str(error.value) == sentence


@pytest.mark.parametrize("scale", [0.0, -0.7])
@pytest.mark.parametrize(
    "options",
    [{}, {"causal": False}, {"window": 2}, {"position": Alibi.spec()}],
    ids=["causal", "both", "window", "bias"],
)
def test_a_scale_of_zero_or_below_hides_what_is_hidden(scale, options):
    mixer, x = Attention(8, heads=2, scale=scale, **options), torch.randn(2, 6, 8)
    y = mixer(x)
    assert y.isfinite().all()
    assert torch.allclose(mixer.contributions(x).sum(1), y, atol=1e-6)
    if mixer.causal:
        head, state = mixer.stream(x[:, :4])
        assert torch.allclose(torch.cat([head, mixer.stream(x[:, 4:], state)[0]], 1), y, atol=1e-6)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_a_module_of_torch_becomes_a_mixer(causal, bias):
    theirs = torch.nn.MultiheadAttention(12, 3, bias=bias, batch_first=True).double()
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    expected, _ = theirs(x, x, x, attn_mask=hidden, need_weights=False)
    assert torch.allclose(Attention.from_torch(theirs, causal=causal)(x), expected)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (torch.nn.Linear(2, 2), "Attention.from_torch takes a torch.nn.MultiheadAttention, not a Linear."),
        (
            torch.nn.MultiheadAttention(4, 2, kdim=3),
            "This torch.nn.MultiheadAttention reads keys of width 3 and values of width 4 into 4, so it is no "
            "self-attention: take CrossAttention.from_torch.",
        ),
        (
            torch.nn.MultiheadAttention(4, 2, add_zero_attn=True),
            "Attention.from_torch takes attention without bias_k, bias_v and add_zero_attn: "
            "a key that is no token has no place in a stream.",
        ),
    ],
    ids=["another module", "other widths", "a key of zeros"],
)
def test_what_is_not_self_attention_is_refused(module, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        Attention.from_torch(module)


@pytest.mark.parametrize("scale", [-80.0, 0.0, 80.0])
def test_large_scales_of_either_sign_do_not_overflow(scale):
    mixer, x = Attention(8, heads=2, scale=scale), 10 * torch.randn(2, 9, 8)
    q, k, v = (part.view(2, 9, 2, 4).transpose(1, 2) for part in mixer.project(x).split(8, -1))
    later = torch.ones(9, 9, dtype=torch.bool).triu(1)
    weights = (q @ k.transpose(-1, -2) * scale).masked_fill(later, -torch.inf).softmax(-1)
    expected = mixer.out((weights @ v).transpose(1, 2).flatten(2))
    assert torch.allclose(mixer(x), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("position", [None, Rotary.spec()])
def test_a_scale_of_nothing_sees_no_order(position):
    mixer = Attention(8, heads=2, causal=False, scale=0.0, position=position)
    promised = {law.__name__ for law in mixer.laws()}
    assert {"permutation_invariance", "permutation_equivariance"} <= promised
    assert not wonderland.check(
        mixer, torch.randn(2, 7, 8), ["permutation_invariance", "permutation_equivariance"]
    ).broken
    assert "permutation_invariance" not in {law.__name__ for law in Attention(8, heads=2, causal=False).laws()}


@pytest.mark.parametrize("over", ["head", "all"])
def test_queries_and_keys_are_normalised_before_they_are_rotated(over):
    mixer = Attention(
        8,
        heads=4,
        kv_heads=2,
        bias=True,
        out_bias=False,
        qk_norm=RMSNorm.spec(),
        qk_norm_over=over,
        position=Rotary.spec(),
    )
    shaken(mixer)
    assert mixer.out.bias is None
    x = torch.randn(2, 7, 8, dtype=torch.float64)
    q, k, _ = mixer.project(x).split((8, 4, 4), -1)
    heads = []
    for vectors, norm, count in ((q, mixer.query_norm, 4), (k, mixer.key_norm, 2)):
        split = vectors.unflatten(-1, (count, 2))
        axes = (-1,) if over == "head" else (-2, -1)
        split = split / (split.square().mean(axes, keepdim=True) + 1e-6).sqrt()
        normed = split * (norm.weight if over == "head" else norm.weight.view(count, 2))
        heads.append(mixer.position.rotate(normed, torch.arange(7)[None]).transpose(1, 2))
    scores = heads[0] @ heads[1].repeat_interleave(2, 1).transpose(-1, -2) / 2**0.5
    later = torch.ones(7, 7, dtype=torch.bool).triu(1)
    equal([mixer.maps(x)], [scores.masked_fill(later, -torch.inf).softmax(-1)])


def test_a_norm_of_queries_that_is_none_is_refused():
    for build, words in (
        (lambda: Attention(8, qk_norm=RMSNorm.spec(), qk_norm_over="row"),
         "Attention normalises queries and keys over \"head\" or \"all\", not 'row'."),
        (lambda: Attention(8, qk_norm=Attention.spec()),
         "nn.Attention is no norm of features: give qk_norm nn.RMSNorm.spec() or nn.LayerNorm.spec()."),
    ):  # fmt: skip
        with pytest.raises(WonderlandError) as error:
            build()
        assert str(error.value) == words


@pytest.mark.parametrize("window", [None, 3])
def test_scores_are_bounded_by_a_softcap(window):
    mixer = shaken(Attention(8, heads=2, kv_heads=1, softcap=0.5, window=window))
    x = 3 * torch.randn(2, 7, 8, dtype=torch.float64)
    q, k, v = mixer.project(x).split((8, 4, 4), -1)
    q, k, v = (part.unflatten(-1, (-1, 4)).transpose(1, 2) for part in (q, k, v))
    scores = 0.5 * torch.tanh(q @ k.transpose(-1, -2) / 2 / 0.5)
    behind = torch.arange(7)[:, None] - torch.arange(7)
    scores = scores.masked_fill((behind < 0) | (behind >= (window or 7)), -torch.inf)
    expected = mixer.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
    equal([mixer(x), mixer.maps(x)], [expected, scores.softmax(-1)])
    first, state = mixer.stream(x[:, :4])
    rest, _ = mixer.stream(x[:, 4:], state)
    equal([torch.cat([first, rest], 1)], [expected])
    with pytest.raises(WonderlandError, match=r"^Attention bounds its scores by a softcap above 0, not 0\.$"):
        Attention(8, softcap=0)
