"""Implicit layers against what they are defined by: unrolled loops, exact solutions, expectations."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn import APL, KAF, Equilibrium, NeuralODE, RandomTruncation, Swish, VectorQuantiser, odeint


def test_an_equilibrium_has_the_gradients_of_the_endless_loop():
    torch.manual_seed(0)
    layer = Equilibrium(dim=4, tolerance=1e-12, steps=200).double()
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    out = layer(x)
    assert torch.allclose(layer.body(out, x), out, atol=1e-8)
    found = torch.autograd.grad(out.square().sum(), (x, *layer.parameters()))
    z = torch.zeros(3, 4, dtype=torch.float64)
    for _ in range(300):
        z = layer.body(z, x)
    expected = torch.autograd.grad(z.square().sum(), (x, *layer.parameters()))
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, atol=1e-7)


def test_the_memory_of_an_equilibrium_does_not_grow_with_its_steps():
    def kept(steps: int) -> int:
        sizes = []
        layer = Equilibrium(dim=8, steps=steps, tolerance=0.0)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
            layer(torch.randn(4, 8, requires_grad=True))
        return sum(sizes)

    assert kept(5) == kept(40) > 0


def test_odeint_solves_an_oscillator_both_ways():
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    start = torch.tensor([1.0, 0.0], dtype=torch.float64)
    end = odeint(lambda t, z: turn @ z, start, 0.0, 3.0, tolerance=1e-9)
    assert torch.allclose(
        end,
        torch.tensor([3.0]).double().cos().repeat(2) * 0
        + torch.stack([torch.tensor(3.0).double().cos(), -torch.tensor(3.0).double().sin()]),
        atol=1e-7,
    )
    assert torch.allclose(odeint(lambda t, z: turn @ z, end, 3.0, 0.0, tolerance=1e-9), start, atol=1e-6)
    late = odeint(lambda t, z: torch.full_like(z, 2 * t), torch.zeros(1).double(), 1.0, 3.0)
    assert late.item() == pytest.approx(8.0)


def test_the_adjoint_has_the_gradients_of_many_small_steps():
    torch.manual_seed(0)
    layer = NeuralODE(dim=2, hidden=5, tolerance=1e-9).double()
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    found = torch.autograd.grad(layer(x).square().sum(), (x, *layer.parameters()))
    expected = torch.autograd.grad(
        odeint(layer.body, x, 0.0, 1.0, tolerance=1e-9).square().sum(), (x, *layer.parameters())
    )
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_an_equation_that_explodes_is_told():
    with pytest.raises(WonderlandError, match=r"stopped being finite at time|too stiff"):
        odeint(lambda t, z: z**2, torch.ones(1), 0.0, 2.0)


def test_random_truncation_has_no_bias():
    torch.manual_seed(0)
    cut = RandomTruncation(keep=0.5)
    w = torch.tensor(0.8, requires_grad=True)

    def loss():
        h = torch.tensor(1.0)
        for _ in range(4):
            h = cut(h * w)
        return h

    grads = torch.tensor([torch.autograd.grad(loss(), w)[0].item() for _ in range(4000)])
    cut.eval()
    exact = torch.autograd.grad(loss(), w)[0].item()
    assert abs(grads.mean().item() - exact) < 4 * grads.std().item() / 4000**0.5
    assert (grads == 0).float().mean() > 0.3


def test_trainable_activations_begin_as_known_ones_and_learn():
    x = torch.linspace(-2, 2, 41)[:, None]
    assert torch.allclose(Swish(dim=1)(x), nn.functional.silu(x))
    assert torch.equal(APL(dim=1)(x), x.relu())
    assert (KAF(dim=1)(x) - nn.functional.elu(x)).abs().max() < 0.1
    for layer, goal in ((APL(dim=1, hinges=8), x.abs()), (KAF(dim=1), x.cos())):
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
        for _ in range(300):
            loss = (layer(x) - goal).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert loss.item() < 0.05


def test_softplus_and_elu_have_the_values_of_the_book():
    assert nn.functional.softplus(torch.tensor(0.0)).item() == pytest.approx(0.693147, abs=1e-6)
    assert nn.functional.softplus(torch.tensor(2.0)).item() == pytest.approx(2.126928, abs=1e-6)
    assert nn.functional.elu(torch.tensor(-1.0)).item() == pytest.approx(-0.632121, abs=1e-6)
    assert nn.functional.elu(torch.tensor(3.0)).item() == 3.0


def test_a_quantiser_gives_the_nearest_code_and_lets_gradients_through():
    torch.manual_seed(0)
    quantiser = VectorQuantiser(codes=5, dim=2)
    z = torch.randn(7, 2, requires_grad=True)
    q = quantiser(z)
    assert torch.allclose(q, quantiser.codes[quantiser.tokens])
    distance = (z[:, None] - quantiser.codes).norm(dim=-1)
    assert torch.equal(distance.argmin(-1), quantiser.tokens)
    q.sum().backward()
    assert torch.equal(z.grad, torch.ones(7, 2))
    assert quantiser.codes.grad is None
    quantiser(z)
    quantiser.loss.backward()
    assert quantiser.codes.grad.abs().sum() > 0


def test_what_cannot_be_meant_is_refused():
    for call, sentence in (
        (lambda: RandomTruncation(keep=0), "keep must be above 0 and at most 1, not 0."),
        (lambda: Equilibrium(dim=0), "An equilibrium needs at least one feature and one step."),
        (lambda: NeuralODE(dim=1, tolerance=0), "A neural ODE needs at least one feature and a tolerance above 0."),
        (lambda: VectorQuantiser(codes=0, dim=1), "A quantiser needs at least one code and one feature."),
        (lambda: APL(dim=1, hinges=0), "APL needs at least one hinge."),
        (lambda: KAF(dim=1, points=1), "KAF needs at least two points and a bound above 0."),
    ):
        with pytest.raises(WonderlandError) as told:
            call()
        assert str(told.value) == sentence
