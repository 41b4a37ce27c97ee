"""Stacks of blocks."""

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.channel.monet import MONet
from wonderland.nn.contract import fast_path
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.mixers.pooling import Pooling
from wonderland.nn.norms.norm import LayerNorm, RMSNorm
from wonderland.nn.positions import Rotary
from wonderland.nn.vision.residual_convolution import ResidualConvolution

BLOCK = Block.spec(mixer=Pooling.spec(), channel=MLP.spec())


def test_blocks_follow_each_other_and_a_norm_ends_them():
    stack, x = Stack(8, 3, BLOCK), torch.randn(2, 5, 8)
    h = x
    for block in stack.blocks:
        h = block(h)
    assert isinstance(stack.norm, LayerNorm)
    assert torch.allclose(stack(x), stack.norm(h), atol=1e-6)


def test_each_block_has_weights_of_its_own():
    first, second = Stack(8, 2, BLOCK).blocks
    assert not torch.equal(first.channel.inward.weight, second.channel.inward.weight)


def test_where_a_final_norm_is_needed():
    assert Stack(8, 1, Block.spec(mixer=Pooling.spec(), placement="post")).norm is None
    assert Stack(8, 1, Block.spec(mixer=Pooling.spec(), placement="parallel")).norm is not None
    assert Stack(8, 1, Pooling.spec()).norm is None
    assert Stack(8, 1, BLOCK, norm=False).norm is None
    assert isinstance(Stack(8, 1, Pooling.spec(), norm=RMSNorm.spec()).norm, RMSNorm)


def test_a_list_is_repeated():
    """MONet shifts tokens in every second block."""
    shifted, plain = (Block.spec(mixer=MONet.spec(shift=shift)) for shift in (True, False))
    assert [block.mixer.shift for block in Stack(8, 5, [shifted, plain]).blocks] == [True, False, True, False, True]


def test_a_state_for_each_block():
    stack = Stack(8, 2, BLOCK)
    _, state = stack.stream(torch.randn(3, 4, 8))
    assert len(state) == 2
    assert stack.state_numbers(100) == 2 * 2 * 8
    assert stack.receptive_field == (4, 0)


def test_a_stack_reads_a_context():
    crossing = Block.spec(mixer=Attention.spec(heads=2), cross=CrossAttention.spec(heads=2), channel=MLP.spec())
    stack = Stack(8, 2, [crossing, BLOCK]).double()
    x, context = torch.randn(2, 5, 8, dtype=torch.float64), torch.randn(2, 3, 8, dtype=torch.float64)
    expected = stack.norm(stack.blocks[1](stack.blocks[0](x, None, context)))
    assert torch.allclose(stack(x, None, context), expected)
    first, state = stack.stream(x[:, :2], stack.prepare(context))
    second, state = stack.stream(x[:, 2:], state)
    assert torch.allclose(torch.cat([first, second], 1), expected)


def test_a_spec_goes_through_json():
    spec = Stack.spec(dim=8, depth=2, block=[BLOCK, MLP.spec()])
    assert Spec.from_json(spec.to_json()) == spec
    assert [type(block).__name__ for block in Spec.from_json(spec.to_json()).build().blocks] == ["Block", "MLP"]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda: Stack(8, 0, BLOCK),
            "A stack needs a depth of at least 1 and the spec of a block, or a list of specs.",
        ),
        (lambda: Stack(8, 1, []), "A stack needs a depth of at least 1 and the spec of a block, or a list of specs."),
        (
            lambda: Stack(8, 1, ResidualConvolution.spec()),
            "nn.ResidualConvolution is no mixer, so it cannot stand in a stack.",
        ),
        (
            lambda: Stack(8, 1, BLOCK)(torch.zeros(1, 2, 8), None, torch.zeros(1, 2, 8)),
            "No block of this Stack has a cross mixer, so it reads no context: leave it out.",
        ),
        (
            lambda: Stack(8, 1, Block.spec(mixer=Pooling.spec(), cross=CrossAttention.spec())).stream(
                torch.zeros(1, 2, 8)
            ),
            "This Stack has cross mixers: give forward a context, or stream from prepare(context).",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, words):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == words


