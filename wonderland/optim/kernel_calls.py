"""One call of a kernel for all tensors of a group, prepared once and checked each step."""

from typing import Any

import torch
from torch import Tensor

from wonderland.ops import native
from wonderland.optim.rules import Kernel

State = dict[str, Any]


class Plan:
    """Which tensors of a group go through a kernel together, and which through the rule one by one."""

    def __init__(self, kernel: Kernel | None, live: list[Tensor], states: list[State]):
        self.live, self.states, self.kernel = live, states, kernel
        self.usable = usable(kernel, live[0])
        together: dict[torch.dtype, list[int]] = {}
        self.alone: list[int] = []
        for i, parameter in enumerate(live):
            if self.usable and usable(kernel, parameter) and dense(parameter):
                together.setdefault(real(parameter).dtype, []).append(i)
            else:
                self.alone.append(i)
        self.passes = [Pass(kernel, rows, live, states) for rows in together.values()] if kernel else []

    def holds(self, live: list[Tensor], states: list[State]) -> bool:
        """Whether everything is still where it was: parameters, their memory, their states."""
        return (
            len(live) == len(self.live)
            and all(a is b for a, b in zip(live, self.live, strict=True))
            and all(a is b for a, b in zip(states, self.states, strict=True))
            and self.usable == usable(self.kernel, live[0])
            and all(each.holds() for each in self.passes)
        )


class Pass:
    """Addresses and sizes of what a kernel works on; only the gradients' addresses change from step to step."""

    def __init__(self, kernel: Kernel, rows: list[int], live: list[Tensor], states: list[State]):
        self.kernel, self.rows = kernel, rows
        self.parameters = [live[i] for i in rows]
        self.states = [states[i] for i in rows]
        self.tensors: list[list[Tensor]] = []
        for name in kernel.tensors:
            for parameter, state in zip(self.parameters, self.states, strict=True):
                state[name] = placed(state[name], real(parameter))
            self.tensors.append([state[name] for state in self.states])
        self.homes = [parameter.data_ptr() for parameter in self.parameters]
        self.whole = [parameter.is_contiguous() and not parameter.is_complex() for parameter in self.parameters]
        self.table = torch.tensor([self.homes, self.homes, *([t.data_ptr() for t in row] for row in self.tensors)])
        self.sizes = torch.tensor([real(parameter).numel() for parameter in self.parameters])
        self.entry = native.function("optimizers", kernel.symbol, real(self.parameters[0]).dtype)

    def holds(self) -> bool:
        """Whether the addresses are still right."""
        return [parameter.data_ptr() for parameter in self.parameters] == self.homes and all(
            state[name] is tensor
            for name, row in zip(self.kernel.tensors, self.tensors, strict=True)
            for state, tensor in zip(self.states, row, strict=True)
        )

    def __call__(self, gradients: list[Tensor], options: dict[str, Any]) -> None:
        """Update in place; `gradients` are those of all live parameters of the group."""
        found = [
            gradient if whole and gradient.is_contiguous() else placed(real(gradient), real(parameter))
            for gradient, whole, parameter in zip(
                [gradients[i] for i in self.rows], self.whole, self.parameters, strict=True
            )
        ]
        self.table[1] = torch.tensor([gradient.data_ptr() for gradient in found])
        numbers = self._numbers(options)
        width = len(numbers[0])
        self.entry(
            self.table,
            self.sizes,
            torch.tensor(numbers, dtype=torch.float64),
            len(found),
            width,
            width if len(numbers) > 1 else 0,
            torch.get_num_threads(),
        )

    def _numbers(self, options: dict[str, Any]) -> list[tuple[float, ...]]:
        """A row for each tensor, or one row if all are at the same step, as they are nearly always."""
        kernel, plain = self.kernel, self.kernel.plain
        if not plain:
            return [kernel.numbers({}, options)]
        seen: dict[tuple[float, ...], tuple[State, tuple[float, ...]]] = {}
        numbers = []
        for state in self.states:
            key = tuple([state[name] for name in plain])
            if key not in seen:
                kernel.advance(state, options)
                seen[key] = {name: state[name] for name in plain}, kernel.numbers(state, options)
            after, row = seen[key]
            state.update(after)
            numbers.append(row)
        return numbers if len(seen) > 1 else numbers[:1]


def usable(kernel: Kernel | None, parameter: Tensor) -> bool:
    """Whether the kernel can take a parameter."""
    return kernel is not None and native.usable(real(parameter))


def real(tensor: Tensor) -> Tensor:
    """Complex numbers as pairs, in the same memory; real ones as they are."""
    tensor = tensor.detach()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def dense(tensor: Tensor) -> bool:
    """Whether elements lie side by side in memory, in whatever order of axes."""
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    return tensor.is_contiguous() or tensor.permute(order).is_contiguous()


def placed(value: Tensor, like: Tensor) -> Tensor:
    """The same values in the same order of memory as another tensor."""
    if value.stride() == like.stride() and value.dtype == like.dtype:
        return value
    return torch.empty_like(like).copy_(value)
