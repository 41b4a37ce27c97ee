"""Methods for the gradient of a function, with error and cost of each."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from examples.derivatives.functions import Subject
from wonderland import autodiff
from wonderland.autodiff.numeric import SCHEMES, numerical_gradient
from wonderland.autodiff.symbolic import evaluate, expression, symbols
from wonderland.autodiff.tangents import literal_forward, literal_reverse
from wonderland.autodiff.trace import Trace, trace

FORWARD, CENTRAL, COMPLEX = "forward difference", "central difference", "complex step"
SYMBOLIC, LITERAL, LITERAL_BACK = "symbolic", "literal forward", "literal reverse"
PRODUCTS, REVERSE = "forward mode (jvp)", "reverse mode (vjp)"


@dataclass(frozen=True)
class Result:
    """The gradient by a method, its relative error, how often the function ran, operations, and milliseconds.

    Operations are those of arithmetic: a pass through the function, or through its tangent or reverse program, counts what
    its trace counts; the literal forms count the products of Jacobians, a formula the operations that it writes.
    """

    subject: str
    way: str
    gradient: Tensor
    error: float
    passes: int
    operations: int
    milliseconds: float


def truth(subject: Subject) -> tuple[Tensor, Tensor, int]:
    """The gradient by formulas to 40 digits and to 17, and the operations that the formulas write."""
    formula = expression(trace(subject.function, subject.x), "x")
    gradients = [formula.diff(symbol) for symbol in symbols("x", (len(subject.point),))]
    values = {f"x_{place}": value for place, value in enumerate(subject.point)}
    exact, plain = (
        [
            float(
                evaluate(gradient, digits, **{k: v for k, v in values.items() if k in map(str, gradient.free_symbols)})
            )
            for gradient in gradients
        ]
        for digits in (40, 17)
    )
    operations = sum(int(gradient.count_ops()) for gradient in gradients)
    return torch.tensor(exact, dtype=torch.float64), torch.tensor(plain, dtype=torch.float64), operations


def by_products(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The gradient by forward mode: a product with the derivative for each coordinate."""
    return torch.stack([autodiff.jvp(f, (x,), (unit,))[1] for unit in torch.eye(len(x), dtype=x.dtype)])


def compare(subject: Subject) -> list[Result]:
    """All ways on one function."""
    f, x, n = subject.function, subject.x, len(subject.point)
    program = trace(f, x)
    began = time.perf_counter()
    true, formula, written = truth(subject)
    spent = 1e3 * (time.perf_counter() - began)
    tangent = trace(lambda x, v: autodiff.jvp(f, (x,), (v,))[1], x, x).flops
    results = [Result(subject.name, SYMBOLIC, formula, _error(formula, true), 0, written, spent)]
    ways: list[tuple[str, Callable[[], Tensor], int, int]] = []
    for name, scheme in ((FORWARD, "forward"), (CENTRAL, "central"), (COMPLEX, "complex")):
        calls = n * SCHEMES[scheme].calls
        ways.append((name, lambda scheme=scheme: numerical_gradient(f, x, scheme=scheme), calls, calls * program.flops))
    for name, literal in ((LITERAL, literal_forward), (LITERAL_BACK, literal_reverse)):
        accumulated = literal(program, x)
        ways.append(
            (name, lambda literal=literal: _gradient(literal, program, x), 1, accumulated.products + program.flops)
        )
    ways.append((PRODUCTS, lambda: by_products(f, x), n, n * tangent))
    ways.append((REVERSE, lambda: autodiff.grad(f)(x), 1, program.reverse().flops))
    for name, way, passes, operations in ways:
        began = time.perf_counter()
        gradient = way()
        spent = 1e3 * (time.perf_counter() - began)
        results.append(Result(subject.name, name, gradient, _error(gradient, true), passes, operations, spent))
    return results


def _gradient(literal: Callable, program: Trace, x: Tensor) -> Tensor:
    return literal(program, x).jacobians[0]


def _error(gradient: Tensor, true: Tensor) -> float:
    return ((gradient - true).norm() / true.norm()).item()
