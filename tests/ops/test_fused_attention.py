"""Torch's fused attention with a second derivative: the same numbers as without, and the equation's slopes of slopes."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from wonderland.nn import Alibi, Attention, CrossAttention, RelativeBias, Rotary
from wonderland.ops import fused_attention as op
from wonderland.ops.fused_attention import equation, fused_attention


def new(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def heads(groups=1):
    return new(2, 4, 5, 3), new(2, 4 // groups, 6, 3), new(2, 4 // groups, 6, 3)


SEEN = torch.ones(1, 1, 5, 6, dtype=torch.bool).tril(1)
BIASES = {"none": None, "booleans": SEEN, "numbers": torch.randn(1, 4, 5, 6, dtype=torch.float64)}


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("bias", BIASES)
def test_outputs_and_slopes_are_those_of_torch_to_the_bit(bias, groups):
    q, k, v = heads(groups)
    found = fused_attention(q, k, v, BIASES[bias], 0.7)
    bare = F.scaled_dot_product_attention(q, k, v, BIASES[bias], scale=0.7, enable_gqa=groups > 1)
    slope = torch.randn_like(found)
    assert torch.equal(found, bare)
    assert "Twice" in type(found.grad_fn).__name__
    for ours, theirs in zip(
        torch.autograd.grad(found, (q, k, v), slope), torch.autograd.grad(bare, (q, k, v), slope), strict=True
    ):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", BIASES)
def test_it_can_be_differentiated_twice(bias, groups):
    assert torch.autograd.gradgradcheck(lambda *given: fused_attention(*given, BIASES[bias], 0.7), heads(groups))


def test_causal_attention_can_be_differentiated_twice():
    given = new(1, 2, 4, 3), new(1, 2, 4, 3), new(1, 2, 4, 3)
    assert torch.autograd.gradgradcheck(lambda *given: fused_attention(*given, None, 0.7, causal=True), given)
    torch.testing.assert_close(fused_attention(*given, None, 0.7, causal=True), equation(*given, None, 0.7, True))


MIXERS = {
    "window": lambda: Attention(8, heads=2, window=2),
    "window of blocks": lambda: Attention(8, heads=2, window=1),
    "rotary": lambda: Attention(8, heads=2, position=Rotary.spec()),
    "alibi": lambda: Attention(8, heads=2, position=Alibi.spec()),
    "alibi to learn": lambda: Attention(8, heads=2, position=Alibi.spec(trainable=True)),
    "relative bias": lambda: Attention(8, heads=2, position=RelativeBias.spec(length=8)),
    "groups, both ways": lambda: Attention(8, heads=2, kv_heads=1, causal=False, window=3),
}


@pytest.mark.parametrize("name", MIXERS)
def test_every_attention_has_second_derivatives(name):
    mixer = MIXERS[name]().double()
    weights = [weight.detach().clone().requires_grad_() for weight in mixer.parameters()]
    names = [name for name, _ in mixer.named_parameters()]

    def run(x, *weights):
        return torch.func.functional_call(mixer, dict(zip(names, weights, strict=True)), (x,))

    assert torch.autograd.gradgradcheck(run, (new(2, 5, 8), *weights))


def test_a_long_sequence_has_second_derivatives():
    mixer, x = Attention(8, heads=2).double(), new(1, 300, 8)
    (slope,) = torch.autograd.grad(mixer(x).square().sum(), x, create_graph=True)
    ours = torch.autograd.grad(slope.square().sum(), x)[0]
    q, k, v = mixer.project(x).view(1, 300, 3, 2, 4).permute(2, 0, 3, 1, 4)
    y = mixer.out(equation(q, k, v, None, mixer.scale, True).transpose(1, 2).flatten(2))
    (slope,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    torch.testing.assert_close(ours, torch.autograd.grad(slope.square().sum(), x)[0])


def test_cross_attention_has_second_derivatives():
    mixer = CrossAttention(8, heads=2).double()
    assert torch.autograd.gradgradcheck(mixer, (new(2, 3, 8), new(2, 4, 8)))


def test_whoever_listens_hears_of_torchs_own_operation():
    heard = []

    class Listening(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            heard.append(func)
            return func(*args, **(kwargs or {}))

    q, k, v = heads()
    with Listening():
        y = fused_attention(q, k, v, None, 1.0)
    assert torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default in heard
    assert "Twice" not in type(y.grad_fn).__name__


def test_without_slopes_or_with_dropout_torch_does_it_alone(monkeypatch):
    monkeypatch.setattr(op._Twice, "apply", lambda *given: pytest.fail("a node was made"))
    q, k, v = heads()
    with torch.no_grad():
        fused_attention(q, k, v, None, 1.0)
    fused_attention(q, k, v, None, 1.0, dropout=0.5)
    fused_attention(q, k, v, new(1, 1, 5, 6), 1.0)
