"""Numerical derivatives converge at their stated order, and error messages."""

import math

import pytest
import torch

from wonderland import autodiff
from wonderland.autodiff.numeric import SCHEMES, numerical_derivative, numerical_gradient, numerical_jacobian
from wonderland.core import WonderlandError


def wavy(x):
    return (torch.sin(x) * torch.exp(x / 2)).prod() + torch.tanh(x).sum()


def broken(x):
    raise RuntimeError("no such thing")


def relative(found, true):
    return ((found - true).norm() / true.norm()).item()


@pytest.mark.parametrize(("scheme", "bound"), [("forward", 1e-7), ("central", 1e-9), ("complex", 1e-15)])
def test_the_default_step_reaches_the_digits_that_the_scheme_has(scheme, bound):
    x = torch.randn(6, dtype=torch.float64)
    assert relative(numerical_gradient(wavy, x, scheme=scheme), autodiff.grad(wavy)(x)) < bound


@pytest.mark.parametrize(("scheme", "bound"), [("forward", 2e-3), ("central", 2e-4), ("complex", 1e-6)])
def test_in_single_precision_too(scheme, bound):
    x = torch.randn(6)
    true = autodiff.grad(wavy)(x.double()).float()
    assert relative(numerical_gradient(wavy, x, scheme=scheme), true) < bound


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_error_falls_with_the_stated_order(scheme):
    x = torch.tensor([0.7, -0.3], dtype=torch.float64)
    true = autodiff.grad(wavy)(x)
    errors = [relative(numerical_gradient(wavy, x, scheme=scheme, step=h), true) for h in (2e-2, 1e-2)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(SCHEMES[scheme].order, abs=0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_calls_are_as_stated(scheme):
    calls = 0

    def counted(x):
        nonlocal calls
        calls += 1
        return wavy(x)

    numerical_gradient(counted, torch.randn(5, dtype=torch.float64), scheme=scheme)
    assert calls == 5 * SCHEMES[scheme].calls


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0)])
def test_jacobians_have_the_shape_of_output_and_input(shape):
    x = torch.randn(shape, dtype=torch.float64)

    def f(x):
        return torch.stack([x.sum() ** 2, x.square().sum()])

    found = numerical_jacobian(f, x)
    assert found.shape == (2, *shape)
    torch.testing.assert_close(found, autodiff.jacobian(f)(x))


@pytest.mark.parametrize("size", [1e8, 1e-8])
def test_steps_grow_with_large_numbers(size):
    x = torch.tensor([size, 2 * size], dtype=torch.float64)
    torch.testing.assert_close(numerical_gradient(lambda x: (x**2).sum(), x), 2 * x, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_a_direction_may_have_any_length(scheme, length):
    x, v = torch.randn(4, dtype=torch.float64), length * torch.randn(4, dtype=torch.float64)
    found, true = numerical_derivative(wavy, x, v, scheme=scheme), autodiff.directional(wavy, x, v)
    assert abs(found - true) < 1e-6 * v.norm()


def test_no_direction_no_change():
    assert numerical_derivative(wavy, torch.ones(2), torch.zeros(2)) == 0


def test_the_books_directional_derivative():
    x, v = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert numerical_derivative(lambda x: (x**2).sum(), x, v).item() == pytest.approx(22, abs=1e-8)


def test_error_messages():
    x = torch.ones(2, dtype=torch.float64)
    with pytest.raises(
        WonderlandError, match=r"no scheme 'centre'; the schemes are forward, central, complex\. Did you mean"
    ):
        numerical_gradient(wavy, x, scheme="centre")
    with pytest.raises(WonderlandError, match=r"returns a scalar, not a tensor \(2,\)"):
        numerical_gradient(torch.sin, x)
    with pytest.raises(WonderlandError, match=r"not torch\.int64"):
        numerical_gradient(wavy, torch.ones(2, dtype=torch.int64))
    with pytest.raises(WonderlandError, match="not float"):
        numerical_gradient(wavy, 1.0)
    with pytest.raises(WonderlandError, match="The step must be positive, not 0"):
        numerical_gradient(wavy, x, step=0)
    with pytest.raises(WonderlandError, match="vanishes when added to 1"):
        numerical_gradient(wavy, x, step=1e-20)
    with pytest.raises(WonderlandError, match=r"direction has shape \(3,\) where x has \(2,\)"):
        numerical_derivative(wavy, x, torch.ones(3))


def test_the_complex_step_refuses_what_is_not_analytic():
    x = torch.ones(2, dtype=torch.float64)
    with pytest.raises(WonderlandError, match="returned real numbers for complex input"):
        numerical_gradient(lambda x: x.abs().sum(), x, scheme="complex")
    with pytest.raises(WonderlandError, match="needs a function that accepts complex numbers"):
        numerical_gradient(lambda x: torch.relu(x).sum(), x, scheme="complex")
    with pytest.raises(RuntimeError, match="no such thing"):
        numerical_gradient(broken, x, scheme="complex")
