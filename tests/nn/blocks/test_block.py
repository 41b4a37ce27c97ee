"""Blocks: any mixers on one residual stream."""

import pytest
import torch
import torch.nn.functional as F
from jaxtyping import TypeCheckError
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.fast import entry
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.contract import fast_path
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.mixers.pooling import Pooling
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.mixers.shift import Shift
from wonderland.nn.norms.norm import LayerNorm, NoNorm, RMSNorm
from wonderland.nn.positions import Rotary
from wonderland.nn.vision.residual_convolution import ResidualConvolution
from wonderland.optim.groups import groups

ATTENTION = Attention.spec(heads=2)


def test_shapes_are_kept_at_any_length():
    """T10-16."""
    block = Block(8, ATTENTION, channel=MLP.spec())
    for t in (1, 2, 17):
        assert block(torch.randn(3, t, 8)).shape == (3, t, 8)


def test_the_norm_stands_before():
    block = Block(8, ATTENTION, channel=MLP.spec(), norm=RMSNorm.spec())
    x = torch.randn(2, 5, 8)
    h = x + block.mixer(block.norms[0](x))
    assert torch.allclose(block(x), h + block.channel(block.norms[1](h)), atol=1e-6)
    assert isinstance(block.norms[0], RMSNorm)


def test_the_norm_stands_after():
    block = Block(8, ATTENTION, channel=MLP.spec(), placement="post")
    x = torch.randn(2, 5, 8)
    h = block.norms[0](x + block.mixer(x))
    assert torch.allclose(block(x), block.norms[1](h + block.channel(h)), atol=1e-6)


@pytest.mark.parametrize("before", [True, False])
def test_it_is_torchs_encoder_layer(before):
    theirs = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=before).double()
    ours = Block(
        8,
        Attention.spec(heads=2, causal=False, bias=True),
        channel=MLP.spec(hidden=16, bias=True),
        placement="pre" if before else "post",
    ).double()
    pairs = [
        (ours.mixer.project.weight, theirs.self_attn.in_proj_weight), (ours.mixer.project.bias, theirs.self_attn.in_proj_bias),
        (ours.mixer.out.weight, theirs.self_attn.out_proj.weight), (ours.mixer.out.bias, theirs.self_attn.out_proj.bias),
        (ours.channel.inward.weight, theirs.linear1.weight), (ours.channel.inward.bias, theirs.linear1.bias),
        (ours.channel.outward.weight, theirs.linear2.weight), (ours.channel.outward.bias, theirs.linear2.bias),
    ]  # fmt: skip
    with torch.no_grad():
        for own, other in pairs:
            own.copy_(nn.init.normal_(other, std=0.3))
    x = torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(ours(x), theirs(x), atol=1e-10)
    ours(x).square().sum().backward()
    theirs(x).square().sum().backward()
    for own, other in pairs:
        assert torch.allclose(own.grad, other.grad, atol=1e-9)


def test_parallel_slots_share_a_norm_and_their_projections_can_be_fused():
    """T11-15."""
    block = Block(8, ATTENTION, channel=MLP.spec(), placement="parallel")
    x = torch.randn(2, 5, 8)
    h = block.norms[0](x)
    assert len(block.norms) == 1
    assert torch.allclose(block(x), x + block.mixer(h) + block.channel(h), atol=1e-6)
    fused = F.linear(h, torch.cat([block.mixer.project.weight, block.channel.inward.weight]))
    q, k, v, hidden = fused.split([8, 8, 8, 32], -1)
    q, k, v = (one.view(2, 5, 2, 4).transpose(1, 2) for one in (q, k, v))
    read = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    out = torch.cat([block.mixer.out.weight, block.channel.outward.weight], 1)
    assert torch.allclose(block(x), x + torch.cat([read, F.gelu(hidden)], -1) @ out.T, atol=1e-5)


def test_one_query_head_is_the_same_with_shared_keys():
    """T11-18."""
    block, other = Block(8, Attention.spec(heads=1)), Block(8, Attention.spec(heads=1, kv_heads=1))
    other.load_state_dict(block.state_dict())
    x = torch.randn(2, 5, 8)
    assert torch.equal(block(x), other(x))


