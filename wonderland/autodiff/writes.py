"""Operators that write in place: what they write to, and the operator that gives the same as a new tensor."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from wonderland.autodiff.rules.table import bound
from wonderland.core import WonderlandError

aten = torch.ops.aten


def spelled_op(func: Any) -> str:
    """An operator as users know it: "add_"."""
    return func._schema.name.removeprefix("aten::")


def written_by(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that an operator writes to."""
    found = []
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[index] if index < len(args) else kwargs.get(argument.name)
            found += [given] if isinstance(given, Tensor) else list(given or ())
    return found


def draws(func: Any) -> bool:
    """Whether an operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


@cache
def functional(func: Any) -> Any:
    """The operator that gives what another one writes."""
    name = func._schema.name.removeprefix("aten::")
    packets = []
    if func.namespace == "aten":
        base = name.removesuffix("_") if func._schema.name.endswith("_") else name
        packets = [getattr(aten, one) for one in (base, f"{base}_functional") if hasattr(aten, one)]
    wanted = [(argument.name, str(argument.type)) for argument in func._schema.arguments if not argument.is_out]
    for several in packets:
        for overload in several.overloads():
            one = getattr(several, overload)
            given = [(argument.name, str(argument.type)) for argument in one._schema.arguments]
            if not one._schema.is_mutable and given == wanted:
                return one
    raise WonderlandError(
        f"{spelled_op(func)} writes into memory in a way that has no functional form, so it cannot be traced: "
        "compute a new tensor instead."
    )


def pure_arguments(func: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the functional form: the same, defaults written out, without what was only there to be written."""
    named = bound(func, args, kwargs)
    kept = [argument for argument in func._schema.arguments if not argument.is_out]
    return (
        tuple(named[argument.name] for argument in kept if not argument.kwarg_only),
        {argument.name: named[argument.name] for argument in kept if argument.kwarg_only},
    )
