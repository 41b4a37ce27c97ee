"""Constructor arguments: each is checked against the type in its signature, with a sentence for what is wrong."""

import inspect
import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_origin

from torch import nn

from wonderland.core import Part, Spec, WonderlandError, nearest
from wonderland.nn.channel.activations import Activation, activation

NUMBERS = (float, float | int, float | None, float | int | None)
ITEMS: Any = {int: "whole numbers", float: "finite numbers", float | int: "finite numbers", str: "texts", Spec: "specs"}
FUNCTIONS: Any = (str | Activation, str | Activation | None)  # pyright: ignore[reportOperatorIssue]


class Checked(Part):
    """A part whose constructor says in a sentence which argument is of the wrong kind, or unknown."""

    if not TYPE_CHECKING:  # a type checker reads the constructor's signature from __init__ alone

        def __new__(cls, *args: Any, **named: Any):
            check_arguments(cls, args, named)
            return super().__new__(cls)


def check_arguments(cls: type, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Raise for an argument that is unknown or of another type than its signature says; types that are not simple are not checked."""
    known = dict(list(inspect.signature(cls.__init__).parameters.items())[1:])
    kinds = {parameter.kind for parameter in known.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for name in named:
            if name not in known:
                raise WonderlandError(f"{cls.__name__} has no argument {name!r}.{nearest(name, known)}")
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        args = ()
    for name, value in [*zip(known, args, strict=False), *named.items()]:
        if name not in known:
            continue
        if known[name].annotation in FUNCTIONS and value is not None:
            activation(value)
        if kind := _other_kind(known[name].annotation, value):
            raise WonderlandError(f"{cls.__name__} needs {name} to be {kind}, not {described(value)}.")


def described(value: Any) -> str:
    """A wrong value in words: what it is, and for a class what was probably meant."""
    if isinstance(value, type):
        meant = f"; write {value.__name__}.spec()" if issubclass(value, Part) else ""
        return f"the class {value.__name__}{meant}"
    if isinstance(value, nn.Module):
        return f"a built {type(value).__name__}"
    if isinstance(value, Spec):
        return f"a spec of {value.name}"
    return repr(value) if len(repr(value)) <= 40 else f"a {type(value).__name__}"


def check_specs(given: Iterable[Any], rule: str) -> None:
    """Raise for anything that is not a spec; `rule` says what is expected."""
    for value in given:
        if not isinstance(value, Spec):
            raise WonderlandError(f"{rule}, not {described(value)}.")


def at_least_one(name: str, **sizes: int | None) -> None:
    """Raise for a size below 1; None means the default."""
    for size, value in sizes.items():
        if value is not None and value < 1:
            raise WonderlandError(f"{name} cannot be built with {size}={value}: it is a whole number from 1.")


def _other_kind(annotation: Any, value: Any) -> str:
    """What an argument should have been, or "" where it is right."""
    choices = [each for each in getattr(annotation, "__args__", ()) if each is not type(None)]
    if value is None and type(None) in getattr(annotation, "__args__", ()):
        return ""
    if get_origin(annotation) in (Union, UnionType) and len(choices) == 1:
        return _other_kind(choices[0], value)
    if get_origin(annotation) in (list, Sequence) and choices[0] in ITEMS:
        fine = isinstance(value, list | tuple) and not any(_other_kind(choices[0], item) for item in value)
        return "" if fine else f"a list of {ITEMS[choices[0]]}"
    if len(choices) > 1 and set(choices) <= {Spec, bool, list[Spec]}:
        fine = any(not _other_kind(choice, value) for choice in choices)
        lists = " or a list of specs" if list[Spec] in choices else ""
        return "" if fine else f"a spec{lists}{', True or False' if bool in choices else ''}"
    if annotation in (int, int | None):
        return "" if isinstance(value, Integral) and not isinstance(value, bool) else "a whole number"
    if annotation in NUMBERS:
        fine = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
        return "" if fine else "a finite number"
    if annotation is bool:
        return "" if isinstance(value, bool) else "True or False"
    if annotation is str:
        return "" if isinstance(value, str) else "text"
    if annotation in (Spec, Spec | None):
        return "" if isinstance(value, Spec) else "a spec, which is built where it belongs"
    return ""
