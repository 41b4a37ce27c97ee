"""The table of derivative rules: how an operator's cotangents and tangents are computed, and how rules are added."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError

RULES: dict[Any, "Rule"] = {}
_plain: ContextVar[bool] = ContextVar("plain", default=False)


@dataclass
class Rule:
    """How one operator is differentiated.

    `each` maps an argument's name to the function (g, n) that gives its cotangent, from the output's cotangent `g` and the
    call `n`. `joint`, a function (names, g, n), gives the cotangents of all named arguments at once. `tangent`, a function
    (t, n), gives the output's tangent from the arguments' tangents by name; without it, forward mode transposes the reverse
    rule. The call `n` has the arguments as attributes, all of them in `n.args`, and the output as `n.y`.
    `nondifferentiable` are the positions of outputs without a derivative; `stops` says that no output has one.
    """

    each: dict[Any, Callable[..., Any]] = field(default_factory=dict)
    joint: Callable[..., Any] | None = None
    tangent: Callable[..., Any] | None = None
    nondifferentiable: tuple[int, ...] = ()
    stops: bool = False


def rule(
    names: str,
    *,
    tangent: Callable[..., Any] | None = None,
    joint: Any = None,
    nondifferentiable: Any = (),
    **each: Any,
) -> None:
    """Add a rule for ATen operators, whose names are separated by spaces; the arguments are the fields of `Rule`."""
    for name in names.split():
        RULES[name] = Rule(each, joint, tangent, nondifferentiable)


def pointwise(names: str, **derivatives: Callable[[Any], Any]) -> None:
    """Elementwise operators: `derivatives` are the partial derivatives by argument name, as functions of the call."""

    def cotangent(derivative: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda g, n: g * conj(derivative(n))

    def tangent(t: dict[str, Any], n: Any) -> Any:
        return total(derivatives[name](n) * value for name, value in t.items())

    for name in names.split():
        RULES[name] = Rule({key: cotangent(derivative) for key, derivative in derivatives.items()}, tangent=tangent)


def linear(names: str, **each: Callable[..., Any]) -> None:
    """Operators that are jointly linear in the named arguments: the tangent is the operator applied to the tangents."""
    for name in names.split():
        RULES[name] = Rule(each, tangent=apply_to_tangents)


def bilinear(names: str, **each: Callable[..., Any]) -> None:
    """Operators that are linear in each named argument separately: the tangent is a sum over the arguments."""

    def tangent(t: dict[str, Any], n: Any) -> Any:
        return total(n.call(**{name: value}) for name, value in t.items())

    for name in names.split():
        RULES[name] = Rule(each, tangent=tangent)


def no_derivative(names: str) -> None:
    """Operators without a derivative, or with derivative zero almost everywhere."""
    for name in names.split():
        RULES[name] = Rule(stops=True)


def from_program(names: str, program: Callable[[Any], Any], *, nondifferentiable: Any = ()) -> None:
    """Operators that are differentiated as an equivalent program made of other operators.

    The program is a function of the call and returns the outputs in order, None for those without a derivative.
    """

    def partial_program(active: list[str], n: Any) -> tuple[Callable[..., Any], tuple[Any, ...], list[int]]:
        places: list[int] = []

        def inner(*values: Any) -> list[Any]:
            out = program(Call(**{**vars(n), **dict(zip(active, values, strict=True))}))
            out = out if isinstance(out, tuple) else (out,)
            places[:] = [k for k, entry in enumerate(out) if entry is not None]
            return [out[k] for k in places]

        return inner, tuple(getattr(n, name) for name in active), places

    def joint(needs: list[str], g: Any, n: Any) -> dict[str, Any]:
        from wonderland.autodiff.transforms import vjp

        inner, primals, places = partial_program(needs, n)
        out, pullback = vjp(inner, *primals)
        given = g if isinstance(g, tuple | list) else [g]
        cotangents = [torch.zeros_like(y) if given[k] is None else given[k] for k, y in zip(places, out, strict=True)]
        return dict(zip(needs, pullback(cotangents), strict=True))

    def tangent(t: dict[str, Any], n: Any) -> list[Any]:
        from wonderland.autodiff.transforms import jvp

        inner, primals, places = partial_program(list(t), n)
        tangents = dict(zip(places, jvp(inner, primals, tuple(t.values()))[1], strict=False))
        outputs = n.y if isinstance(n.y, tuple | list) else [n.y]
        return [tangents.get(k) for k, y in enumerate(outputs) if isinstance(y, Tensor)]

    for name in names.split():
        RULES[name] = Rule(joint=joint, tangent=tangent, nondifferentiable=nondifferentiable)


def no_cotangent(g: Any, n: Any) -> None:
    """The cotangent rule of an argument that has no derivative."""


def apply_to_tangents(t: dict[str, Any], n: Any) -> Any:
    """The operator applied to the tangents, with zeros for arguments without a tangent."""
    linear_in = [name for name, cotangent in n.rule_.each.items() if cotangent is not no_cotangent]
    given = {name: value if (value := t.get(name)) is not None else zeros(getattr(n, name)) for name in linear_in}
    return n.call(**given)


def zeros(tree: Any) -> Any:
    """Zeros like a tensor, like a plain number, or like each tensor of a list."""
    if isinstance(tree, Tensor):
        return torch.zeros_like(tree)
    if isinstance(tree, int | float | complex):
        return 0
    return [zeros(entry) for entry in tree] if isinstance(tree, list | tuple) else tree


def total(terms: Iterable[Any]) -> Any:
    """The sum of the terms that are not None; None if there is none."""
    result = None
    for term in terms:
        if term is not None:
            result = term if result is None else result + term
    return result


def conj(x: Any) -> Any:
    """The complex conjugate of a tensor or a plain number."""
    if isinstance(x, Tensor):
        return x.conj().resolve_conj() if x.is_complex() else x
    return x.conjugate() if isinstance(x, complex) else x


def find(target: Any) -> Rule | None:
    """The rule of an operator: that of this overload, else that of all its overloads; None if it has none."""
    _load()
    if (own := getattr(target, "own_rule", None) or RULES.get(target)) is not None:
        return own
    packet = getattr(target, "overloadpacket", None)
    if packet is None:
        return None
    if target.namespace != "aten":
        if (own := RULES.get(str(packet))) is None:
            from wonderland.autodiff.rules.custom import custom_rule

            if (own := custom_rule(target)) is not None:
                RULES[target] = own
        return own
    name = packet.__name__
    return RULES.get(f"{name}.{target._overloadname}", RULES.get(name))


@cache
def _known(target: Any) -> bool:
    return find(target) is not None


def known(target: Any) -> bool:
    """Whether an operator has a rule, so that it need not be decomposed."""
    if _plain.get() and _short(target).endswith(("_backward", "_backward_data")) and decomposition(target) is not None:
        return False
    return _known(target)


@contextmanager
def plain_rules() -> Iterator[None]:
    """Record reverse programs without ATen's backward kernels: they are decomposed where torch has a decomposition."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def plain() -> bool:
    """Whether rules avoid backward kernels (inside `plain_rules`)."""
    return _plain.get()


