"""State spaces: convolution and recurrence are one thing, HiPPO is as published, and states stay bounded."""

import math
import re

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.nn.mixers.dss import DSS, geometric_sum
from wonderland.nn.mixers.lru import LRU
from wonderland.nn.mixers.s4d import S4D
from wonderland.nn.mixers.s5 import S5
from wonderland.nn.mixers.state_space import RULES, STARTS, discretise, eigenvalues, hippo

LONG = {"S4D": S4D, "S5": S5}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rule", RULES)
def test_the_convolution_of_s4d_is_its_recurrence(rule, start):
    mixer = S4D(6, state_size=3, rule=rule, start=start).double()
    x = torch.randn(2, 40, 6, dtype=torch.float64)
    assert torch.allclose(mixer(x), mixer.stream(x)[0], atol=1e-10)


@pytest.mark.parametrize(
    "build", [lambda: LRU(4, state_size=3), lambda: S5(4, state_size=3), lambda: S5(4, rule="bilinear")]
)
def test_the_kernel_of_a_state_space_is_its_recurrence(build):
    mixer = build().double()
    t = 12
    x = torch.randn(1, t, 4, dtype=torch.float64)
    kernel = mixer.kernel(t)
    h = F.conv1d(F.pad(x.mT, (t - 1, 0)), kernel.flip(0).permute(1, 2, 0)).mT + mixer.skip * x
    assert torch.allclose(mixer(x), mixer.out(F.gelu(h)))


def test_hippo_is_as_published():
    a, b = hippo(3)
    assert torch.allclose(b, torch.tensor([1, 3, 5], dtype=torch.float64).sqrt())
    expected = [[-1, 0, 0], [-math.sqrt(3), -2, 0], [-math.sqrt(5), -math.sqrt(15), -3]]
    assert torch.allclose(a, torch.tensor(expected, dtype=torch.float64))


def test_eigenvalues_of_legs_are_those_of_its_normal_part():
    a, b = hippo(8)
    normal = a + b.unsqueeze(1) * b / 2
    expected = torch.linalg.eigvals(normal)
    found = eigenvalues(4)
    assert torch.allclose(expected.real, torch.full((8,), -0.5, dtype=torch.float64))
    assert torch.allclose(expected.imag.sort().values[4:], found[:, 1])
    assert (found[:, 0] == -0.5).all()


def test_simpler_starts_are_as_published():
    assert torch.allclose(eigenvalues(3, "lin")[:, 1], math.pi * torch.arange(3, dtype=torch.float64))
    assert eigenvalues(3, "inv")[0, 1].item() == pytest.approx(6 / math.pi * 5)


@pytest.mark.parametrize("rule", RULES)
def test_a_fine_step_follows_the_differential_equation(rule):
    a, step, t = torch.tensor(-0.7 + 2j, dtype=torch.complex128), torch.tensor(1e-3, dtype=torch.float64), 2000
    decay, weight = discretise(step, a, rule)
    s = torch.zeros((), dtype=torch.complex128)
    for _ in range(t):
        s = decay * s + weight
    exact = (torch.exp(a * step * t) - 1) / a
    assert abs(s - exact) < 2e-3


def test_any_parameters_of_the_lru_are_stable():
    mixer = LRU(2, state_size=4).double()
    with torch.no_grad():
        for weight in (mixer.nu, mixer.theta):
            weight.copy_(torch.tensor([-8.0, 0.0, 2.0, -3.0]))
    assert (mixer.decay().abs() < 1).all()
    y, (state, _) = mixer.stream(torch.ones(1, 100_000, 2, dtype=torch.float64))
    assert y.isfinite().all()
    assert state.abs().max() < 1e5


def test_state_spaces_are_linear_before_their_activation():
    mixer = LRU(3, state_size=2).double()
    kernel = mixer.kernel(5)
    x, z = torch.randn(2, 5, 3, dtype=torch.float64)
    both = [torch.einsum("toi,ti->o", kernel.flip(0), y) for y in (x, z, 2 * x - 3 * z)]
    assert torch.allclose(2 * both[0] - 3 * both[1], both[2])


@pytest.mark.parametrize(
    "build", [lambda: S4D(4, state_size=3), lambda: S5(4, state_size=3), lambda: LRU(4, state_size=3)]
)
def test_states_are_constant_in_time(build):
    mixer = build()
    shapes = [[tuple(part.shape) for part in mixer.stream(torch.randn(2, t, 4))[1]] for t in (1, 30)]
    assert shapes[0] == shapes[1]
    assert mixer.state_numbers(1) == mixer.state_numbers(1000)


