"""Windows: the part of a tensor that a view covers, described by slices and selections where possible."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten
Record = Callable[
    ..., Any
]  # records a step and returns its value: record(operator, arguments, tensor of the result's shape)


@dataclass(frozen=True)
class Window:
    """A part of a tensor: for each axis (start, count, step); a count of None selects one index and drops the axis.

    `shape` is that of the view, which may have additional axes of length 1.
    """

    axes: tuple[tuple[int, int | None, int], ...]
    shape: tuple[int, ...]

    def is_disjoint(self, other: "Window") -> bool:
        """Whether two windows on one tensor have no element in common."""
        return any(
            a + ((n or 1) - 1) * step < b or b + ((m or 1) - 1) * pace < a
            for (a, n, step), (b, m, pace) in zip(self.axes, other.axes, strict=True)
        )

    def slicing_ops(self, sizes: tuple[int, ...]) -> list[tuple[Any, Any, tuple[Any, ...]]]:
        """(slicing operator, its scatter operator, arguments) for each axis that the window restricts.

        `sizes` is the shape of the whole tensor.
        """
        ops: list[tuple[Any, Any, tuple[Any, ...]]] = []
        dropped = 0
        for axis, (first, count, step) in enumerate(self.axes):
            if count is None:
                ops.append((aten.select.int, aten.select_scatter.default, (axis - dropped, first)))
                dropped += 1
            elif count != sizes[axis] or step != 1:
                end = first + (count - 1) * step + 1
                ops.append((aten.slice.Tensor, aten.slice_scatter.default, (axis, first, end, step)))
        # Slices come first, while no axis has been dropped by a selection.
        return sorted(ops, key=lambda op: op[0] is aten.select.int)


def window(root: Tensor, view: Tensor) -> Window | None:
    """The window of `root` that `view` covers; None where slices and selections cannot describe it.

    >>> whole = torch.zeros(4, 6)
    >>> window(whole, whole[1, 2:5]).axes
    ((1, None, 1), (2, 3, 1))
    >>> window(whole, whole.t()) is None
    True
    """
    if root.dtype != view.dtype or not root.numel() or not view.numel() or root.is_conj() != view.is_conj():
        return None
    if root.is_neg() != view.is_neg() or not _dense(root):
        return None
    remainder = view.storage_offset() - root.storage_offset()
    start = [0] * root.dim()
    for axis in sorted(range(root.dim()), key=lambda axis: -root.stride(axis)):
        if root.shape[axis] > 1:
            start[axis], remainder = divmod(int(remainder), root.stride(axis))
    if remainder or any(not 0 <= index < size for index, size in zip(start, root.shape, strict=True)):
        return None
    axes: list[tuple[int, int | None, int]] = []
    view_axes = [(size, step) for size, step in zip(view.shape, view.stride(), strict=True) if size > 1]
    for axis, size in enumerate(root.shape):
        if size == 1:
            axes.append((0, 1, 1))
            continue
        if view_axes and view_axes[0][1] % root.stride(axis) == 0 and view_axes[0][1]:
            count, step = view_axes[0][0], view_axes[0][1] // root.stride(axis)
            if start[axis] + (count - 1) * step < size:
                axes.append((start[axis], count, step))
                view_axes.pop(0)
                continue
        axes.append((start[axis], None, 1))
    return Window(tuple(axes), tuple(view.shape)) if not view_axes else None


def _dense(tensor: Tensor) -> bool:
    """Whether a tensor's elements fill its memory without gaps, whatever the order of its axes."""
    expected = 1
    for size, step in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda pair: pair[1]):
        if size > 1:
            if step != expected:
                return False
            expected *= size
    return True


def read_window(part: Window, root: Tensor) -> Tensor:
    """The view of a tensor that a window describes."""
    view = root
    for slicing, _, args in part.slicing_ops(tuple(root.shape)):
        view = slicing(view, *args)
    return view if tuple(view.shape) == part.shape else view.view(part.shape)


def write_window(part: Window, owner: Any, value: Any, record: Record, root: Tensor) -> Any:
    """The value of `owner` with `value` written into a window.

    Only steps are recorded: the memory of `root` has been written already.
    """
    ops = part.slicing_ops(tuple(root.shape))
    with _disable_current_modes():
        views = [root]  # the root, then after each slicing operator
        for slicing, _, args in ops:
            views.append(slicing(views[-1], *args))
    outer = [owner]
    for (slicing, _, args), view in zip(ops[:-1], views[1:], strict=False):
        outer.append(record(slicing, (outer[-1], *args), view))
    if tuple(views[-1].shape) != part.shape:
        value = record(aten.view.default, (value, list(views[-1].shape)), views[-1])
    for (_, scatter, args), target, view in zip(reversed(ops), reversed(outer), reversed(views[:-1]), strict=bool(ops)):
        value = record(scatter, (target, value, *args), view)
    return value
