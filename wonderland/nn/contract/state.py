"""States: what a mixer keeps of the tokens it has seen, how it is laid out, and functions over all of its tensors."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError

State = tuple[Any, ...]
Layout = tuple[Any, ...]
TIME = -1

_consuming: ContextVar[bool] = ContextVar("consuming", default=False)


@dataclass(frozen=True)
class Slot:
    """One tensor of a state: its sizes after the batch (`TIME` where it grows with the sequence) and how it starts.

    Counts also say whose they are.
    """

    sizes: tuple[int, ...] = ()
    fill: float = 0.0
    dtype: torch.dtype | None = None
    by: str = ""


COUNT = Slot(dtype=torch.int64)


@cache
def count_of(name: str) -> Slot:
    """The count of tokens that a kind of module keeps."""
    return Slot(dtype=torch.int64, by=name)


def signed(count: Tensor, by: str) -> Tensor:
    """A count of tokens labelled with the class that made it, so that other classes refuse the state; not in compiled programs."""
    if by and not torch.compiler.is_compiling():
        count.made_by = by  # pyright: ignore[reportAttributeAccessIssue]
    return count


def maker(count: Tensor) -> str:
    """The class that made a count; "" if that is not known, as after saving or copying it by other means."""
    return getattr(count, "made_by", "")


def rows(state: Any, index: Any) -> Any:
    """A copy of a state with the chosen rows of the batch, in the order given; beams go through here.

    >>> rows((torch.arange(3), ()), torch.tensor([2, 2]))
    (tensor([2, 2]), ())
    """
    try:
        chosen = torch.as_tensor(index)
    except (TypeError, ValueError, RuntimeError):
        chosen = torch.empty(())
    if chosen.dim() != 1 or chosen.dtype not in (torch.int64, torch.int32):
        raise WonderlandError("rows takes the numbers of the rows to pick, a tensor or list of whole numbers.")

    least, most = (int(chosen.min()), int(chosen.max())) if len(chosen) else (0, -1)

    def pick(tensor: Tensor) -> Tensor:
        if least < 0 or most >= len(tensor):
            raise WonderlandError(
                f"rows was asked for rows {chosen.tolist()[:8]} of a state with {len(tensor)}: they count from 0."
            )
        return tensor.index_select(0, chosen.to(tensor.device))

    return over(state, pick)


def detach(state: Any) -> Any:
    """The same state cut off from what came before: truncated backpropagation through time."""
    return over(state, Tensor.detach)


def over(state: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """A state with a function applied to each of its tensors; None, the state before the first token, stays."""
    if state is None:
        return None
    if not isinstance(state, tuple | Tensor):
        raise WonderlandError(f"A state is a tuple of tensors, as stream returns it, not a {type(state).__name__}.")
    return (
        tuple(over(entry, function) for entry in state)
        if isinstance(state, tuple)
        else signed(function(state), maker(state))
    )


def plain(state: Any) -> Any:
    """The same state, with tensors from inference mode copied where gradients are enabled: autograd cannot save those."""
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return state
    return over(state, lambda tensor: tensor.clone() if tensor.is_inference() else tensor)


@contextmanager
def consuming() -> Iterator[None]:
    """Let `stream` write into the states it is given: caches grow by doubling, in place, instead of being copied, and counts
    of tokens go up where they lie.

    For generation: only without gradients, and only when each state is continued once.
    """
    token = _consuming.set(True)
    try:
        yield
    finally:
        _consuming.reset(token)


def may_consume() -> bool:
    """Whether a state may be written to now."""
    return not torch.compiler.is_compiling() and not torch.is_grad_enabled() and _consuming.get()


def grow(cache: Tensor, new: Tensor) -> Tensor:
    """A cache (b, n, ...) followed by new entries (b, t, ...): a copy, or in place where that is allowed.

    Consumed caches keep room for as many entries again; how much is read off the stride of the batch, so that a cache is
    always a plain tensor of the entries it has.
    """
    if not may_consume():
        return torch.cat([cache, new], 1)
    n, total = cache.shape[1], cache.shape[1] + new.shape[1]
    entry = product(tuple(cache.shape[2:]), 0)
    room = cache.stride(0) // max(entry, 1)
    fits = cache.stride(1) == entry and cache.storage_offset() + cache.shape[0] * cache.stride(0) <= _held(cache)
    if not fits or room < total:
        longer = cache.new_empty((cache.shape[0], max(2 * total, 16), *cache.shape[2:]))
        longer[:, :n] = cache
        cache = longer
    else:
        cache = cache.as_strided((cache.shape[0], room, *cache.shape[2:]), cache.stride())
    cache[:, n:total] = new
    return cache[:, :total]


def _held(tensor: Tensor) -> int:
    return tensor.untyped_storage().nbytes() // tensor.element_size()


def product(sizes: tuple[int, ...], t: int) -> int:
    total = 1
    for size in sizes:
        total *= t if size == TIME else size
    return total


def slots(layout: Any) -> list[Slot]:
    return [layout] if isinstance(layout, Slot) else [slot for entry in layout for slot in slots(entry)]


def fill(layout: Any, batch: int, dtype: torch.dtype, device: Any) -> Any:
    if isinstance(layout, Slot):
        sizes = [0 if size == TIME else size for size in layout.sizes]
        kind = layout.dtype or dtype
        value = max(layout.fill, torch.finfo(kind).min / 2) if kind.is_floating_point else layout.fill
        return signed(torch.full((batch, *sizes), value, dtype=kind, device=device), layout.by)
    return tuple(fill(entry, batch, dtype, device) for entry in layout)


def fits(state: Any, layout: Any, batch: int) -> bool:
    """Whether a state is as its layout says; written for speed, because every step calls it."""
    if not isinstance(state, tuple) or len(state) != len(layout):
        return False
    for entry, expected in zip(state, layout, strict=True):
        # Tensors are looked at here and not in a call of their own, which would cost as much again.
        if isinstance(expected, Slot):
            if not isinstance(entry, Tensor):
                return False
            had, sizes = entry.shape, expected.sizes
            if len(had) != len(sizes) + 1 or had[0] != batch or entry.is_floating_point() != (expected.dtype is None):
                return False
            if expected.by and maker(entry) not in ("", expected.by):
                return False
            if had[1:] != sizes and not all(a in (TIME, b) for a, b in zip(sizes, had[1:], strict=True)):
                return False
        elif not fits(entry, expected, batch):
            return False
    return True


def other_type(state: Any, dtype: torch.dtype) -> torch.dtype | None:
    """The dtype of the first floating point tensor that has another one; None under autocast, which mixes them."""
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        return None
    for entry in state:
        other = other_type(entry, dtype) if isinstance(entry, tuple) else entry.dtype
        if other is not None and other.is_floating_point and other != dtype:
            return other
    return None


def other_device(state: Any, device: torch.device) -> torch.device | None:
    """The device of the first tensor that is not on this one."""
    for entry in state:
        other = other_device(entry, device) if isinstance(entry, tuple) else entry.device
        if other is not None and other != device:
            return other
    return None


def misfit(state: Any, layout: Any, batch: int, where: str = "", *, subject: str = "it") -> str:
    """What is wrong with a state, in words; "" if nothing is."""
    spot = f"entry {where.lstrip('.')}" if where else subject
    if isinstance(layout, Slot):
        if not isinstance(state, Tensor):
            return f"{spot} is a {type(state).__name__} where a tensor belongs"
        if state.dim() == len(layout.sizes) + 1 and all(
            size in (TIME, had) for size, had in zip(layout.sizes, state.shape[1:], strict=True)
        ):
            if state.shape[0] != batch:
                return f"{spot} is for {state.shape[0]} rows and the input has {batch}"
            if state.is_floating_point() != (layout.dtype is None):
                return f"{spot} holds {state.dtype} where {layout.dtype or 'floating point'} belongs"
            by = maker(state) if layout.by else ""
            return f"{spot} comes from a module of the kind {by}" if by not in ("", layout.by) else ""
        shape = ", ".join(str(size) for size in (batch, *("t" if size == TIME else size for size in layout.sizes)))
        return f"{spot} has shape {tuple(state.shape)} where ({shape}) belongs"
    if not isinstance(state, tuple) or len(state) != len(layout):
        had = f"a tuple of {len(state)}" if isinstance(state, tuple) else f"a {type(state).__name__}"
        return f"{spot} is {had} where a tuple of {len(layout)} belongs"
    for index, (entry, expected) in enumerate(zip(state, layout, strict=True)):
        if wrong := misfit(entry, expected, batch, f"{where}.{index}"):
            return wrong
    return ""
