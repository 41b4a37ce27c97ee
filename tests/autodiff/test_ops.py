"""The kernels of wonderland.ops are primitives: models with any mixer have first and second derivatives."""

import pytest
import torch
import torch.nn.functional as F

from wonderland import autodiff, nn
from wonderland.models.decoder import Decoder

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
MIXERS = ["Attention", "Mamba", "RWKV", "S4D", "S5", "LRU", "GRU", "LSTM", "LiGRU", "LinearAttention", "AFT",
          "CausalConvolution", "GatedConvolution", "LongConvolution"]  # fmt: skip
KERNELS = {"Mamba": "wonderland.selective_scan", "RWKV": "wonderland.wkv", "S5": "wonderland.linear_scan",
           "GRU": "wonderland.recurrence"}  # fmt: skip


def setting(mixer):
    torch.manual_seed(0)
    model = Decoder(vocab=11, dim=8, depth=2, mixer=getattr(nn, mixer).spec()).double()
    tokens = torch.randint(11, (2, 12))

    def loss(own, tokens):
        return F.cross_entropy(autodiff.call(model, own, tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    return model, tokens, loss, autodiff.parameters(model)


def slopes_of(model, tokens):
    model.zero_grad()
    F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).backward()
    return {name: value.grad for name, value in model.named_parameters()}


@pytest.mark.parametrize("mixer", MIXERS)
def test_gradients_through_kernels(mixer):
    model, tokens, loss, own = setting(mixer)
    torch.testing.assert_close(autodiff.grad(loss)(own, tokens), slopes_of(model, tokens))
    program = autodiff.trace(autodiff.value_and_grad(loss), own, tokens)
    if mixer in KERNELS:
        names = [step.name for step in program.steps]
        assert f"{KERNELS[mixer]}.default" in names
        assert f"{KERNELS[mixer]}_backward.default" in names
    other = torch.randint(11, (2, 12))
    torch.testing.assert_close(program(own, other)[1], slopes_of(model, other))


@pytest.mark.parametrize("mixer", ["Attention", "Mamba", "RWKV", "LSTM", "LinearAttention"])
def test_second_derivatives_go_through_the_equations(mixer):
    model, tokens, loss, own = setting(mixer)
    moves = {name: torch.randn_like(value) for name, value in own.items()}
    _, found = autodiff.hvp(lambda own: loss(own, tokens), (own,), (moves,))

    def theirs(own):
        logits = torch.func.functional_call(model, own, (tokens,))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    if mixer == "Attention":  # torch has no forward mode for its fused attention
        gradient = torch.func.vjp(lambda own: torch.func.grad(theirs)(own), own)[1](moves)[0]
    else:
        gradient = torch.func.jvp(torch.func.grad(theirs), (own,), (moves,))[1]
    for name, value in gradient.items():
        torch.testing.assert_close(found[name], value, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_fewer_key_heads_has_all_derivatives(causal):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, heads, 5, 3, dtype=torch.float64) for heads in (4, 2, 2))
    attend = torch.nn.functional.scaled_dot_product_attention
    few = lambda q, k, v: attend(q, k, v, is_causal=causal, enable_gqa=True)  # noqa: E731
    many = lambda q, k, v: attend(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), is_causal=causal)  # noqa: E731
    moves = (q.sin(), k + 1, v * 2)
    torch.testing.assert_close(autodiff.jvp(few, (q, k, v), moves), autodiff.jvp(many, (q, k, v), moves))
    loss = lambda f: lambda *x: f(*x).sin().sum()  # noqa: E731
    torch.testing.assert_close(autodiff.hvp(loss(few), (q, k, v), moves), autodiff.hvp(loss(many), (q, k, v), moves))
    gradients = lambda f: lambda q: sum(one.square().sum() for one in autodiff.grad(loss(f), (0, 1, 2))(q, k, v))  # noqa: E731
    torch.testing.assert_close(autodiff.grad(gradients(few))(q), autodiff.grad(gradients(many))(q))
    with autodiff.plain_rules():
        torch.testing.assert_close(
            autodiff.grad(loss(few), (0, 1, 2))(q, k, v), autodiff.grad(loss(many), (0, 1, 2))(q, k, v)
        )


def test_bags_of_embeddings_with_max_have_forward_mode():
    torch.manual_seed(0)
    index, w = torch.tensor([[0, 2, 2], [1, 5, 3]]), torch.randn(6, 3, dtype=torch.float64)
    bags = lambda w: torch.nn.functional.embedding_bag(index, w, mode="max")  # noqa: E731
    move = torch.randn_like(w)
    picked = (lambda w: w[index].amax(1))(w)
    found, moved = autodiff.jvp(bags, (w,), (move,))
    torch.testing.assert_close(found, picked)
    torch.testing.assert_close(moved, autodiff.jvp(lambda w: w[index].amax(1), (w,), (move,))[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Mamba", "RWKV", "LSTM", "GRU", "LinearAttention", "S4D", "Attention"])
def test_second_derivatives_of_mixers_are_limits_of_first_ones(name):
    torch.manual_seed(0)
    heads = {"heads": 2} if "Attention" in name else {}
    mixer, x = getattr(nn, name)(dim=4, **heads).double(), torch.randn(2, 5, 4, dtype=torch.float64)
    own = autodiff.parameters(mixer)
    move = {part: torch.randn_like(value) for part, value in own.items()}
    gradient = autodiff.grad(lambda own: autodiff.call(mixer, own, x).sin().sum())
    there, back = (gradient({part: own[part] + step * move[part] for part in own}) for step in (1e-5, -1e-5))
    found = autodiff.jvp(gradient, (own,), (move,))[1]
    again = autodiff.grad(lambda own: sum((g * move[part]).sum() for part, g in gradient(own).items()))(own)
    for part in own:
        torch.testing.assert_close(found[part], (there[part] - back[part]) / 2e-5, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(again[part], found[part])
