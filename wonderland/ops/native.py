"""Kernels in C++: called through ctypes where they can be used, and plain torch where not."""

import ctypes
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from wonderland.core.processor import cpu_flags
from wonderland.ops import kernel_cache

_recording: ContextVar[str] = ContextVar("recording", default="")
_no_values: ContextVar[bool] = ContextVar("no_values", default=False)
WIDE = "avx512f" in cpu_flags()  # vectors of sixteen numbers in single precision, not eight
_ENTRY = {torch.float32: "f32", torch.float64: "f64", torch.complex64: "c64", torch.complex128: "c128"}
_KIND = {int: ctypes.c_long, bool: ctypes.c_long, float: ctypes.c_double}


def available(kernel: str = "scan") -> bool:
    """Whether a kernel is in use: one that cannot be built is replaced by plain PyTorch, alone. Set WONDERLAND_NATIVE=0 before
    the start to do without kernels."""
    return status(kernel) == "built"


# The compiler could not follow how kernels are built. `torch.compiler.assume_constant_result` sets this mark and nothing
# else, but loads the whole compiler to do so, a third of the time that all imports of a fit take.
available._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]


@functools.cache
def status(kernel: str = "scan") -> str:
    """ "built", or why this kernel is not in use and plain PyTorch does the work."""
    if os.environ.get("WONDERLAND_NATIVE", "1") == "0":
        return "switched off by WONDERLAND_NATIVE=0"
    try:
        library(kernel)
    except kernel_cache.BuildError as error:
        return f"not built: {error}"
    return "built"


def usable(kernel: str, *tensors: Tensor | None) -> bool:
    """Whether a kernel can read these tensors: all on the CPU, of one dtype for which it was built, no transform is active, no export."""
    kind = None
    for tensor in tensors:
        if tensor is not None:
            kind = kind or tensor.dtype
            if tensor.dtype != kind or not tensor.is_cpu:
                return False
    return kind in _ENTRY and not is_transformed() and not torch.compiler.is_exporting() and available(kernel)


@contextmanager
def recording(how: str) -> Iterator[None]:
    """Tell the ops that a program is being recorded: with "kernels" custom operators are steps of the record, with "equations"
    the operators of their equations are."""
    token = _recording.set(how)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def shapes_only() -> Iterator[None]:
    """Tell the ops that tensors have shapes and no values, so that nothing branches on a value: all count as finite."""
    token = _no_values.set(True)
    try:
        yield
    finally:
        _no_values.reset(token)


def is_shapes_only() -> bool:
    """Whether tensors have shapes and no values."""
    return not torch.compiler.is_compiling() and _no_values.get()


def is_recording() -> bool:
    """Whether a program is being recorded, to be differentiated by rules."""
    return not torch.compiler.is_compiling() and bool(_recording.get())


def needs_backward(*tensors: Tensor | None) -> bool:
    """Whether a backward pass may follow, so that kernels have to keep what it needs."""
    wanted = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    return wanted or is_recording()


def is_second_order() -> bool:
    """In a backward pass: whether its result will be differentiated again (`create_graph=True`)."""
    return torch.is_grad_enabled() and not is_recording()


def batched_grads(*grads: Tensor | None) -> Any:
    """A context for a backward pass: with batched gradients (`is_grads_batched`) it goes through the equation, because kernels
    read one gradient."""
    batched = torch._C._functorch.is_legacy_batchedtensor  # pyright: ignore
    many = any(grad is not None and batched(grad) for grad in grads)
    return torch.enable_grad() if many else nullcontext()


def is_transformed() -> bool:
    """Whether tensors are more than their values: torch.func or forward mode is active, or equations are recorded."""
    return not torch.compiler.is_compiling() and (_recording.get() == "equations" or _transforms())


def is_observed() -> bool:
    """Whether a recording or a transform is active, or tensors have no values; not to be called while compiling."""
    return bool(_recording.get()) or _no_values.get() or _transforms()


def _transforms() -> bool:
    return forward_ad._current_level >= 0 or torch._C._functorch.peek_interpreter_stack() is not None  # pyright: ignore


def common_dtype(*tensors: Tensor | None) -> list[Any]:
    """Tensors in one dtype, the widest of theirs: autocast leaves some in half precision and others not."""
    kinds = {tensor.dtype for tensor in tensors if tensor is not None}
    if len(kinds) < 2:
        return list(tensors)
    widest = functools.reduce(torch.promote_types, kinds)
    return [None if tensor is None else tensor.to(widest) for tensor in tensors]


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """The compiled form of kernels/NAME.cpp, from the cache or built now (2 to 10 seconds)."""
    return kernel_cache.load(name)


@functools.cache
def function(name: str, symbol: str, dtype: torch.dtype) -> Callable[..., None]:
    """One entry of a library for one type, SYMBOL_f32 for float32. It takes contiguous tensors, structs of C, numbers and None."""
    entry = getattr(library(name), f"{symbol}_{_ENTRY[dtype]}")

    def call(*arguments: Tensor | float | int | ctypes.Structure | None) -> None:
        if entry.argtypes is None:
            entry.restype = None
            entry.argtypes = [_KIND.get(type(item), ctypes.c_void_p) for item in arguments]
        entry(*[_address(item) if isinstance(item, Tensor | ctypes.Structure) else item for item in arguments])

    return call


