"""The table of derivative rules: how a primitive's cotangents and tangents are computed, and how rules are added."""

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
_FORCED = {"_softmax", "_log_softmax"}


@dataclass
class Rule:
    """How one primitive is differentiated.

    `each` gives for an argument by name the cotangent, a function of the output's cotangent and the call. `joint` gives
    those of all arguments that need one at once. `tangent` gives the output's tangent from those of the arguments, by name;
    without it forward mode transposes the reverse rule. A call `n` has the arguments by their names, all of them in
    `n.args`, and the output as `n.y`. `blind` are outputs, by number, that have no derivative.
    """

    each: dict[Any, Callable[..., Any]] = field(default_factory=dict)
    joint: Callable[..., Any] | None = None
    tangent: Callable[..., Any] | None = None
    blind: tuple[int, ...] = ()
    stops: bool = False
    fits: bool = True


def rule(
    names: str, *, tangent: Callable[..., Any] | None = None, joint: Any = None, blind: Any = (), **each: Any
) -> None:
    """Add the same rule for several primitives of ATen, named with spaces between."""
    for name in names.split():
        RULES[name] = Rule(each, joint, tangent, blind)


def pointwise(names: str, **slopes: Callable[[Any], Any]) -> None:
    """Primitives that act on each number alone: `slopes` are the derivatives by each argument, functions of the call."""

    def cotangent(slope: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda g, n: g * conj(slope(n))

    def tangent(t: dict[str, Any], n: Any) -> Any:
        return total(slopes[name](n) * value for name, value in t.items())

    for name in names.split():
        RULES[name] = Rule({key: cotangent(slope) for key, slope in slopes.items()}, tangent=tangent)


def linear(names: str, **each: Callable[..., Any]) -> None:
    """Primitives that are linear in the named arguments together: the tangent is the primitive of the tangents."""
    for name in names.split():
        RULES[name] = Rule(each, tangent=again)


def bilinear(names: str, **each: Callable[..., Any]) -> None:
    """Primitives that are linear in each of the named arguments alone: the tangent is a sum over them."""

    def tangent(t: dict[str, Any], n: Any) -> Any:
        return total(n.call(**{name: value}) for name, value in t.items())

    for name in names.split():
        RULES[name] = Rule(each, tangent=tangent)


def still(names: str) -> None:
    """Primitives without a derivative: where they give numbers, these are constant almost everywhere."""
    for name in names.split():
        RULES[name] = Rule(stops=True)


def written(names: str, program: Callable[[Any], Any], *, blind: Any = ()) -> None:
    """Primitives whose derivatives are those of a program with the same values, made of other primitives.

    The program is a function of the call and gives the outputs in their order, None for those without a derivative.
    """

    def run(moving: list[str], n: Any) -> tuple[Callable[..., Any], tuple[Any, ...], list[int]]:
        places: list[int] = []

        def inner(*values: Any) -> list[Any]:
            out = program(Call(**{**vars(n), **dict(zip(moving, values, strict=True))}))
            out = out if isinstance(out, tuple) else (out,)
            places[:] = [k for k, entry in enumerate(out) if entry is not None]
            return [out[k] for k in places]

        return inner, tuple(getattr(n, name) for name in moving), places

    def joint(needs: list[str], g: Any, n: Any) -> dict[str, Any]:
        from wonderland.autodiff.transforms import vjp

        inner, primals, places = run(needs, n)
        out, pullback = vjp(inner, *primals)
        given = g if isinstance(g, tuple | list) else [g]
        slopes = [torch.zeros_like(y) if given[k] is None else given[k] for k, y in zip(places, out, strict=True)]
        return dict(zip(needs, pullback(slopes), strict=True))

    def tangent(t: dict[str, Any], n: Any) -> list[Any]:
        from wonderland.autodiff.transforms import jvp

        inner, primals, places = run(list(t), n)
        moved = dict(zip(places, jvp(inner, primals, tuple(t.values()))[1], strict=False))
        outputs = n.y if isinstance(n.y, tuple | list) else [n.y]
        return [moved.get(k) for k, y in enumerate(outputs) if isinstance(y, Tensor)]

    for name in names.split():
        RULES[name] = Rule(joint=joint, tangent=tangent, blind=blind)


def nothing(g: Any, n: Any) -> None:
    """The cotangent of an argument without influence on the output's derivative."""


def again(t: dict[str, Any], n: Any) -> Any:
    """The primitive applied to tangents, zeros standing in for arguments that do not move."""
    linear_in = [name for name, slope in n.rule_.each.items() if slope is not nothing]
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
    """A sum that may be empty or of one."""
    found = None
    for term in terms:
        if term is not None:
            found = term if found is None else found + term
    return found


def conj(x: Any) -> Any:
    """The complex conjugate of what may be a plain number."""
    if isinstance(x, Tensor):
        return x.conj().resolve_conj() if x.is_complex() else x
    return x.conjugate() if isinstance(x, complex) else x


def find(target: Any) -> Rule | None:
    """The rule of a primitive: its own, or that of all forms of the operator."""
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
    """Whether a primitive has a rule, so that it need not be taken apart."""
    if _plain.get() and _short(target).endswith(("_backward", "_backward_data")) and decomposition(target) is not None:
        return False
    return _known(target)


@contextmanager
def plain_rules() -> Iterator[None]:
    """Record reverse programs in tensor operations only: backward kernels of ATen are taken apart where they can be."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def plain() -> bool:
    """Whether rules are to do without backward kernels."""
    return _plain.get()


@cache
def _decompositions() -> dict[Any, Any]:
    from torch._decomp import core_aten_decompositions, decomposition_table

    return {**decomposition_table, **core_aten_decompositions()}


@cache
def decomposition(target: Any) -> Callable[..., Any] | None:
    """How torch writes an operator with simpler ones, if it does."""
    return _decompositions().get(target)


@cache
def _load() -> None:
    """Read the files of rules; only now, because they use what is above."""
    import wonderland.autodiff.rules.all  # noqa: F401


def no_rule(target: Any, direction: str) -> WonderlandError:
    """What is said about a primitive that cannot be differentiated."""
    name = getattr(target, "name_", None) or str(target)
    return WonderlandError(
        f"autodiff has no {direction} rule for {name}. Add one: "
        f'autodiff.rule("{_short(target)}", self=lambda g, n: ...) gives the cotangent of its argument `self` from that of '
        "the output, g, and the call, n; or wrap your function with autodiff.primitive(vjp=...)."
    )


def _short(target: Any) -> str:
    packet = getattr(target, "overloadpacket", None)
    if packet is None:
        return getattr(target, "name_", str(target))
    return packet.__name__ if target.namespace == "aten" else str(packet)


class Call(SimpleNamespace):
    """A call of a primitive `op_` with its arguments by name, and its output `y`."""

    op_: Any
    rule_: Rule
    args: tuple[Any, ...]
    names: tuple[str, ...]
    y: Any

    def call(self, /, **changed: Any) -> Any:
        """The primitive with some arguments replaced."""
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


def bound(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Any, Any]:
    """All arguments of a call by name, defaults filled in; numbered where the primitive has no schema."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return {**dict(enumerate(args)), **kwargs}
    found = {}
    for index, argument in enumerate(schema.arguments):
        if index < len(args):
            found[argument.name] = args[index]
        elif argument.name in kwargs:
            found[argument.name] = kwargs[argument.name]
        else:
            found[argument.name] = argument.default_value if argument.has_default_value() else None
    return found
