"""Kernels in C++: built once on the user's machine, kept in a cache, called through plain C; absent where that fails."""

import ctypes
import functools
import hashlib
import os
import platform
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from wonderland.core.processor import cpu_flags

_recording: ContextVar[str] = ContextVar("recording", default="")
_imagining: ContextVar[bool] = ContextVar("imagining", default=False)
WIDE = "avx512f" in cpu_flags()  # vectors of sixteen numbers in single precision, not eight
HERE = Path(__file__).parent / "kernels"
_ENTRY = {torch.float32: "f32", torch.float64: "f64", torch.complex64: "c64", torch.complex128: "c128"}
_KIND = {int: ctypes.c_long, bool: ctypes.c_long, float: ctypes.c_double}
FLAGS = ("-O3", "-march=native", "-std=c++17", "-fPIC", "-shared", "-fopenmp", "-fno-math-errno", "-fno-trapping-math")


def available() -> bool:
    """Whether kernels are in use; set WONDERLAND_NATIVE=0 before the start to do without them."""
    return status() == "built"


# The compiler could not follow how kernels are built. `torch.compiler.assume_constant_result` sets this mark and nothing
# else, but loads the whole compiler to do so, a third of the time that all imports of a fit take.
available._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]


@functools.cache
def status() -> str:
    """ "built", or why kernels are not in use and plain PyTorch does the work."""
    if os.environ.get("WONDERLAND_NATIVE", "1") == "0":
        return "switched off by WONDERLAND_NATIVE=0"
    try:
        library("scan")
    except (OSError, subprocess.SubprocessError) as error:
        return f"not built: {str(error).splitlines()[0][:200]}"
    return "built"


def usable(*tensors: Tensor | None) -> bool:
    """Whether a kernel can take these tensors: on the CPU, of one type for which it was built."""
    kind = None
    for tensor in tensors:
        if tensor is not None:
            kind = kind or tensor.dtype
            if tensor.dtype != kind or not tensor.is_cpu:
                return False
    return kind in _ENTRY and available() and not transformed()


@contextmanager
def recording(how: str) -> Iterator[None]:
    """Tell the ops that what runs is being recorded: "kernels" stand as steps of the record, or "equations" do."""
    token = _recording.set(how)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def imagining() -> Iterator[None]:
    """Tell the ops that tensors have shapes and no numbers, so that nobody asks them for one: they pass for finite."""
    token = _imagining.set(True)
    try:
        yield
    finally:
        _imagining.reset(token)


def imagined() -> bool:
    """Whether tensors have no numbers that could be asked for."""
    return not torch.compiler.is_compiling() and _imagining.get()


def recorded() -> bool:
    """Whether a program is being recorded, to be differentiated by rules."""
    return not torch.compiler.is_compiling() and bool(_recording.get())


def learns(*tensors: Tensor | None) -> bool:
    """Whether a backward pass may come, so that kernels keep what it needs."""
    wanted = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    return wanted or recorded()


def graphed() -> bool:
    """In a backward pass: whether torch differentiates what it gives once more."""
    return torch.is_grad_enabled() and not recorded()


def several(*slopes: Tensor | None) -> Any:
    """Around a way back: where a slope is many (`is_grads_batched`) it goes through the equation, for kernels see one."""
    batched = torch._C._functorch.is_legacy_batchedtensor  # pyright: ignore
    many = any(slope is not None and batched(slope) for slope in slopes)
    return torch.enable_grad() if many else nullcontext()


def transformed() -> bool:
    """Whether tensors carry more than kernels see: torch.func or forward mode at work, or a record made of equations."""
    return not torch.compiler.is_compiling() and (_recording.get() == "equations" or _transforms())


def watched() -> bool:
    """Whether a record is made or a transform is at work; not to be asked while compiling."""
    return bool(_recording.get()) or _transforms()