def test_both_slots_may_have_a_state():
    block = Block(8, RWKV.spec(), channel=RWKVChannel.spec()).double()
    x = torch.randn(2, 6, 8, dtype=torch.float64)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    whole = block(x, mask)
    pieces, state = [], None
    for start, end in ((0, 1), (1, 4), (4, 6)):
        y, state = block.stream(x[:, start:end], state, mask[:, start:end])
        pieces.append(y)
    assert torch.allclose(torch.cat(pieces, 1), whole, atol=1e-12)
    assert len(state) == 2


def test_norms_of_each_branch_stand_where_the_equations_say():
    x = torch.randn(2, 5, 8)
    blocks = {
        name: Block(8, ATTENTION, channel=MLP.spec(), placement=name)
        for name in ("parallel_each", "branch", "sandwich")
    }
    for name, block in blocks.items():
        for norm in block.norms:
            torch.nn.init.normal_(norm.weight)
        norms, mixer, channel = block.norms, block.mixer, block.channel
        if name == "parallel_each":
            expected = x + mixer(norms[0](x)) + channel(norms[1](x))
        elif name == "branch":
            h = x + norms[0](mixer(x))
            expected = h + norms[1](channel(h))
        else:
            h = x + norms[2](mixer(norms[0](x)))
            expected = h + norms[3](channel(norms[1](h)))
        torch.testing.assert_close(block(x), expected)


@pytest.mark.parametrize("placement", ["pre", "post", "parallel"])
def test_padding_is_zero_after_every_placement(placement):
    block = Block(8, ATTENTION, channel=MLP.spec(bias=True), placement=placement)
    for norm in block.norms:
        nn.init.normal_(norm.bias)
    x = torch.randn(2, 4, 8)
    mask = torch.tensor([[True] * 4, [True, False, False, False]])
    x[1, 1:] = torch.nan
    y = block(x, mask)
    assert (y[1, 1:] == 0).all()
    assert torch.allclose(y[1, :1], block(x[1:, :1])[0], atol=1e-5)


def test_layer_scale_starts_each_branch_small():
    block = Block(8, Pooling.spec(), channel=MLP.spec(), layer_scale=0.0)
    x = torch.randn(2, 5, 8)
    assert torch.equal(block(x), x)
    assert [tuple(scale.shape) for scale in block.scales] == [(8,), (8,)]


def test_weight_decay_spares_norms_and_scales():
    block = Block(8, Pooling.spec(), channel=MLP.spec(), layer_scale=0.1)
    decayed, spared = groups(block, weight_decay=0.1)
    assert [tuple(parameter.shape) for parameter in decayed["params"]] == [(32, 8), (8, 32)]
    assert len(spared["params"]) == 2 * 2 + 2


def test_drop_path_drops_whole_rows_in_training_only():
    block = Block(8, Shift.spec(), drop_path=0.5)
    x = torch.randn(64, 3, 8)
    kept = block(x) - x
    branch = block.mixer(block.norms[0](x))
    for row in range(64):
        assert torch.allclose(kept[row], torch.zeros(3, 8)) or torch.allclose(kept[row], 2 * branch[row], atol=1e-5)
    dropped = int((kept.abs().amax((1, 2)) == 0).sum())
    assert 10 < dropped < 54
    block.eval()
    assert torch.allclose(block(x), x + branch, atol=1e-6)


def test_a_block_is_causal_when_its_slots_are():
    assert Block(8, ATTENTION, channel=MLP.spec()).causal
    assert not Block(8, Attention.spec(causal=False), channel=MLP.spec()).causal


def test_how_far_a_block_sees():
    assert Block(8, Pooling.spec(window=4), channel=RWKVChannel.spec()).receptive_field == (4, 0)
    assert Block(8, Pooling.spec(window=4), channel=RWKVChannel.spec(), placement="parallel").receptive_field == (3, 0)
    assert Block(8, RWKV.spec()).receptive_field is None


def test_a_block_reads_a_context():
    block = Block(8, ATTENTION, channel=MLP.spec(), cross=CrossAttention.spec(heads=2)).double()
    x, context = torch.randn(2, 5, 8, dtype=torch.float64), torch.randn(2, 3, 8, dtype=torch.float64)
    seen = torch.tensor([[True] * 3, [True, False, False]])
    h = x + block.mixer(block.norms[0](x))
    h = h + block.cross(block.norms[1](h), context, None, seen)
    expected = h + block.channel(block.norms[2](h))
    assert torch.allclose(block(x, None, context, seen), expected)
    state, pieces = block.prepare(context, seen), []
    for start, end in ((0, 2), (2, 3), (3, 5)):
        y, state = block.stream(x[:, start:end], state)
        pieces.append(y)
    assert torch.allclose(torch.cat(pieces, 1), expected)


