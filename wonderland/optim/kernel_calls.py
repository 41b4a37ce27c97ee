"""Calls of optimizer kernels: one call for all tensors of a group and dtype, prepared once and validated at each step."""

from typing import Any

import torch
from torch import Tensor

from wonderland.ops import native
from wonderland.optim.rules import Kernel

State = dict[str, Any]


class GroupUpdate:
    """Which tensors of a group are updated by a kernel call together (`calls`), and which by the rule one by one (`one_by_one`)."""

    def __init__(self, kernel: Kernel | None, live: list[Tensor], states: list[State]):
        self.live, self.states, self.kernel = live, states, kernel
        self.usable = usable(kernel, live[0])
        together: dict[torch.dtype, list[int]] = {}
        self.one_by_one: list[int] = []
        for i, parameter in enumerate(live):
            if self.usable and usable(kernel, parameter) and dense(parameter):
                together.setdefault(real(parameter).dtype, []).append(i)
            else:
                self.one_by_one.append(i)
        self.calls = [KernelCall(kernel, rows, live, states) for rows in together.values()] if kernel else []

    def is_valid(self, live: list[Tensor], states: list[State]) -> bool:
        """Whether parameters, their memory and their states are the same as when this was prepared."""
        return (
            len(live) == len(self.live)
            and all(a is b for a, b in zip(live, self.live, strict=True))
            and all(a is b for a, b in zip(states, self.states, strict=True))
            and self.usable == usable(self.kernel, live[0])
            and all(call.is_valid() for call in self.calls)
        )


class KernelCall:
    """Addresses and sizes of the tensors of one kernel call; only the gradients' addresses change from step to step."""

    def __init__(self, kernel: Kernel, rows: list[int], live: list[Tensor], states: list[State]):
        self.kernel, self.rows = kernel, rows
        self.parameters = [live[i] for i in rows]
        self.states = [states[i] for i in rows]
        self.tensors: list[list[Tensor]] = []
        for name in kernel.tensors:
            for parameter, state in zip(self.parameters, self.states, strict=True):
                state[name] = with_layout_of(state[name], real(parameter))
            self.tensors.append([state[name] for state in self.states])
        self.addresses = [parameter.data_ptr() for parameter in self.parameters]
        self.plain = [parameter.is_contiguous() and not parameter.is_complex() for parameter in self.parameters]
        self.table = torch.tensor(
            [self.addresses, self.addresses, *([t.data_ptr() for t in row] for row in self.tensors)]
        )
        self.sizes = torch.tensor([real(parameter).numel() for parameter in self.parameters])
        self.entry = native.function("optimizers", kernel.symbol, real(self.parameters[0]).dtype)

    def is_valid(self) -> bool:
        """Whether the addresses are still valid."""
        return [parameter.data_ptr() for parameter in self.parameters] == self.addresses and all(
            state[name] is tensor
            for name, row in zip(self.kernel.tensors, self.tensors, strict=True)
            for state, tensor in zip(self.states, row, strict=True)
        )

    def __call__(self, gradients: list[Tensor], options: dict[str, Any]) -> None:
        """Update in place; `gradients` are those of all parameters of the group that have one."""
        laid_out = [
            gradient if plain and gradient.is_contiguous() else with_layout_of(real(gradient), real(parameter))
            for gradient, plain, parameter in zip(
                [gradients[i] for i in self.rows], self.plain, self.parameters, strict=True
            )
        ]
        self.table[1] = torch.tensor([gradient.data_ptr() for gradient in laid_out])
        numbers = self._numbers(options)
        width = len(numbers[0])
        self.entry(
            self.table,
            self.sizes,
            torch.tensor(numbers, dtype=torch.float64),
            len(laid_out),
            width,
            width if len(numbers) > 1 else 0,
            torch.get_num_threads(),
        )

    def _numbers(self, options: dict[str, Any]) -> list[tuple[float, ...]]:
        """The scalar arguments: a row for each tensor, or one row if all are at the same step, the usual case."""
        kernel, scalars = self.kernel, self.kernel.plain
        if not scalars:
            return [kernel.numbers({}, options)]
        seen: dict[tuple[float, ...], tuple[State, tuple[float, ...]]] = {}
        numbers = []
        for state in self.states:
            key = tuple([state[name] for name in scalars])
            if key not in seen:
                kernel.advance(state, options)
                seen[key] = {name: state[name] for name in scalars}, kernel.numbers(state, options)
            after, row = seen[key]
            state.update(after)
            numbers.append(row)
        return numbers if len(seen) > 1 else numbers[:1]


def usable(kernel: Kernel | None, parameter: Tensor) -> bool:
    """Whether the kernel can take a parameter."""
    return kernel is not None and native.usable("optimizers", real(parameter))


def real(tensor: Tensor) -> Tensor:
    """A complex tensor viewed as real pairs; a real one detached."""
    tensor = tensor.detach()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def dense(tensor: Tensor) -> bool:
    """Whether the elements fill memory without gaps, in any order of axes."""
    order = sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
    return tensor.is_contiguous() or tensor.permute(order).is_contiguous()


def with_layout_of(value: Tensor, like: Tensor) -> Tensor:
    """The values in the strides and dtype of another tensor."""
    if value.stride() == like.stride() and value.dtype == like.dtype:
        return value
    return torch.empty_like(like).copy_(value)
