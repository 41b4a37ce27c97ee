"""In-place operators: which tensors they write to, and the functional operator that returns the same as a new tensor."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from wonderland.autodiff.rules.table import bind_arguments
from wonderland.core import WonderlandError

aten = torch.ops.aten


def op_name(func: Any) -> str:
    """The name of an operator without its namespace: "add_"."""
    return func._schema.name.removeprefix("aten::")


def written_by(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that an operator writes to."""
    written = []
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            entry = args[index] if index < len(args) else kwargs.get(argument.name)
            written += [entry] if isinstance(entry, Tensor) else list(entry or ())
    return written


def is_random(func: Any) -> bool:
    """Whether an operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


@cache
def functional(func: Any) -> Any:
    """The functional form of an in-place operator: `add.Tensor` for `add_.Tensor`."""
    name = func._schema.name.removeprefix("aten::")
    packets = []
    if func.namespace == "aten":
        base = name.removesuffix("_") if func._schema.name.endswith("_") else name
        packets = [getattr(aten, form) for form in (base, f"{base}_functional") if hasattr(aten, form)]
    wanted = [(argument.name, str(argument.type)) for argument in func._schema.arguments if not argument.is_out]
    for packet in packets:
        for overload in packet.overloads():
            candidate = getattr(packet, overload)
            signature = [(argument.name, str(argument.type)) for argument in candidate._schema.arguments]
            if not candidate._schema.is_mutable and signature == wanted:
                return candidate
    raise WonderlandError(
        f"{op_name(func)} writes in place and has no functional form, so it cannot be traced: "
        "compute a new tensor instead."
    )


def pure_arguments(func: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments for the functional form: all arguments with defaults filled in, without the `out` arguments."""
    named = bind_arguments(func, args, kwargs)
    inputs = [argument for argument in func._schema.arguments if not argument.is_out]
    return (
        tuple(named[argument.name] for argument in inputs if not argument.kwarg_only),
        {argument.name: named[argument.name] for argument in inputs if argument.kwarg_only},
    )
