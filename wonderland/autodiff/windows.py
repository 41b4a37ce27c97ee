"""Windows: which part of a tensor a view looks at, said with slices and selections where that can be done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten
Note = Callable[..., Any]  # adds a step and gives its value: note(operator, arguments, tensor of the result's shape)


@dataclass(frozen=True)
class Window:
    """A part of a tensor: for each of its axes the first place, how many, and in what steps; None for how many picks one.

    `shape` is that of the view, which may have axes of length 1 more.
    """

    places: tuple[tuple[int, int | None, int], ...]
    shape: tuple[int, ...]

    def misses(self, other: "Window") -> bool:
        """Whether two windows on one tensor have no place in common."""
        return any(
            a + ((n or 1) - 1) * step < b or b + ((m or 1) - 1) * pace < a
            for (a, n, step), (b, m, pace) in zip(self.places, other.places, strict=True)
        )

    def looks(self, sizes: tuple[int, ...]) -> list[tuple[Any, Any, tuple[Any, ...]]]:
        """The operators that take the window out of a tensor of these sizes, with those that put it back."""
        found: list[tuple[Any, Any, tuple[Any, ...]]] = []
        gone = 0
        for axis, (first, count, step) in enumerate(self.places):
            if count is None:
                found.append((aten.select.int, aten.select_scatter.default, (axis - gone, first)))
                gone += 1
            elif count != sizes[axis] or step != 1:
                end = first + (count - 1) * step + 1
                found.append((aten.slice.Tensor, aten.slice_scatter.default, (axis, first, end, step)))
        # Slices come first: they count the axes that are still there.
        return [one for one in found if one[0] is aten.slice.Tensor] + [
            one for one in found if one[0] is aten.select.int
        ]


def window(root: Tensor, view: Tensor) -> Window | None:
    """The part of the first tensor that the second looks at, None where slices cannot say it.

    >>> whole = torch.zeros(4, 6)
    >>> window(whole, whole[1, 2:5]).places
    ((1, None, 1), (2, 3, 1))
    >>> window(whole, whole.t()) is None
    True
    """
    if root.dtype != view.dtype or not root.numel() or not view.numel() or root.is_conj() != view.is_conj():
        return None
    if root.is_neg() != view.is_neg() or not _dense(root):
        return None
    rest = view.storage_offset() - root.storage_offset()
    first = [0] * root.dim()
    for axis in sorted(range(root.dim()), key=lambda axis: -root.stride(axis)):
        if root.shape[axis] > 1:
            first[axis], rest = int(rest // root.stride(axis)), int(rest % root.stride(axis))
    if rest or any(not 0 <= place < size for place, size in zip(first, root.shape, strict=True)):
        return None
    places: list[tuple[int, int | None, int]] = []
    mine = [(size, step) for size, step in zip(view.shape, view.stride(), strict=True) if size > 1]
    for axis, size in enumerate(root.shape):
        if size == 1:
            places.append((0, 1, 1))
            continue
        if mine and mine[0][1] % root.stride(axis) == 0 and mine[0][1]:
            count, step = mine[0][0], mine[0][1] // root.stride(axis)
            if first[axis] + (count - 1) * step < size:
                places.append((first[axis], count, step))
                mine.pop(0)
                continue
        places.append((first[axis], None, 1))
    return Window(tuple(places), tuple(view.shape)) if not mine else None


def _dense(tensor: Tensor) -> bool:
    """Whether a tensor's numbers lie side by side, in whatever order of its axes."""
    reach = 1
    for size, step in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda pair: pair[1]):
        if size > 1:
            if step != reach:
                return False
            reach *= size
    return True


def taken(part: Window, root: Tensor) -> Tensor:
    """What is seen of a tensor through a window."""
    seen = root
    for look, _, args in part.looks(tuple(root.shape)):
        seen = look(seen, *args)
    return seen if tuple(seen.shape) == part.shape else seen.view(part.shape)


def put(part: Window, owner: Any, value: Any, note: Note, root: Tensor) -> Any:
    """The owner's value with another one in a window: noted only, the numbers are in memory already."""
    looks = part.looks(tuple(root.shape))
    with _disable_current_modes():
        shown = [root]
        for look, _, args in looks:
            shown.append(look(shown[-1], *args))
    outer = [owner]
    for (look, _, args), seen in zip(looks[:-1], shown[1:], strict=False):
        outer.append(note(look, (outer[-1], *args), seen))
    if tuple(shown[-1].shape) != part.shape:
        value = note(aten.view.default, (value, list(shown[-1].shape)), shown[-1])
    for (_, back, args), now, seen in zip(reversed(looks), reversed(outer), reversed(shown[:-1]), strict=bool(looks)):
        value = note(back, (now, value, *args), seen)
    return value
