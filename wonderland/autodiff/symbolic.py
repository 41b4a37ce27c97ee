"""Symbolic derivatives: a traced function becomes a SymPy expression."""

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step, Value, map_tree
from wonderland.autodiff.trace import Trace, trace
from wonderland.core import WonderlandError, nearest, need

Expression = Any


def expression(f: Callable[..., Tensor] | Trace, *names: str) -> Expression:
    """A scalar function as a formula: its trace, with symbols for its inputs.

    A function is traced with a number for each name; where it branches on values, the formula has the branch that was
    taken. Given a trace, vector inputs become a symbol for each entry (x_0, x_1, ...). Supported are arithmetic, powers,
    elementary functions, sums and matrix products.

    Book: Alice 6.1.2.

    >>> expression(lambda x: torch.sin(2 * x) * x + 0.5, "x")
    x*sin(2*x) + 1/2
    """
    sympy = _sympy()
    if not isinstance(f, Trace):
        if not names:
            raise WonderlandError("Name the arguments of the function: expression(f, 'x', 'a').")
        f = trace(f, *(torch.tensor(0.5 + number / 8, dtype=torch.float64) for number in range(len(names))))
    symbol_names = list(names) or f.labels
    if len(symbol_names) != len(f.inputs):
        raise WonderlandError(f"The trace has {len(f.inputs)} inputs and was given {len(symbol_names)} names.")
    formulas: dict[int, np.ndarray] = {
        id(value): symbols(name, value.shape) for value, name in zip(f.inputs, symbol_names, strict=True)
    }
    for value, tensor in f.constants:
        formulas[id(value)] = _entrywise(_exact)(np.array(tensor.tolist(), dtype=object))
    for step in f.steps:
        formulas[id(step.result)] = _translated(step, formulas)
    if len(f.outputs) != 1 or not isinstance(f.outputs[0], Value) or f.outputs[0].numel != 1:
        raise WonderlandError(
            f"A formula needs a function that returns a scalar, and {f.name} returns more: take .sum(), or an entry."
        )
    return sympy.sympify(formulas[id(f.outputs[0])].reshape(()).item())