def _transforms() -> bool:
    return forward_ad._current_level >= 0 or torch._C._functorch.peek_interpreter_stack() is not None  # pyright: ignore


def alike(*tensors: Tensor | None) -> list[Any]:
    """Tensors in one type, the widest of theirs: autocast leaves some in half precision and others not."""
    kinds = {tensor.dtype for tensor in tensors if tensor is not None}
    if len(kinds) < 2:
        return list(tensors)
    widest = functools.reduce(torch.promote_types, kinds)
    return [None if tensor is None else tensor.to(widest) for tensor in tensors]


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """The compiled form of kernels/NAME.cpp, from the cache or built now (about two seconds)."""
    compiler = os.environ.get("CXX", "g++")
    source = (HERE / f"{name}.cpp").read_bytes()
    common = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.h")))
    key = hashlib.sha256(b"\0".join([source, common, repr(FLAGS).encode(), compiler.encode(), _machine().encode()]))
    path = _folder() / f"{name}-{key.hexdigest()[:24]}.so"
    if not path.exists():
        aside = path.with_name(f".{path.name}.{os.getpid()}.part")
        command = [compiler, *FLAGS, f"-I{HERE}", "-x", "c++", str(HERE / f"{name}.cpp"), "-o", str(aside)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            aside.unlink(missing_ok=True)
            raise OSError(done.stderr.strip() or f"{compiler} failed")
        os.replace(aside, path)
    return ctypes.CDLL(str(path))


@functools.cache
def function(name: str, symbol: str, dtype: torch.dtype) -> Callable[..., None]:
    """One entry of a library for one type, SYMBOL_f32 for float32. It takes contiguous tensors, arrays of C, numbers and None."""
    entry = getattr(library(name), f"{symbol}_{_ENTRY[dtype]}")

    def call(*arguments: Tensor | float | int | ctypes.Array[Any] | None) -> None:
        if entry.argtypes is None:
            entry.restype = None
            entry.argtypes = [_KIND.get(type(item), ctypes.c_void_p) for item in arguments]
        entry(*[item.data_ptr() if isinstance(item, Tensor) else item for item in arguments])

    return call


@functools.cache
def gemm(dtype: torch.dtype) -> int:
    """The address of torch's own matrix product, for kernels that call it from their threads; 0 where it is not to be found."""
    name = {torch.float32: "sgemm_", torch.float64: "dgemm_"}[dtype]
    try:
        found = getattr(ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")), name)
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(found, ctypes.c_void_p).value or 0


def again(equation: Callable[..., Any], inputs: Sequence[Tensor | None], slopes: Any) -> list[Tensor | None]:
    """Gradients that can be differentiated again: a backward pass in a graph goes through the equation, not the kernel.

    `slopes` are those of the equation's outputs, one or as many as it has; inputs that need no gradient, or are None, get None.
    """
    # Views stand apart in the graph: of two inputs one may come from the other, and that way is not the equation's to go.
    inputs = [tensor.view_as(tensor) if tensor is not None and tensor.requires_grad else tensor for tensor in inputs]
    wanted = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
    outputs = equation(*inputs)
    pairs = [(outputs, slopes)] if isinstance(outputs, Tensor) else list(zip(outputs, slopes, strict=True))
    pairs = [(output, slope) for output, slope in pairs if slope is not None and output.requires_grad]
    found = torch.autograd.grad(
        [output for output, _ in pairs], wanted, [slope for _, slope in pairs], create_graph=True, allow_unused=True
    )
    named = iter(found)
    return [next(named) if tensor is not None and tensor.requires_grad else None for tensor in inputs]


def call(op: Any, *arguments: Any) -> Any:
    """A custom operator, without the detour over the dispatcher where nobody listens there: it costs more than small kernels do.

    Compilers, records and dispatch modes get the operator itself; what it computes and its backward pass are the same.
    """
    learns = _direct(arguments)
    if learns is None:
        return op(*arguments)
    return _shortcut(op).apply(*arguments) if learns else op._init_fn(*arguments)


def first(op: Any, *arguments: Any) -> Tensor:
    """`call` of an operator whose first result alone has slopes: the others are kept for its backward pass."""
    learns = _direct(arguments)
    if learns is None:
        return op(*arguments)[0]
    return _first(op).apply(*arguments) if learns else op._init_fn(*arguments)[0]


def _direct(arguments: tuple[Any, ...]) -> bool | None:
    """Whether a backward pass may come; None where the dispatcher has to be asked."""
    if torch.compiler.is_compiling() or _recording.get() or torch._C._len_torch_dispatch_stack():
        return None
    learns, wanted = False, torch.is_grad_enabled()
    for item in arguments:
        if isinstance(item, Tensor):
            if type(item) not in _PLAIN or item.is_neg() or item.is_conj():
                return None
            learns = learns or (wanted and item.requires_grad)
    return learns


def unheard(*tensors: Tensor | None) -> bool:
    """Whether nobody listens to the dispatcher, and tensors are plain ones."""
    return _direct(tensors) is not None


def bare(tensor: Any) -> bool:
    """Whether a tensor is the numbers at its address: no subclass, no gaps to be filled, no sign still to be turned."""
    return type(tensor) in _PLAIN and tensor.layout is torch.strided and not tensor.is_neg() and not tensor.is_conj()


_PLAIN = (Tensor, torch.nn.Parameter)


@functools.cache
def _shortcut(op: Any) -> Any:
    """The autograd function that a custom operator would make of itself."""

    class Shortcut(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            found = op._init_fn(*arguments)
            op._setup_context_fn(ctx, arguments, found)
            ctx.set_materialize_grads(False)
            ctx.like = [(one.shape, one.dtype) for one in (found if isinstance(found, tuple) else (found,))]
            return found

        @staticmethod
        def backward(ctx: Any, *slopes: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            # Zeros that nobody reads take no memory.
            full = [
                torch.zeros((), dtype=dtype).expand(shape) if slope is None else slope
                for slope, (shape, dtype) in zip(slopes, ctx.like, strict=True)
            ]
            with several(*slopes):
                return op._backward_fn(ctx, *full)

    return Shortcut


@functools.cache
def _first(op: Any) -> Any:
    """The same for the first result alone."""

    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            found = op._init_fn(*arguments)
            op._setup_context_fn(ctx, arguments, found)
            ctx.count = len(found) - 1
            return found[0]

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            with several(slope):
                return op._backward_fn(ctx, slope, *(None,) * ctx.count)

    return First


def solid(*tensors: Tensor | None) -> list[Tensor | None]:
    """Tensors whose numbers lie side by side, copied only if they do not."""
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


def lined(x: Tensor) -> Tensor:
    """A tensor (b, t, d) whose rows follow each other at one distance, copied only if they do not."""
    b, t, d = x.shape
    # An axis of one entry may have any stride, and its tensor counts as contiguous all the same.
    if (d == 1 or x.stride(2) == 1) and t > 1 and (b == 1 or x.stride(0) == t * x.stride(1)):
        return x
    return x.contiguous().view(-1).view(x.shape)


def _machine() -> str:
    """What -march=native depends on: a cache in a shared home must not serve another processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.platform() + platform.processor()
    return platform.machine() + "".join(sorted({line for line in lines if line.startswith(("flags", "model name"))}))


@functools.cache
def _folder() -> Path:
    """A folder that only this user can write to: what lies there is executed."""
    home = os.environ.get("WONDERLAND_CACHE") or os.environ.get("XDG_CACHE_HOME")
    folder = (Path(home) if home else Path.home() / ".cache") / "wonderland" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
        if found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o022:
            return folder
    except (OSError, RuntimeError):
        pass
    return Path(tempfile.mkdtemp(prefix="wonderland-kernels-"))