def test_a_spec_goes_through_json():
    spec = Block.spec(dim=8, mixer=ATTENTION, channel=MLP.spec(expansion=2), norm=LayerNorm.spec(bias=False))
    again = Spec.from_json(spec.to_json())
    assert again == spec
    assert again.build().channel.inward.out_features == 16


CROSS = Block.spec(dim=8, mixer=ATTENTION, cross=CrossAttention.spec(heads=2))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda: Block(8, ATTENTION, placement="before"),
            "A norm stands 'pre', 'post', 'parallel', 'parallel_each', 'branch', 'sandwich', not 'before'.",
        ),
        (lambda: Block(8, ATTENTION, first="norm"), "The slot that comes first is 'mixer' or 'channel', not 'norm'."),
        (
            lambda: Block(8, MLP(8)),
            "The mixer of a block is a spec such as nn.MLP.spec(), which is built once a layer, not a built MLP.",
        ),
        (
            lambda: Block(8, ATTENTION, channel="mlp"),
            "The channel of a block is a spec such as nn.MLP.spec(), which is built once a layer, not 'mlp'.",
        ),
        (
            lambda: Block(8, ResidualConvolution.spec()),
            "nn.ResidualConvolution is no Mixer, so it cannot be the mixer of a block.",
        ),
        (
            lambda: Block(8, ATTENTION)(torch.zeros(1, 2, 8), None, torch.zeros(1, 2, 8)),
            "This Block has no cross mixer, so it reads no context: leave it out or give cross.",
        ),
        (
            lambda: CROSS.build()(torch.zeros(1, 2, 8)),
            "This Block has a cross mixer: give forward a context, or stream from prepare(context).",
        ),
        (
            lambda: CROSS.build().stream(torch.zeros(1, 2, 8)),
            "This Block has a cross mixer: give forward a context, or stream from prepare(context).",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, words):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == words


JOINED = {
    "layer norm": {},
    "rms norm": {"norm": RMSNorm.spec()},
    "biases": {"mixer": Attention.spec(heads=2, bias=True), "channel": MLP.spec(bias=True, activation="relu")},
    "rotary": {"mixer": Attention.spec(heads=2, kv_heads=1, position=Rotary.spec())},
    "not causal": {"mixer": Attention.spec(heads=2, causal=False)},
    "wide window": {"mixer": Attention.spec(heads=2, window=100)},
}


@pytest.mark.parametrize("name", JOINED)
def test_slots_in_one_kernel_are_the_slots_one_by_one(name, monkeypatch):
    block = Block(8, **{"mixer": Attention.spec(heads=2), "channel": MLP.spec(), **JOINED[name]}).double()
    x = torch.randn(4, 20, 8, dtype=torch.float64, requires_grad=True)
    results, taken = [], []
    for at_once in (True, False):
        real = entry.residual_block
        monkeypatch.setattr(
            fast_path,
            "residual_block",
            lambda *given: taken.append(real(*given)) or taken[-1] if at_once else None,  # noqa: B023
        )
        y = block(x)
        results.append([y, *torch.autograd.grad(y.sin().sum(), [x, *block.parameters()])])
    assert len(taken) == 2
    assert None not in taken
    assert all(torch.allclose(one, two, atol=1e-10) for one, two in zip(*results, strict=True))


def fuses(block: Block, x: torch.Tensor) -> list[bool]:
    pairs = zip(block.parts(), block.norms, strict=True)
    return [entry.residual_block(part, norm, x) is not None for part, norm in pairs]


def test_hooks_of_parts_are_called():
    block, x = Block(8, mixer=Attention.spec(heads=2), channel=MLP.spec()), torch.randn(4, 20, 8)
    assert fuses(block, x) == [True, True]
    for at in (block.mixer.project, block.norms[0], block.mixer):
        handle = at.register_forward_hook(lambda *_: None)
        assert fuses(block, x) == [False, True]
        handle.remove()
    seen: list[str] = []
    handle = block.channel.inward.register_forward_hook(lambda *_: seen.append("inward"))
    block(x)
    assert seen == ["inward"]
    handle.remove()
    with torch.nn.modules.module.register_module_forward_hook(lambda *_: None):
        assert fuses(block, x) == [False, False]
    assert fuses(block, x) == [True, True]


