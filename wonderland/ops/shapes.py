"""Checks of the arguments of ops: shapes that agree, one device. Kernels read memory by these sizes, so all are checked."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native


def agree(op: str, **given: tuple[Any, str]) -> dict[str, int]:
    """Check tensors against shapes written with shared letters, such as x=(x, "b t d"), state=(state, "b d ?"); ? allows None.

    Returns what the letters stand for. The first tensor has no size of 0.

    >>> agree("sum", x=(torch.zeros(2, 3), "b d"), bias=(torch.zeros(3), "d"))
    {'b': 2, 'd': 3}
    """
    sizes: dict[str, int] = {}
    first = device = None
    for name, (tensor, legend) in given.items():
        letters = legend.removesuffix(" ?").split()
        if tensor is None and legend.endswith(" ?"):
            continue
        if not isinstance(tensor, Tensor) or not _bound(tensor.shape, letters, sizes) or not _numbers(tensor.dtype):
            raise WonderlandError(f"{op} takes {_wanted(name, tensor, letters, sizes)}.")
        if first is None:
            first, device = name, tensor.device
            if 0 in tensor.shape:
                raise WonderlandError(
                    f"{op} takes at least one of everything in {name}, not the shape {tuple(tensor.shape)}."
                )
        elif tensor.device != device:
            raise WonderlandError(
                f"{op} takes tensors on one device: {first} is on {device} and {name} on {tensor.device}."
            )
    return sizes


def tensor(op: str, **given: Any) -> None:
    """Raise for an argument that is not a tensor."""
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise WonderlandError(f"{op} takes a tensor for {name}, not a {type(value).__name__}.")


def real(op: str, **given: Any) -> None:
    """Raise for a tensor that is not real floating point."""
    for name, tensor in given.items():
        if isinstance(tensor, Tensor) and not tensor.is_floating_point():
            raise WonderlandError(f"{op} takes real floating point numbers for {name}, not {tensor.dtype}.")


def whole(op: str, **given: Any) -> None:
    """Raise for an argument that is not an integer of at least 1."""
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise WonderlandError(f"{op} takes a whole number from 1 for {name}, not {value!r}.")


def groups(op: str, heads: Any, kv_heads: Any, width: int, name: str) -> int:
    """The width of a head, where one projection holds `heads` queries and `kv_heads` keys and values side by side."""
    whole(op, heads=heads, kv_heads=kv_heads)
    if heads % kv_heads:
        raise WonderlandError(
            f"{op} takes heads in groups that share keys and values: {heads} heads cannot share {kv_heads}."
        )
    parts = heads + 2 * kv_heads
    if width % parts:
        raise WonderlandError(
            f"{op} takes queries, keys and values side by side in {name}, {heads} + 2 x {kv_heads} = {parts} vectors of one "
            f"width, and {width} is no multiple of {parts}."
        )
    return width // parts


def _bound(shape: torch.Size, letters: list[str], sizes: dict[str, int]) -> bool:
    """Whether a shape is as its letters say; those not seen before are noted."""
    if len(shape) != len(letters):
        return False
    for letter, size in zip(letters, shape, strict=True):
        known = sizes.get(letter)
        if known is None:
            known = sizes[letter] = int(letter) if letter.isdigit() else size
        if known != size:
            return False
    return True


def _numbers(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _wanted(name: str, given: Any, letters: list[str], sizes: dict[str, int]) -> str:
    """What is wrong with one tensor, in words."""
    if not isinstance(given, Tensor):
        return f"a tensor for {name}, not a {type(given).__name__}"
    if len(given.shape) == len(letters) and _bound(given.shape, letters, dict(sizes)):
        return f"floating point numbers for {name}, not {given.dtype}"
    return f"{name} of shape {_words(letters, sizes)}, not {tuple(given.shape)}"


def counted(op: str, lengths: Any, rows: int, steps: int) -> Tensor | None:
    """The number of real steps of each row, as kernels read them: (rows,) whole numbers from 0 to `steps`."""
    if lengths is None:
        return None
    if not isinstance(lengths, Tensor) or lengths.dtype not in (torch.int64, torch.int32) or lengths.shape != (rows,):
        had = f"{lengths.dtype} {tuple(lengths.shape)}" if isinstance(lengths, Tensor) else type(lengths).__name__
        raise WonderlandError(f"{op} takes lengths as whole numbers of shape ({rows},), not {had}.")
    lengths = lengths.to(torch.int64).contiguous()
    if readable(lengths) and not native.is_transformed() and not native.is_recording():
        shortest, longest = int(lengths.min()), int(lengths.max())
        if shortest < 0 or longest > steps:
            wrong = shortest if shortest < 0 else longest
            raise WonderlandError(f"{op} takes lengths from 0 to {steps}, the number of steps, not {wrong}.")
    return lengths


def readable(values: Tensor) -> bool:
    """Whether a tensor's values can be looked at: not while a program is compiled, nor where there are only shapes."""
    return not torch.compiler.is_compiling() and not values.is_meta and not native.is_shapes_only()


def _words(letters: list[str], sizes: dict[str, int]) -> str:
    known = ", ".join(str(sizes.get(letter, letter)) for letter in letters)
    plain = ", ".join(letters)
    comma = "," if len(letters) == 1 else ""
    return f"({plain}{comma})" if known == plain else f"({plain}{comma}) = ({known}{comma})"
