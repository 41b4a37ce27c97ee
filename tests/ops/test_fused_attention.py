"""Torch's fused attention with a second derivative: the same numbers as without, and the equation's slopes of slopes."""

from contextlib import nullcontext
from threading import Thread

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from wonderland.nn import Alibi, Attention, CrossAttention, RelativeBias, Rotary
from wonderland.ops import fused_attention as op
from wonderland.ops.fused_attention import fused_attention, reference


def new(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def heads(groups=1):
    return new(2, 4, 5, 3), new(2, 4 // groups, 6, 3), new(2, 4 // groups, 6, 3)


SEEN = torch.ones(1, 1, 5, 6, dtype=torch.bool).tril(1)
BIASES = {"none": None, "booleans": SEEN, "numbers": torch.arange(120.0, dtype=torch.float64).cos().view(1, 4, 5, 6)}


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


# Along one random direction, or along each; the latter takes seconds.
FAST = pytest.mark.parametrize("fast", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["fast", "full"])


@FAST
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", BIASES)
def test_it_can_be_differentiated_twice(bias, groups, fast):
    assert torch.autograd.gradgradcheck(
        lambda *given: fused_attention(*given, BIASES[bias], 0.7), heads(groups), fast_mode=fast
    )


def test_causal_attention_can_be_differentiated_twice():
    given = new(1, 2, 4, 3), new(1, 2, 4, 3), new(1, 2, 4, 3)
    assert torch.autograd.gradgradcheck(lambda *given: fused_attention(*given, None, 0.7, causal=True), given)
    torch.testing.assert_close(
        fused_attention(*given, None, 0.7, causal=True), reference(*given, None, 0.7, causal=True)
    )


MIXERS = {
    "window": lambda: Attention(8, heads=2, window=2),
    "window of blocks": lambda: Attention(8, heads=2, window=1),
    "rotary": lambda: Attention(8, heads=2, position=Rotary.spec()),
    "alibi": lambda: Attention(8, heads=2, position=Alibi.spec()),
    "alibi to learn": lambda: Attention(8, heads=2, position=Alibi.spec(trainable=True)),
    "relative bias": lambda: Attention(8, heads=2, position=RelativeBias.spec(length=8)),
    "groups, both ways": lambda: Attention(8, heads=2, kv_heads=1, causal=False, window=3),
}


@FAST
@pytest.mark.parametrize("name", MIXERS)
def test_every_attention_has_second_derivatives(name, fast):
    mixer = MIXERS[name]().double()
    weights = [weight.detach().clone().requires_grad_() for weight in mixer.parameters()]
    names = [name for name, _ in mixer.named_parameters()]

    def run(x, *weights):
        return torch.func.functional_call(mixer, dict(zip(names, weights, strict=True)), (x,))

    assert torch.autograd.gradgradcheck(run, (new(2, 5, 8), *weights), fast_mode=fast)


def test_a_long_sequence_has_second_derivatives():
    mixer, x = Attention(8, heads=2).double(), new(1, 300, 8)
    (slope,) = torch.autograd.grad(mixer(x).square().sum(), x, create_graph=True)
    ours = torch.autograd.grad(slope.square().sum(), x)[0]
    q, k, v = mixer.project(x).view(1, 300, 3, 2, 4).permute(2, 0, 3, 1, 4)
    y = mixer.out(reference(q, k, v, None, mixer.scale, causal=True).transpose(1, 2).flatten(2))
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


@pytest.mark.parametrize("mixer", [Attention(8, heads=2), Attention(8, heads=2, window=2)], ids=["plain", "window"])
def test_under_autocast_it_can_be_differentiated_twice(mixer):
    x = torch.randn(2, 5, 8, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = mixer(x)
    (slope,) = torch.autograd.grad(y.float().square().sum(), x, create_graph=True)
    (found,) = torch.autograd.grad(slope.square().sum(), x)
    (slope,) = torch.autograd.grad(mixer(x).square().sum(), x, create_graph=True)
    (exact,) = torch.autograd.grad(slope.square().sum(), x)
    assert (found - exact).norm() < 0.1 * exact.norm()


@pytest.mark.parametrize("listening", ["forward", "backward"])
def test_a_checkpoint_knows_its_pieces_where_a_mode_is_on_in_one_pass_only(listening):
    mixer, x = Attention(8, heads=2, window=2), torch.randn(1, 5, 8, requires_grad=True)
    with FlopCounterMode(display=False) if listening == "forward" else nullcontext():
        y = checkpoint(mixer, x, use_reentrant=False).sum()
    with FlopCounterMode(display=False) if listening == "backward" else nullcontext():
        y.backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(mixer(x).sum(), x)[0])


def test_threads_leave_torchs_switches_as_they_were():
    def work():
        for i in range(8):
            q = torch.randn(1, 2, 40 + 7 * i, 16, requires_grad=True)
            torch.autograd.grad(fused_attention(q, q, q, None, 0.5).sum(), q, create_graph=True)
            torch.func.grad(lambda q: fused_attention(q, q, q, None, 0.5).sum())(q)

    switched = []
    real = torch._C._set_sdp_use_flash
    torch._C._set_sdp_use_flash = lambda *given: switched.append(given) or real(*given)
    try:
        threads = [Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        torch._C._set_sdp_use_flash = real
    assert switched == []
    assert torch.backends.cuda.flash_sdp_enabled()


MASKED = {
    "window": (lambda: Attention(8, heads=2, window=3), {}),
    "padding, both ways": (
        lambda: Attention(8, heads=2, causal=False),
        {"mask": torch.arange(7) < torch.tensor([[7], [4]])},
    ),
}


@pytest.mark.parametrize("name", MASKED)
def test_transforms_see_no_more_than_calls_do(name):
    """A mask of booleans hides, and is not added as ones and zeros."""
    build, more = MASKED[name]
    mixer, x = build().double(), new(2, 7, 8)
    expected = mixer(x, **more)
    found, pull = torch.func.vjp(lambda x: mixer(x, **more), x)
    torch.testing.assert_close(found, expected)
    slope = torch.randn_like(expected)
    torch.testing.assert_close(pull(slope)[0], torch.autograd.grad(expected, x, slope)[0])
    if not more:
        torch.testing.assert_close(torch.vmap(lambda x: mixer(x[None])[0])(x), expected)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_transforms_of_pieces_and_contexts_see_no_more_than_calls_do():
    mixer, x = Attention(8, heads=2, window=4).double(), new(2, 9, 8)
    with torch.no_grad():
        _, state = mixer.stream(x[:, :5])
    cross, context = CrossAttention(8, heads=2).double(), torch.randn(2, 6, 8, dtype=torch.float64)
    mask = torch.arange(6) < torch.tensor([[6], [3]])
    for call in (lambda x: mixer.stream(x[:, 5:], state)[0], lambda x: cross(x, context, context_mask=mask)):
        expected = call(x)
        value, slope = torch.func.jvp(call, (x.detach(),), (torch.ones_like(x),))
        torch.testing.assert_close(value, expected)
        ours = torch.autograd.functional.jvp(call, (x,), (torch.ones_like(x),))[1]
        torch.testing.assert_close(slope, ours)
        torch.testing.assert_close(torch.func.vjp(call, x.detach())[0], expected)