def test_what_drops_adapts_or_scales_goes_slot_by_slot():
    x = torch.randn(4, 20, 8)
    block = Block(8, mixer=Attention.spec(heads=2, dropout=0.5), channel=MLP.spec(dropout=0.5))
    assert fuses(block, x) == [False, False]
    assert fuses(block.eval(), x) == [True, True]
    block.channel.inward = torch.nn.Sequential(block.channel.inward)
    block.mixer.out.forward = lambda x: x
    assert fuses(block, x) == [False, False]
    for more in ({"dropout": 0.5}, {"drop_path": 0.5}, {"layer_scale": 0.1}):
        torch.manual_seed(0)
        block = Block(8, mixer=Attention.spec(heads=2), channel=MLP.spec(), **more)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fast_path, "residual_block", lambda *_: pytest.fail("fused"))
            block(x)


def test_a_broken_token_in_a_long_batch_is_kept_from_those_before_it():
    block, x = Block(8, mixer=Attention.spec(heads=2), channel=MLP.spec()), torch.randn(4, 20, 8)
    clean = block(x)
    x[1, 11] = float("nan")
    y = block(x)
    assert torch.allclose(y[1, :11], clean[1, :11], atol=1e-6)
    assert torch.allclose(y[[0, 2, 3]], clean[[0, 2, 3]], atol=1e-6)
    assert y[1, 11].isnan().all()


@pytest.mark.parametrize(
    "inner",
    [
        {"mixer": Block.spec(mixer=Attention.spec(heads=2), channel=MLP.spec())},
        {"mixer": Stack.spec(depth=2, block=Block.spec(mixer=Attention.spec(heads=2)))},
        {"mixer": Attention.spec(heads=2), "channel": Block.spec(mixer=MLP.spec())},
    ],
)
def test_blocks_within_blocks_stream(inner):
    block, x = Block(8, **inner).double().eval(), torch.randn(2, 5, 8, dtype=torch.float64)
    expected, pieces, state = block(x), [], None
    with torch.no_grad():
        for token in x.split(1, 1):
            y, state = block.stream(token, state)
            pieces.append(y)
    assert torch.allclose(torch.cat(pieces, 1), expected, atol=1e-12)


@pytest.mark.parametrize("first", ["mixer", "channel"])
def test_a_token_that_breaks_within_a_block_is_kept_from_those_before_it(first):
    block, x = Block(64, mixer=Attention.spec(heads=4), channel=MLP.spec(), first=first), torch.randn(4, 33, 64)
    x[:, 23] = 1e37
    assert block(x).isfinite().all(-1).tolist() == [[True] * 23 + [False] * 10] * 4


@pytest.mark.parametrize(
    "misfit",
    [
        lambda block: setattr(block.mixer, "project", torch.nn.Linear(64, 100)),
        lambda block: setattr(block.mixer, "out", torch.nn.Linear(32, 64)),
        lambda block: setattr(block.norms[0], "weight", torch.nn.Parameter(torch.ones(8))),
        lambda block: setattr(block.mixer, "heads", 8),
    ],
)
def test_weights_of_other_sizes_are_no_business_of_kernels(misfit):
    block = Block(64, mixer=Attention.spec(heads=4), channel=MLP.spec())
    misfit(block)
    with pytest.raises((RuntimeError, WonderlandError, TypeCheckError)):  # under test annotations speak first
        block(torch.randn(4, 33, 64))


def test_each_norm_of_a_block_may_have_a_kind_of_its_own():
    block = Block(8, mixer=Pooling.spec(), channel=MLP.spec(), norm=[NoNorm.spec(), RMSNorm.spec()])
    assert [type(norm).__name__ for norm in block.norms] == ["NoNorm", "RMSNorm"]
    x = torch.randn(2, 5, 8)
    h = x + block.mixer(x)
    torch.testing.assert_close(block(x), h + block.channel(block.norms[1](h)))
    with pytest.raises(WonderlandError) as error:
        Block(8, mixer=Pooling.spec(), norm=[RMSNorm.spec(), RMSNorm.spec()])
    assert str(error.value) == "A list of norms has one spec for each of the norms of this Block, 1, not 2."