def _address(item: Tensor | ctypes.Structure) -> Any:
    return item.data_ptr() if isinstance(item, Tensor) else ctypes.byref(item)


@functools.cache
def gemm(dtype: torch.dtype) -> int:
    """The address of the BLAS routine in torch, for kernels that call it from their threads; 0 where it is not found."""
    name = {torch.float32: "sgemm_", torch.float64: "dgemm_"}[dtype]
    try:
        routine = getattr(ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")), name)
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(routine, ctypes.c_void_p).value or 0


def differentiable_backward(
    equation: Callable[..., Any], inputs: Sequence[Tensor | None], grads: Any
) -> list[Tensor | None]:
    """Gradients that can be differentiated again: they go through the equation in torch and not through the kernel.

    `grads` are those of the equation's outputs, one or a sequence; inputs that need no gradient, or are None, get None.
    """
    # Views separate the inputs in the graph: one may be computed from another, and that path is not part of the equation.
    inputs = [tensor.view_as(tensor) if tensor is not None and tensor.requires_grad else tensor for tensor in inputs]
    wanted = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
    outputs = equation(*inputs)
    pairs = [(outputs, grads)] if isinstance(outputs, Tensor) else list(zip(outputs, grads, strict=True))
    pairs = [(output, grad) for output, grad in pairs if grad is not None and output.requires_grad]
    results = torch.autograd.grad(
        [output for output, _ in pairs], wanted, [grad for _, grad in pairs], create_graph=True, allow_unused=True
    )
    remaining = iter(results)
    return [next(remaining) if tensor is not None and tensor.requires_grad else None for tensor in inputs]


def call(op: Any, *arguments: Any) -> Any:
    """Call a custom operator, and not through the dispatcher where no dispatch mode is active: that takes longer than a small
    kernel.

    Compilers, recordings and dispatch modes get the operator itself; results and backward pass are the same.
    """
    backward = _direct(arguments)
    if backward is None:
        return op(*arguments)
    return _shortcut(op).apply(*arguments) if backward else op._init_fn(*arguments)


def call_first(op: Any, *arguments: Any) -> Tensor:
    """`call` of an operator of whose outputs only the first has a gradient; the others are kept for its backward pass."""
    backward = _direct(arguments)
    if backward is None:
        return op(*arguments)[0]
    return _first(op).apply(*arguments) if backward else op._init_fn(*arguments)[0]


def _direct(arguments: tuple[Any, ...]) -> bool | None:
    """Whether a backward pass may follow; None where the call has to go through the dispatcher."""
    if torch.compiler.is_compiling() or _recording.get() or torch._C._len_torch_dispatch_stack():
        return None
    backward, enabled = False, torch.is_grad_enabled()
    for item in arguments:
        if isinstance(item, Tensor):
            if type(item) not in _PLAIN or item.is_neg() or item.is_conj():
                return None
            backward = backward or (enabled and item.requires_grad)
    return backward


def no_dispatch_mode(*tensors: Tensor | None) -> bool:
    """Whether no dispatch mode, compiler or recording is active, and tensors are of no subclass."""
    return _direct(tensors) is not None


def is_plain(tensor: Any) -> bool:
    """Whether the values of a tensor are the numbers in its memory: no subclass, dense, no lazy negation or conjugation."""
    return type(tensor) in _PLAIN and tensor.layout is torch.strided and not tensor.is_neg() and not tensor.is_conj()


_PLAIN = (Tensor, torch.nn.Parameter)


@functools.cache
def _shortcut(op: Any) -> Any:
    """The autograd function that a custom operator makes of itself, without the dispatcher."""

    class Shortcut(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            outputs = op._init_fn(*arguments)
            op._setup_context_fn(ctx, arguments, outputs)
            ctx.set_materialize_grads(False)
            ctx.like = [(y.shape, y.dtype) for y in (outputs if isinstance(outputs, tuple) else (outputs,))]
            return outputs

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            # Expanded zeros take no memory.
            full = [
                torch.zeros((), dtype=dtype).expand(shape) if grad is None else grad
                for grad, (shape, dtype) in zip(grads, ctx.like, strict=True)
            ]
            with batched_grads(*grads):
                return op._backward_fn(ctx, *full)

    return Shortcut


@functools.cache
def _first(op: Any) -> Any:
    """The same for the first output alone."""

    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            outputs = op._init_fn(*arguments)
            op._setup_context_fn(ctx, arguments, outputs)
            ctx.count = len(outputs) - 1
            return outputs[0]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            with batched_grads(grad):
                return op._backward_fn(ctx, grad, *(None,) * ctx.count)

    return First


def contiguous(*tensors: Tensor | None) -> list[Tensor | None]:
    """Contiguous tensors, copied only if they are not."""
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


def evenly_spaced(x: Tensor) -> Tensor:
    """A tensor (b, t, d) whose b t rows lie at one distance from each other, copied only if they do not."""
    b, t, d = x.shape
    # An axis of one entry may have any stride: `is_contiguous` does not look at it.
    if (d == 1 or x.stride(2) == 1) and t > 1 and (b == 1 or x.stride(0) == t * x.stride(1)):
        return x
    return x.contiguous().view(-1).view(x.shape)