def test_a_long_piece_is_streamed_in_parts(monkeypatch):
    from wonderland.nn.mixers import diagonal_state_space

    mixer = S4D(3, state_size=2).double()
    x = torch.randn(2, 50, 3, dtype=torch.float64)
    mask = torch.arange(50) < torch.tensor([[50], [21]])
    expected = mixer.stream(x, None, mask)
    monkeypatch.setattr(diagonal_state_space, "AT_ONCE", 1)
    found = mixer.stream(x, None, mask)
    assert torch.allclose(found[0], expected[0])
    assert torch.allclose(found[1][0], expected[1][0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: S4D(4, state_size=0), "S4D cannot be built with dim=4, state_size=0: each is at least 1."),
        (lambda: S5(8, state_size=0), "S5 cannot be built with dim=8, state_size=0: each is at least 1."),
        (lambda: S4D(8, rule="holds"), "S4D has the rules hold, bilinear, euler, not 'holds'. Did you mean 'hold'?"),
        (lambda: S4D(8, start="leg"), "A state space starts as legs, lin, inv, not 'leg'. Did you mean 'legs'?"),
        (
            lambda: LRU(8, smallest=0.9, largest=0.5),
            "LRU cannot be built with dim=8, state_size=8, smallest=0.9, largest=0.5: "
            "sizes are at least 1, and 0 <= smallest < largest < 1.",
        ),
    ],
)
def test_what_cannot_be_built_is_told(build, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        build()


@pytest.mark.parametrize("rule", ["hold", "euler", "bilinear"])
@pytest.mark.parametrize("damping", [5.0, 6.0, 8.0])
def test_what_is_damped_at_once_stays_finite_and_streams(rule, damping):
    for mixer in (S4D(4, rule=rule), S5(4, rule=rule)):
        mixer.log_damping.data.fill_(damping)
        mixer.log_step.data.zero_()
        x = torch.randn(1, 9, 4, requires_grad=True)
        y = mixer(x)
        torch.testing.assert_close(mixer.stream(x)[0], y)
        assert mixer.kernel(9).isfinite().all()
        for slope in torch.autograd.grad(y.sum() + mixer.kernel(9).sum(), [x, *mixer.parameters()]):
            assert slope.isfinite().all()


def test_an_lru_that_forgets_at_once_has_a_kernel():
    mixer = LRU(4)
    mixer.nu.data.fill_(5.0)
    kernel = mixer.kernel(6)
    assert kernel.isfinite().all()
    assert kernel[1:].abs().max() < 1e-6
    assert all(slope.isfinite().all() for slope in torch.autograd.grad(kernel.sum(), [mixer.nu, mixer.theta]))


def test_the_responses_of_dss_are_a_softmax_over_its_length():
    """The equation of Gupta, Gu and Berant, 2022, with the softmax written out."""
    torch.manual_seed(0)
    mixer = DSS(3, state_size=4, length=50).double()
    step, a, w = mixer.continuous()
    exponents = (step * a).unsqueeze(2) * torch.arange(50)
    softmax = exponents.exp() / exponents.exp().sum(2, keepdim=True)
    assert torch.allclose(mixer.kernel(50), (w.unsqueeze(2) * softmax).sum(1).real.T)
    held = DSS(3, state_size=4, length=None).double()
    step, a, w = held.continuous()
    expected = (w * (torch.exp(step * a) - 1) / a).unsqueeze(2) * ((step * a).unsqueeze(2) * torch.arange(50)).exp()
    assert torch.allclose(held.kernel(50), expected.sum(1).real.T)


def test_a_geometric_sum_is_its_terms():
    z = torch.tensor([-1e-9 + 0j, -1e-5 + 1e-5j, -0.5 + 3j, -40 + 1j, -500 + 0j], dtype=torch.complex128)
    for length in (1, 7, 300):
        terms = torch.exp(z.unsqueeze(1) * torch.arange(length)).sum(1)
        assert torch.allclose(geometric_sum(z, length), terms, rtol=1e-9)
    with pytest.raises(WonderlandError) as told:
        DSS(4, length=0)
    assert str(told.value) == "DSS is normalised over at least one step, not 0."
