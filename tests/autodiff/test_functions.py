"""User primitives, autograd functions and registered operators are single steps with their own rules."""

import re

import pytest
import torch

from wonderland import autodiff
from wonderland.autodiff.rules.table import RULES
from wonderland.core import WonderlandError

D = torch.float64


@autodiff.primitive(vjp=lambda g, y, x: (g * 3 * x**2,))
def cube(x):
    """Computed by NumPy, which no recorder sees into."""
    return torch.from_numpy(x.numpy() ** 3)


@autodiff.primitive(vjp=lambda g, y, a, b: (g * b, g * a), jvp=lambda t, y, a, b: (t[0] if t[0] is not None else 0) * b)
def times(a, b):
    return torch.from_numpy(a.numpy() * b.numpy())


def test_a_primitive_is_one_decorated_function():
    x = torch.tensor([1.0, 2.0], dtype=D)
    assert cube(x).tolist() == [1, 8]
    assert autodiff.grad(lambda x: cube(x.exp()).sum())(x).allclose(3 * torch.exp(3 * x))
    assert autodiff.hessian(lambda x: cube(x).sum())(x).allclose(torch.diag(6 * x))
    assert autodiff.jvp(cube, (x,), (torch.ones_like(x),))[1].allclose(3 * x**2)
    made = autodiff.trace(lambda x: cube(x) + 1, x)
    assert [step.name for step in made.steps] == ["cube", "aten.add.Tensor"]
    assert made(x * 2).tolist() == [9, 65]
    assert "v0 = cube(x)" in str(made)


def test_a_forward_rule_of_ones_own_is_used():
    a, b = torch.tensor([2.0], dtype=D), torch.tensor([5.0], dtype=D)
    assert autodiff.jvp(lambda a: times(a, b), (a,), (torch.ones_like(a),))[1] == 5
    assert autodiff.grad(lambda a, b: times(a, b).sum(), (0, 1))(a, b) == (5, 2)


def test_a_rule_that_gives_too_few_cotangents_is_told():
    @autodiff.primitive(vjp=lambda g, y, a, b: g)
    def wrong(a, b):
        return a * b

    message = "returned 1 cotangents for 2 arguments: return one for each, None for arguments without a derivative."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        autodiff.grad(lambda x: wrong(x, x).sum())(torch.ones(1))


class Square(torch.autograd.Function):
    """With a gradient that is not the true one, so that one sees which backward pass was used."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 10 * g * x


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        inner = x.exp()
        ctx.save_for_backward(inner)
        return inner * 2

    @staticmethod
    def backward(ctx, g):
        (inner,) = ctx.saved_tensors
        return g * inner * 2


def test_autograd_functions_bring_their_backward_pass():
    x = torch.tensor([1.0, 2.0], dtype=D)
    assert autodiff.grad(lambda x: Square.apply(x).sum())(x).tolist() == [10, 20]
    assert autodiff.hessian(lambda x: Square.apply(x).sum())(x).tolist() == [[10, 0], [0, 10]]
    program = autodiff.trace(autodiff.value_and_grad(lambda x: Square.apply(x.sin()).sum()), x)
    torch.testing.assert_close(program(x * 3)[1], 10 * torch.sin(3 * x) * torch.cos(3 * x))
    assert torch.autograd.Function.apply.__func__.__module__.startswith("torch")


def test_what_an_autograd_function_hides_is_not_differentiated_twice():
    x = torch.tensor([1.0, 2.0], dtype=D)
    torch.testing.assert_close(autodiff.grad(lambda x: Hidden.apply(x).sum())(x), 2 * x.exp())
    program = autodiff.trace(autodiff.value_and_grad(lambda x: Hidden.apply(x).sum()), x)
    torch.testing.assert_close(program(x + 1)[1], 2 * (x + 1).exp())
    with pytest.raises(WonderlandError, match="saves a tensor that is neither an input nor an output"):
        autodiff.grad(lambda x: autodiff.grad(lambda x: Hidden.apply(x).sum())(x).sum())(x)


@torch.library.custom_op("wonderland_tests::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 3)


@torch.library.custom_op("wonderland_tests::lost", mutates_args=())
def lost(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 3)


triple.register_autograd(lambda ctx, g: g * 3)


def test_registered_operators_are_differentiated_by_their_backward_pass():
    x = torch.tensor([1.0, 2.0], dtype=D)
    torch.testing.assert_close(autodiff.grad(lambda x: triple(x.sin()).sum())(x), 3 * x.cos())
    message = "autodiff has no reverse rule for wonderland_tests.lost.default."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        autodiff.grad(lambda x: lost(x).sum())(x)


def test_a_rule_can_be_added_by_name():
    name = "special_bessel_j0"
    assert name not in RULES
    autodiff.rule(name, self=lambda g, n: -g * torch.special.bessel_j1(n.self))
    try:
        x = torch.tensor([0.5], dtype=D)
        torch.testing.assert_close(
            autodiff.grad(lambda x: torch.special.bessel_j0(x).sum())(x), -torch.special.bessel_j1(x)
        )
    finally:
        del RULES[name]
