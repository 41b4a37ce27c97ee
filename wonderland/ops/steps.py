"""Programs of single steps: one token through a whole model in one call, where dispatch would cost more than arithmetic."""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.ops import native

MOST_ROWS = 8  # above this, matrix products over the whole batch win
EMBED, LAYER_NORM, RMS_NORM, COPY, MAMBA, RWKV_TIME, RWKV_CHANNEL, ATTENTION, HIDDEN, RECURRENT, COUNT, FINISH, HEAD = (
    range(13)
)
CELLS = ("rnn", "lstm", "gru_after", "gru_before", "ligru")
ACTIVATIONS = ("identity", "relu", "squared_relu", "sigmoid", "silu", "tanh", "gelu", "gelu_tanh")

# Plain dispatcher entries: a custom_op costs 15 microseconds a call, as much as the step itself.
_LIBRARY = torch.library.Library("wonderland", "FRAGMENT")


def entry(schema: str, run: Callable[..., Any], shapes: Callable[..., Any]) -> Any:
    """A kernel without derivatives as an entry of torch's dispatcher."""
    name = schema.split("(")[0]
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, run, "CPU")
    torch.library.register_fake(f"wonderland::{name}", shapes, lib=_LIBRARY)
    return getattr(torch.ops.wonderland, name).default


def fits(rows: int, t: int, like: Tensor) -> bool:
    """Whether a program may take over: one token, few rows, no gradients, float32 or float64 on the CPU."""
    return (
        t == 1
        and rows <= MOST_ROWS
        and not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and like.dtype in (torch.float32, torch.float64)
        and like.is_cpu
        and native.available()
        and not native.recorded()
        and not native.transformed()
        and not torch.is_autocast_enabled("cpu")
    )


class Program:
    """Instructions for one token of `rows` sequences: a stream of width `dim` that parts read through a branch and add to.

    Parts write themselves down with `add`, and say with None that they have no such form; the whole is then done without.
    """

    __slots__ = ("_counts", "codes", "dim", "dtype", "numbers", "read", "rows", "write")

    def __init__(self, dtype: torch.dtype, rows: int, dim: int):
        self.dtype, self.rows, self.dim = dtype, rows, dim
        self.codes: list[int] = []
        self.numbers: list[float] = []
        self.read: list[Tensor | None] = []
        self.write: list[Tensor] = []
        self._counts: dict[int, Tensor] = {}

    def add(
        self,
        code: int,
        sizes: Sequence[int],
        read: Sequence[Tensor | None],
        write: Sequence[Tensor],
        number: float = 0.0,
    ) -> None:
        """One instruction, with the tensors it reads and those it writes."""
        self.codes += (code, len(sizes), *sizes)
        self.numbers.append(number)
        self.read += read
        self.write += write

    def later(self, seen: Tensor) -> Tensor:
        """One token more; states that share a count go on sharing it."""
        found = self._counts.get(id(seen))
        if found is None:
            found = self._counts[id(seen)] = torch.empty_like(seen)
            self.add(COUNT, (), (seen.contiguous(),), (found,))
        return found

    def weights(self, module: nn.Module, linear: tuple[str, ...], own: tuple[str, ...] = ()) -> list[Tensor] | None:
        """Weights of a module's linear layers, then its own; None if one is something else by now, such as an adapter.

        Read from the dictionaries of the module: its attributes go through Python, a microsecond each.
        """
        found, children, mine = [], module._modules, module._parameters
        for name in linear:
            child = children[name]
            if type(child) is not nn.Linear:
                return None
            found.append(child._parameters.get("weight"))
        for name in own:
            found.append(mine.get(name))
        for weight in found:
            if weight is None or weight.dtype != self.dtype or not weight.is_contiguous():
                return None
        return found

    def state(self, state: Sequence[Tensor]) -> list[Tensor] | None:
        """A state as kernels read it; None where it holds other numbers, or lies elsewhere."""
        for part in state:
            if part.dtype != self.dtype or not part.is_cpu:
                return None
        return [part.contiguous() for part in state]

    def alone(self) -> None:
        """Begin a program of one part: its input is the branch, and the stream is empty."""
        self.add(COPY, (1,), (), ())

    def run(self, x: Tensor | None, shape: tuple[int, ...]) -> Tensor:
        """Do it: the last instruction writes what is returned."""
        y = torch.empty(shape, dtype=self.dtype)
        self.write.append(y)
        # Whoever listens to the dispatcher hears of the call; when nobody does, it costs as much as a layer.
        run = _steps if torch._C._len_torch_dispatch_stack() else _run
        run(x, self.read, self.write, self.codes, self.numbers, self.rows, self.dim)
        return y


def _run(x, read, write, codes, numbers, rows, dim) -> None:
    x = None if x is None else x.contiguous()
    _function(write[-1].dtype)(
        None if x is None else x.data_ptr(),
        (ctypes.c_long * len(codes))(*codes),
        (ctypes.c_double * len(numbers))(*numbers),
        (ctypes.c_void_p * len(read))(*[None if tensor is None else tensor.data_ptr() for tensor in read]),
        (ctypes.c_void_p * len(write))(*[tensor.data_ptr() for tensor in write]),
        len(numbers),
        rows,
        dim,
        torch.get_num_threads(),
    )


@functools.cache
def _function(dtype: torch.dtype) -> Any:
    found = getattr(native.library("steps"), "run_f32" if dtype == torch.float32 else "run_f64")
    found.restype = None
    found.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_long] * 4
    return found


_steps = entry(
    "steps(Tensor? x, Tensor?[] read, Tensor(a!)[] write, int[] codes, float[] numbers, int rows, int dim) -> ()",
    _run,
    lambda *arguments: None,
)
