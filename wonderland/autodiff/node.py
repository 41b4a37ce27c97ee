"""What a trace is made of: values with their shapes, and the steps that compute them."""

import weakref
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError


@dataclass(eq=False)
class Value:
    """One tensor of a trace. While it is recorded it also holds the numbers it had; `origin` is None for inputs."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...]
    device: torch.device
    depends: bool
    name: str = ""
    now: Tensor | None = field(default=None, repr=False)
    made_by: Any = field(default=None, repr=False)

    @property
    def origin(self) -> "Step | None":
        """The step that made it. Held weakly: steps hold their values, and a circle would keep numbers until it is found."""
        return None if self.made_by is None else self.made_by()

    @staticmethod
    def of(tensor: Tensor, depends: bool, origin: "Step | None" = None) -> "Value":
        """The value that a tensor has at this moment."""
        if tensor.is_nested:
            raise WonderlandError("Nested tensors are not traced: pad them with .to_padded_tensor(0), and mask.")
        stride = tuple(tensor.stride()) if tensor.layout == torch.strided else ()
        made_by = None if origin is None else weakref.ref(origin)
        return Value(tuple(tensor.shape), tensor.dtype, stride, tensor.device, depends, now=tensor, made_by=made_by)

    @property
    def numel(self) -> int:
        """How many numbers it holds."""
        total = 1
        for size in self.shape:
            total *= size
        return total

    @property
    def bytes(self) -> int:
        """How much memory its numbers take."""
        return self.numel * self.dtype.itemsize

    @property
    def smooth(self) -> bool:
        """Whether it has derivatives at all: floating point or complex."""
        return self.dtype.is_floating_point or self.dtype.is_complex

    def words(self) -> str:
        """Its type and shape: "float64 (2, 3)"."""
        return f"{str(self.dtype).removeprefix('torch.')} ({', '.join(map(str, self.shape))})"


@dataclass(eq=False)
class Step:
    """One primitive applied to values and plain arguments; `result` has the nesting of what it returned."""

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any = None
    line: str = ""
    module: str = ""
    smooth: bool = True
    looks: bool | None = None  # whether it gives another look at its first input's memory; None where nobody has seen

    @cached_property
    def inputs(self) -> list[Value]:
        """The values among the arguments, in their order."""
        return values(self.args) + values(self.kwargs)

    @cached_property
    def outputs(self) -> list[Value]:
        """The values it gave."""
        return values(self.result)

    @property
    def name(self) -> str:
        """What it is called in tables: "aten.mul.Tensor"."""
        return spelled(self.target)


def spelled(target: Any) -> str:
    """The name of a primitive."""
    return getattr(target, "name_", None) or str(target)


def values(tree: Any) -> list[Value]:
    """The values in nested tuples, lists and dictionaries."""
    if isinstance(tree, Value):
        return [tree]
    if isinstance(tree, tuple | list):
        return [found for entry in tree for found in values(entry)]
    if isinstance(tree, dict):
        return [found for entry in tree.values() for found in values(entry)]
    return []


def over(tree: Any, kind: type, function: Any) -> Any:
    """A nested structure with a function applied to every entry of a type."""
    if isinstance(tree, kind):
        return function(tree)
    if isinstance(tree, tuple | list):
        return type(tree)(over(entry, kind, function) for entry in tree) if type(tree) in (tuple, list) else tree
    if isinstance(tree, dict):
        return {key: over(entry, kind, function) for key, entry in tree.items()}
    return tree