def test_a_description_cannot_ask_for_any_depth():
    with pytest.raises(WonderlandError, match=r"A stack has at most 10,000 blocks, not 16,777,216\."):
        Stack(8, 1 << 24, MLP.spec())


GPT = Block.spec(mixer=Attention.spec(heads=2), channel=MLP.spec())


def one_by_one(stack, x):
    for block in stack.blocks:
        x = block(x)
    return x


def slopes(y, stack, x):
    return torch.autograd.grad(y.square().mean(), [x, *stack.blocks.parameters()])


@pytest.mark.parametrize("rows", [2, 3, 24])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_blocks_that_are_kernels_equal_their_parts(rows, threads, monkeypatch):
    stack = Stack(8, 3, GPT, norm=False).double()
    x = torch.randn(rows, 33, 8, dtype=torch.float64, requires_grad=True)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        y = stack(x)
        found = slopes(y, stack, x)
        if rows >= threads:
            assert type(y.grad_fn).__name__ == "FirstBackward"
        with torch.no_grad():
            assert torch.allclose(stack(x), y, atol=1e-12)
        monkeypatch.setattr(fast_path, "residual_block", lambda *given: None)
        expected = one_by_one(stack, x)
        assert torch.allclose(y, expected, atol=1e-12)
        for one, two in zip(found, slopes(expected, stack, x), strict=True):
            assert torch.allclose(one, two, atol=1e-12)
    finally:
        torch.set_num_threads(before)


def test_a_block_between_others_stays_what_it_is():
    """Blocks around one that mixes otherwise or has hooks are kernels, and that one is called as it is."""
    stack = Stack(8, 5, [GPT, GPT, BLOCK, GPT, GPT], norm=False)
    x, seen = torch.randn(4, 33, 8), []
    expected = one_by_one(stack, x)
    assert torch.allclose(stack(x), expected, atol=1e-5)
    stack.blocks[3].register_forward_hook(lambda module, given, result: seen.append(result))
    assert torch.allclose(stack(x), expected, atol=1e-5)
    assert len(seen) == 1


def test_rotary_heads_that_share_keys():
    mixer = Attention.spec(heads=4, kv_heads=2, position=Rotary.spec())
    stack = Stack(16, 3, Block.spec(mixer=mixer, channel=MLP.spec(bias=True), norm=RMSNorm.spec()), norm=False).double()
    x = torch.randn(4, 33, 16, dtype=torch.float64, requires_grad=True)
    y = stack(x)
    assert type(y.grad_fn).__name__ == "FirstBackward"
    expected = one_by_one(stack, x)
    assert torch.allclose(y, expected, atol=1e-12)
    for one, two in zip(slopes(y, stack, x), slopes(expected, stack, x), strict=True):
        assert torch.allclose(one, two, atol=1e-12)


def test_many_slopes_at_once():
    stack = Stack(8, 2, GPT).double()
    x = torch.randn(4, 33, 8, dtype=torch.float64, requires_grad=True)
    y = stack(x)
    many = torch.randn(3, *y.shape, dtype=torch.float64)
    (found,) = torch.autograd.grad(y, x, many, is_grads_batched=True, retain_graph=True)
    for one, slope in zip(found, many, strict=True):
        assert torch.allclose(one, torch.autograd.grad(y, x, slope, retain_graph=True)[0], atol=1e-12)


def test_what_breaks_on_the_way_is_kept_from_those_before_it():
    stack = Stack(8, 3, GPT, norm=False)
    with torch.no_grad():
        stack.blocks[0].channel.inward.weight.mul_(1e3)
        stack.blocks[0].channel.outward.weight.mul_(1e38)
    x = torch.randn(2, 33, 8)
    x[:, :18] = 1.0  # normed to 0: nothing grows
    y = stack(x)
    (slope,) = torch.autograd.grad(y[:, :18].sum(), stack.blocks[2].mixer.project.weight, retain_graph=True)
    assert slope.isfinite().all()
    assert not y[:, -1].isfinite().all()
    assert y[:, :18].isfinite().all()
    assert torch.equal(y.isfinite(), one_by_one(stack, x).isfinite())
