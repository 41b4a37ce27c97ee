"""The nodes of a trace: `Value`, a tensor with shape and dtype, and `Step`, one operator applied to values."""

import weakref
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError


@dataclass(eq=False)
class Value:
    """One tensor of a trace.

    `depends` says whether it depends on the inputs of the trace. `now` is the tensor itself, kept while recording and for
    constants, else None.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...]
    device: torch.device
    depends: bool
    name: str = ""
    now: Tensor | None = field(default=None, repr=False)
    origin_ref: Any = field(default=None, repr=False)

    @property
    def origin(self) -> "Step | None":
        """The step that computed it, None for inputs and constants. A weak reference: steps hold their values, and a cycle
        would keep tensors alive until the garbage collector runs."""
        return None if self.origin_ref is None else self.origin_ref()

    @staticmethod
    def of(tensor: Tensor, depends: bool, origin: "Step | None" = None) -> "Value":
        """A value for a tensor as it is now."""
        if tensor.is_nested:
            raise WonderlandError("Nested tensors are not traced: pad them with .to_padded_tensor(0), and mask.")
        stride = tuple(tensor.stride()) if tensor.layout == torch.strided else ()
        origin_ref = None if origin is None else weakref.ref(origin)
        return Value(
            tuple(tensor.shape), tensor.dtype, stride, tensor.device, depends, now=tensor, origin_ref=origin_ref
        )

    @property
    def numel(self) -> int:
        """The number of elements."""
        total = 1
        for size in self.shape:
            total *= size
        return total

    @property
    def bytes(self) -> int:
        """The memory of its elements in bytes."""
        return self.numel * self.dtype.itemsize

    @property
    def smooth(self) -> bool:
        """Whether it can have derivatives: floating point or complex."""
        return self.dtype.is_floating_point or self.dtype.is_complex

    def describe(self) -> str:
        """dtype and shape: "float64 (2, 3)"."""
        return f"{str(self.dtype).removeprefix('torch.')} ({', '.join(map(str, self.shape))})"


@dataclass(eq=False)
class Step:
    """One operator (`target`) applied to values and plain arguments; `result` has the nesting of what it returned.

    `line` and `module` say where in the user's program it ran, `grad_enabled` whether gradients were enabled then.
    `views_input` says whether its output shares memory with its first input; None where that was not observed.
    """

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any = None
    line: str = ""
    module: str = ""
    grad_enabled: bool = True
    views_input: bool | None = None

    @cached_property
    def inputs(self) -> list[Value]:
        """The values among the arguments, in order."""
        return values(self.args) + values(self.kwargs)

    @cached_property
    def outputs(self) -> list[Value]:
        """The values in the result, in order."""
        return values(self.result)

    @property
    def name(self) -> str:
        """The operator's full name: "aten.mul.Tensor"."""
        return target_name(self.target)


def target_name(target: Any) -> str:
    """The full name of an operator or primitive."""
    return getattr(target, "display_name", None) or str(target)


def values(tree: Any) -> list[Value]:
    """The values in nested tuples, lists and dictionaries."""
    if isinstance(tree, Value):
        return [tree]
    if isinstance(tree, tuple | list):
        return [value for entry in tree for value in values(entry)]
    if isinstance(tree, dict):
        return [value for entry in tree.values() for value in values(entry)]
    return []


def map_tree(tree: Any, kind: type, function: Any) -> Any:
    """A nested structure of tuples, lists and dicts with a function applied to every entry of a type."""
    if isinstance(tree, kind):
        return function(tree)
    if isinstance(tree, tuple | list):
        return type(tree)(map_tree(entry, kind, function) for entry in tree) if type(tree) in (tuple, list) else tree
    if isinstance(tree, dict):
        return {key: map_tree(entry, kind, function) for key, entry in tree.items()}
    return tree