def symbols(name: str, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Symbols for a tensor: x for a number, x_0, x_1, ... for the entries of a vector, x_0_1 for those of a matrix.

    >>> symbols("x", (2,)).tolist()
    [x_0, x_1]
    """
    entries = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        entries[index] = _sympy().Symbol("_".join([name, *map(str, index)]), real=True)
    return entries


def symbolic_derivative(f: Callable[..., Tensor] | Trace, *names: str, by: str | None = None) -> Expression:
    r"""The derivative of a function as a formula, with respect to its first argument unless `by` names another.

    Sum, product and chain rule: :math:`(fg)' = f'g + fg'`, :math:`(f \circ g)' = (f' \circ g)\, g'`. The formula may
    repeat what f computes once (`swell`).

    Book: Alice 2.2.1, 6.1.2 (code box C.6.1); D2L 2.4.

    >>> symbolic_derivative(lambda x, a, b: a * torch.sin(x) + b * x * torch.sin(x), "x", "a", "b")
    a*cos(x) + b*x*cos(x) + b*sin(x)
    """
    formula = expression(f, *names)
    known = list(names)
    if isinstance(f, Trace):
        pairs = zip(f.inputs, known or f.labels, strict=True)
        known = [str(symbol) for value, name in pairs for symbol in symbols(name, value.shape).flat]
    by = known[0] if by is None else by
    if by not in known:
        raise WonderlandError(f"There is no argument {by!r}; the arguments are {', '.join(known)}.{nearest(by, known)}")
    return _sympy().diff(formula, _sympy().Symbol(by, real=True))


def evaluate(formula: Expression, digits: int = 40, **values: float) -> Expression:
    """The value of a formula to any number of digits: a reference to measure rounding errors against.

    >>> evaluate(symbolic_derivative(torch.exp, "x"), 30, x=1.0)
    2.71828182845904523536028747135
    """
    sympy = _sympy()
    exact = {sympy.Symbol(name, real=True): sympy.Rational(value) for name, value in values.items()}
    missing = sorted(map(str, formula.free_symbols - set(exact)))
    if missing:
        raise WonderlandError(f"The formula has no value without {', '.join(missing)}.")
    return sympy.N(formula.xreplace(exact), digits)


@dataclass(frozen=True)
class Swell:
    """Operation counts for a function repeated `depth` times and for its derivative, as formulas and as traces."""

    depth: int
    formula: int
    derivative: int
    shared: int
    steps: int
    reverse: int


def swell(f: Callable[[Tensor], Tensor], depths: Iterable[int]) -> list[Swell]:
    r"""Expression swell: operations in the derivative of :math:`f \circ \dots \circ f`, as a formula and as a program.

    A formula repeats shared subexpressions (`derivative`), a program computes them once: `reverse` is the length of the
    trace of value and gradient, `steps` that of the value alone. `shared` counts the operations of the formula after common
    subexpression elimination, which accounts for most of the difference. Book: Alice 6.1.2.

    >>> rows = swell(lambda x: x * torch.sin(x), [1, 2, 3, 4])
    >>> [row.derivative for row in rows], [row.steps for row in rows]
    ([4, 24, 88, 272], [2, 4, 6, 8])
    """
    sympy = _sympy()
    rows = []
    for depth in depths:
        recorded = trace(_repeated(f, depth), torch.tensor(0.5, dtype=torch.float64))
        formula = expression(recorded, "x")
        derivative = sympy.diff(formula, sympy.Symbol("x", real=True))
        subexpressions, ends = sympy.cse(derivative)
        shared = sum(int(part.count_ops()) for part in (*(value for _, value in subexpressions), *ends))
        lengths = int(formula.count_ops()), int(derivative.count_ops())
        rows.append(Swell(depth, *lengths, shared, len(recorded), len(recorded.reverse())))
    return rows


def _repeated(f: Callable[[Tensor], Tensor], depth: int) -> Callable[[Tensor], Tensor]:
    def whole(x: Tensor) -> Tensor:
        for _ in range(depth):
            x = f(x)
        return x

    return whole


def _sympy() -> Any:
    return need("sympy", extra="symbolic", why="to write derivatives as formulas")


def _exact(number: Any) -> Any:
    """A number in a formula: integers and simple fractions exactly, others as floats."""
    sympy = _sympy()
    if isinstance(number, sympy.Basic):
        return number
    if isinstance(number, bool | int):
        return sympy.Integer(int(number))
    if number in (float("inf"), float("-inf")) or number != number:
        raise WonderlandError(f"A formula cannot contain {number}.")
    fraction = Fraction(number)
    return sympy.Rational(*fraction.as_integer_ratio()) if fraction.denominator <= 64 else sympy.Float(number)


def _entrywise(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def run(*arrays: Any) -> np.ndarray:
        return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)

    return run


def _translated(step: Step, formulas: dict[int, np.ndarray]) -> np.ndarray:
    """The result of a step as an array of expressions."""
    name = packet(step.target)
    rule = _rules().get(name)
    if rule is None or not isinstance(step.result, Value):
        raise WonderlandError(f"{step.name} ({step.line}) has no formula. Supported: {', '.join(sorted(_rules()))}.")
    args = map_tree(step.args, Value, lambda value: formulas[id(value)])
    keywords = {key: entry for key, entry in step.kwargs.items() if key in ("alpha",)}
    result = np.asarray(rule(*args, **keywords), dtype=object)
    return np.broadcast_to(result, step.result.shape)


@cache
def _rules() -> dict[str, Callable[..., Any]]:
    """Primitives as formulas, entry by entry, on arrays of expressions."""
    sympy = _sympy()
    half, one = sympy.Rational(1, 2), sympy.Integer(1)
    entries: dict[str, Callable[..., Any]] = {
        "mul": operator.mul,
        "div": operator.truediv,
        "pow": operator.pow,
        "neg": operator.neg,
        "square": lambda x: x**2,
        "reciprocal": lambda x: one / x,
        "sqrt": sympy.sqrt,
        "rsqrt": lambda x: x**-half,
        "exp": sympy.exp,
        "expm1": lambda x: sympy.exp(x) - one,
        "log": sympy.log,
        "log1p": lambda x: sympy.log(one + x),
        "sin": sympy.sin,
        "cos": sympy.cos,
        "tan": sympy.tan,
        "sinh": sympy.sinh,
        "cosh": sympy.cosh,
        "tanh": sympy.tanh,
        "asin": sympy.asin,
        "acos": sympy.acos,
        "atan": sympy.atan,
        "erf": sympy.erf,
        "sigmoid": lambda x: one / (one + sympy.exp(-x)),
        "clone": lambda x: x,
        "lift_fresh": lambda x: x,
    }
    rules = {name: _pointwise(rule) for name, rule in entries.items()}
    rules["add"] = lambda x, y, alpha=1: _pointwise(operator.add)(x, _pointwise(operator.mul)(y, alpha))
    rules["sub"] = lambda x, y, alpha=1: _pointwise(operator.sub)(x, _pointwise(operator.mul)(y, alpha))
    rules["rsub"] = lambda x, y, alpha=1: _pointwise(operator.sub)(y, _pointwise(operator.mul)(x, alpha))
    rules["sum"] = lambda x, axes=None, keep=False: np.sum(x, axis=tuple(axes) if axes else None, keepdims=keep)
    rules["prod"] = lambda x: np.prod(x)
    rules["mean"] = lambda x: np.sum(x) / sympy.Integer(x.size)
    rules |= dict.fromkeys(("dot", "mv", "mm", "bmm"), np.matmul)
    rules |= {
        "view": lambda x, shape: x.reshape(shape),
        "_unsafe_view": lambda x, shape: x.reshape(shape),
        "select": lambda x, axis, index: np.take(x, index, axis=axis),
        "slice": _slice,
        "t": np.transpose,
        "transpose": np.swapaxes,
        "permute": np.transpose,
        "unsqueeze": np.expand_dims,
        "squeeze": lambda x, axes=None: np.squeeze(x, axis=tuple(axes) if isinstance(axes, list) else axes),
        "expand": lambda x, shape: x,
        "stack": lambda tensors, axis=0: np.stack(tensors, axis),
        "cat": lambda tensors, axis=0: np.concatenate(tensors, axis),
        "ones": lambda shape: np.full(shape, one),
        "zeros": lambda shape: np.full(shape, sympy.Integer(0)),
        "scalar_tensor": lambda number: np.full((), _exact(number)),
    }
    return rules


def _pointwise(rule: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return _entrywise(lambda *entries: rule(*map(_exact, entries)))


def _slice(x: np.ndarray, axis: int = 0, begin: int | None = None, end: int | None = None, by: int = 1) -> np.ndarray:
    return x[(*[slice(None)] * (axis % x.ndim), slice(begin, end, by))]