@cache
def _decompositions() -> dict[Any, Any]:
    from torch._decomp import core_aten_decompositions, decomposition_table

    return {**decomposition_table, **core_aten_decompositions()}


@cache
def decomposition(target: Any) -> Callable[..., Any] | None:
    """Torch's decomposition of an operator into simpler ones; None if it has none."""
    return _decompositions().get(target)


@cache
def _load() -> None:
    """Import the rule files, at first use, since they import this module."""
    import wonderland.autodiff.rules.all  # noqa: F401


def no_rule(target: Any, direction: str) -> WonderlandError:
    """The error for an operator without a rule."""
    name = getattr(target, "display_name", None) or str(target)
    return WonderlandError(
        f"autodiff has no {direction} rule for {name}. Add one: "
        f'autodiff.rule("{_short(target)}", self=lambda g, n: ...) gives the cotangent of its argument `self` from that of '
        "the output, g, and the call, n; or wrap your function with autodiff.primitive(vjp=...)."
    )


def _short(target: Any) -> str:
    packet = getattr(target, "overloadpacket", None)
    if packet is None:
        return getattr(target, "display_name", str(target))
    return packet.__name__ if target.namespace == "aten" else str(packet)


class Call(SimpleNamespace):
    """A call of an operator `op_`: its arguments as attributes by name, and its output `y`."""

    op_: Any
    rule_: Rule
    args: tuple[Any, ...]
    names: tuple[str, ...]
    y: Any

    def call(self, /, **changed: Any) -> Any:
        """The operator with some arguments replaced."""
        schema = getattr(self.op_, "_schema", None)
        if schema is None:
            return self.op_(*[changed.get(name, value) for name, value in zip(self.names, self.args, strict=True)])
        args, kwargs = [], {}
        for argument, value in zip(schema.arguments, self.args, strict=True):
            value = changed.get(argument.name, value)
            if argument.kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        return self.op_(*args, **kwargs)


def bind_arguments(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Any, Any]:
    """All arguments of a call by name, defaults filled in; by position where the target has no schema."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return {**dict(enumerate(args)), **kwargs}
    arguments = {}
    for index, argument in enumerate(schema.arguments):
        if index < len(args):
            arguments[argument.name] = args[index]
        elif argument.name in kwargs:
            arguments[argument.name] = kwargs[argument.name]
        else:
            arguments[argument.name] = argument.default_value if argument.has_default_value() else None
    return arguments
