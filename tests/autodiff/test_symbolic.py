"""Symbolic expressions agree with traces, and grow faster than programs."""

import math
import sys
from itertools import pairwise

import pytest
import sympy
import torch

from wonderland import autodiff
from wonderland.autodiff.symbolic import evaluate, expression, swell, symbolic_derivative, symbols
from wonderland.autodiff.trace import trace
from wonderland.core import WonderlandError


def test_the_books_derivative_prints_as_in_the_book():
    found = symbolic_derivative(lambda x, a, b: a * torch.sin(x) + b * x * torch.sin(x), "x", "a", "b")
    assert str(found) == "a*cos(x) + b*x*cos(x) + b*sin(x)"


def test_the_known_derivatives():
    assert str(symbolic_derivative(lambda x: x**5, "x")) == "5*x**4"
    assert str(symbolic_derivative(torch.log, "x")) == "1/x"
    assert str(symbolic_derivative(torch.sin, "x")) == "cos(x)"
    assert str(symbolic_derivative(lambda x, a: x * a, "x", "a", by="a")) == "x"


FORMULAS = {
    "arithmetic": lambda x: (1 - x) / (2 + x) - 3 * x + x / 4 - (-x),
    "powers": lambda x: x**3 + x.square() + torch.sqrt(x) + torch.rsqrt(x) + x.reciprocal() + 2**x,
    "exponentials": lambda x: torch.exp(x) * torch.log(x) + torch.log1p(x) * torch.expm1(x),
    "waves": lambda x: torch.sin(x) * torch.cos(x) + torch.tan(x),
    "hyperbolic": lambda x: torch.sinh(x) * torch.cosh(x) + torch.tanh(x),
    "inverses": lambda x: torch.asin(x / 4) + torch.acos(x / 4) * torch.atan(x),
    "squashes": lambda x: torch.sigmoid(x) * torch.erf(x),
    "constants": lambda x: x * torch.tensor(0.3, dtype=torch.float64) + 0.1,
    "scaled": lambda x: torch.add(x, x**2, alpha=3) - torch.sub(x, x**3, alpha=2) + torch.rsub(x, 1, alpha=2),
    "shapes": lambda x: (
        torch.stack([x, x**2, x**3])[1:].reshape(2, 1).expand(2, 3).t().unsqueeze(0).squeeze(0) @ x.expand(2)
    ).sum(),
    "joined": lambda x: torch.cat([x.reshape(1), x.reshape(1) ** 2]).prod() + torch.stack([x, x**2]).mean(),
    "matrices": lambda x: (
        torch.stack([x, x**2, x, x]).view(2, 2) @ torch.ones(2, 2, dtype=torch.float64)
    ).sum([0]).dot(torch.stack([x, 1 / x])),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_have_the_value_and_the_slope_of_the_function(name):
    f, at = FORMULAS[name], 0.8125
    x = torch.tensor(at, dtype=torch.float64)
    value, gradient = autodiff.value_and_grad(f)(x)
    assert float(evaluate(expression(f, "x"), x=at)) == pytest.approx(value.item(), rel=1e-14)
    assert float(evaluate(symbolic_derivative(f, "x"), x=at)) == pytest.approx(gradient.item(), rel=1e-13)


def test_vectors_have_a_symbol_for_each_entry():
    found = expression(trace(lambda x: (x[0] * x[1] ** 2).sin(), torch.ones(2)))
    assert str(found) == "sin(x_0*x_1**2)"
    gradient = "2*x_0*x_1*cos(x_0*x_1**2)"
    assert str(sympy.diff(found, symbols("x", (2,))[1])) == gradient
    recorded = trace(lambda x: (x[0] * x[1] ** 2).sin(), torch.ones(2))
    assert str(symbolic_derivative(recorded, by="x_1")) == gradient
    assert str(symbolic_derivative(recorded)) == "x_1**2*cos(x_0*x_1**2)"
    assert str(symbolic_derivative(recorded, "w", by="w_1")) == gradient.replace("x", "w")


def test_values_have_as_many_digits_as_wanted():
    assert str(evaluate(expression(torch.exp, "x"), 50, x=1.0)) == "2.7182818284590452353602874713526624977572470937000"
    assert float(evaluate(expression(lambda x: x * 3, "x"), x=0.1)) == pytest.approx(0.3, rel=1e-15)


def test_formulas_swell_and_programs_do_not():
    rows = swell(lambda x: x * torch.sin(x), range(1, 7))
    assert [row.derivative for row in rows] == [4, 24, 88, 272, 768, 2048]
    assert [row.steps for row in rows] == [2, 4, 6, 8, 10, 12]
    growth = {b.reverse - a.reverse for a, b in pairwise(rows)}
    assert len(growth) == 1
    assert rows[-1].derivative > 30 * rows[-1].reverse > 30 * rows[-1].steps
    assert rows[-1].shared < rows[-1].derivative / 20


def test_error_messages(monkeypatch):
    with pytest.raises(WonderlandError, match=r"aten.relu.default .* has no formula. Supported: .*acos, add"):
        expression(torch.relu, "x")
    with pytest.raises(WonderlandError, match="Name the arguments"):
        expression(torch.sin)
    with pytest.raises(WonderlandError, match="A formula needs a function that returns a scalar"):
        expression(trace(torch.sin, torch.ones(2)))
    with pytest.raises(WonderlandError, match="1 inputs and was given 2 names"):
        expression(trace(torch.sin, torch.tensor(1.0)), "x", "y")
    with pytest.raises(WonderlandError, match="no value without y"):
        evaluate(expression(lambda x, y: x + y, "x", "y"), x=1.0)
    with pytest.raises(WonderlandError, match="no argument 'z'; the arguments are x, y"):
        symbolic_derivative(lambda x, y: x + y, "x", "y", by="z")
    with pytest.raises(WonderlandError, match="A formula cannot contain inf"):
        expression(lambda x: x * math.inf, "x")
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(
        WonderlandError, match=r"sympy is needed to write derivatives as formulas: pip install 'wonderland\[symbolic\]'"
    ):
        expression(torch.sin, "x")
