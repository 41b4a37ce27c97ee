"""What an op is given: tensors whose shapes agree, on one device. Kernels read memory by these sizes, so all are checked."""

from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops import native


def agree(op: str, **given: tuple[Any, str]) -> dict[str, int]:
    """Hold tensors to shapes written with shared letters, such as x=(x, "b t d"), state=(state, "b d"); None is left out.

    Returns what the letters stand for. The first tensor has no size of 0.

    >>> agree("sum", x=(torch.zeros(2, 3), "b d"), bias=(torch.zeros(3), "d"))
    {'b': 2, 'd': 3}
    """
    sizes: dict[str, int] = {}
    first = None
    for name, (tensor, legend) in given.items():
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor):
            raise WonderlandError(f"{op} takes a tensor for {name}, not a {type(tensor).__name__}.")
        letters, shape = legend.split(), tensor.shape
        fits = len(letters) == len(shape)
        if fits:
            for letter, size in zip(letters, shape, strict=True):
                wanted = int(letter) if letter.isdigit() else sizes.get(letter, size)
                fits = fits and size == wanted
        if not fits:
            raise WonderlandError(f"{op} takes {name} of shape {_words(letters, sizes)}, not {tuple(shape)}.")
        for letter, size in zip(letters, shape, strict=True):
            sizes.setdefault(letter, size)
        if not tensor.is_floating_point() and not tensor.is_complex():
            raise WonderlandError(f"{op} takes floating point numbers for {name}, not {tensor.dtype}.")
        if first is None:
            first = name, tensor.device
            if 0 in shape:
                raise WonderlandError(f"{op} takes at least one of everything in {name}, not the shape {tuple(shape)}.")
        elif tensor.device != first[1]:
            raise WonderlandError(
                f"{op} takes tensors on one device: {first[0]} is on {first[1]} and {name} on {tensor.device}."
            )
    return sizes


def counted(op: str, lengths: Any, rows: int, steps: int) -> Tensor | None:
    """The number of real steps of each row, as kernels read them: (rows,) whole numbers from 0 to `steps`."""
    if lengths is None:
        return None
    if not isinstance(lengths, Tensor) or lengths.dtype not in (torch.int64, torch.int32) or lengths.shape != (rows,):
        had = f"{lengths.dtype} {tuple(lengths.shape)}" if isinstance(lengths, Tensor) else type(lengths).__name__
        raise WonderlandError(f"{op} takes lengths as whole numbers of shape ({rows},), not {had}.")
    lengths = lengths.to(torch.int64).contiguous()
    if not torch.compiler.is_compiling() and not native.transformed() and not native.recorded():
        shortest, longest = int(lengths.min()), int(lengths.max())
        if shortest < 0 or longest > steps:
            wrong = shortest if shortest < 0 else longest
            raise WonderlandError(f"{op} takes lengths from 0 to {steps}, the number of steps, not {wrong}.")
    return lengths


def _words(letters: list[str], sizes: dict[str, int]) -> str:
    known = ", ".join(str(sizes.get(letter, letter)) for letter in letters)
    plain = ", ".join(letters)
    comma = "," if len(letters) == 1 else ""
    return f"({plain}{comma})" if known == plain else f"({plain}{comma}) = ({known}{comma})"
