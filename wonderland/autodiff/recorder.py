"""The recorder: a dispatch mode that records every operator a function runs, with in-place writes as new values."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import is_fake
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from wonderland.autodiff.cost import VIEWS, packet
from wonderland.autodiff.functions import Primitive
from wonderland.autodiff.node import Step, Value, map_tree
from wonderland.autodiff.rules.table import RULES, Rule, decomposition, known, no_cotangent
from wonderland.autodiff.threads import ThreadLocalStack
from wonderland.autodiff.windows import Window, read_window, window, write_window
from wonderland.autodiff.writes import functional, is_random, op_name, pure_arguments, written_by
from wonderland.core import WonderlandError
from wonderland.ops import native

aten = torch.ops.aten
ACTIVE: ThreadLocalStack["Recorder"] = ThreadLocalStack()
_SOURCE_STEPS: ThreadLocalStack[Step] = ThreadLocalStack()
_INTERNAL_FILES = (
    str(torch.__path__[0]),
    *(str(Path(__file__).parents[1] / name) for name in ("autodiff", "cli")),
    "<",
)
_UNINITIALIZED = frozenset(["empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"])


class _DecomposedTooFar(Exception):
    """A decomposition reached torch's `prims` operators, which have no rules here: the operator is recorded whole instead."""


@dataclass(frozen=True)
class _Write:
    """An in-place write into memory that several tensors share.

    `version` counts the writes to that memory; `layout` and `part` say where, `value` what was written. An `untracked`
    write ran without gradients: it changes values and no derivatives.
    """

    version: int
    layout: Any
    part: Window | None
    value: Value
    untracked: bool


class Recorder(TorchDispatchMode):
    """Records each primitive that runs while this mode is active, in order.

    Operators run as usual, so Python may branch on values. `inputs` are the tensors that the program is a function of;
    other tensors that it reads become constants.

    A storage is identified by `_storage(tensor)`. The first tensor recorded with a storage is its root: writes through
    views are recorded as new values of the root, and other tensors on that storage read their value from it when their
    version is out of date.
    """

    def __init__(self, inputs: list[Tensor], differentiates: bool = False):
        super().__init__()
        self.differentiates = differentiates
        self.steps: list[Step] = []
        self.constants: list[Value] = []
        self._tracked: dict[int, tuple[Tensor, Value, int]] = {}  # by id(tensor); the version the value was read at
        self._tensors_on: dict[int, list[int]] = {}  # storage: ids of its tensors, the root first
        self._values_on: dict[int, list[Value]] = {}  # storage: values that still use its memory
        self._version: dict[int, int] = {}
        self._writes: dict[int, list[_Write]] = {}
        self._modules: list[str] = []
        self._decomposing = 0
        self._buffers: dict[int, Tensor] = {}
        self._first_reads: dict[int, tuple[Tensor, Value]] = {}
        self.inputs = [self._bind(tensor, Value.of(tensor, True)) for tensor in inputs]
        self._input_storages = {_storage(tensor) for tensor in inputs}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:  # fake tensors are asked for their device this way
            return args[0].fake_device
        if func._schema.is_mutable and (written := written_by(func, args, kwargs)):
            return self._write(func, args, kwargs, written)
        if not known(func):
            if func.namespace == "prims" and self._decomposing:
                raise _DecomposedTooFar
            if (decompose := decomposition(func)) is not None:
                self._decomposing += 1
                try:
                    with self:
                        return decompose(*args, **kwargs)
                except _DecomposedTooFar:
                    pass
                finally:
                    self._decomposing -= 1
            if func._can_decompose() and func.namespace == "aten":
                with self:
                    result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        result = run(func, args, kwargs)
        self.record(func, args, kwargs, result)
        return result

    def record(self, target: Any, args: Any, kwargs: dict[str, Any], result: Any) -> Step:
        """Add a step: tensors among the arguments are replaced by their values, tensors in the result get new values."""
        read = self.value if packet(target) in VIEWS else self._read
        step = Step(
            target,
            map_tree(tuple(args), Tensor, read),
            map_tree(kwargs, Tensor, read),
            line=where(),
            module=self._module(),
            grad_enabled=torch.is_grad_enabled(),
        )
        depends = any(value.depends for value in step.inputs)
        step.result = map_tree(result, Tensor, lambda tensor: self._bind(tensor, Value.of(tensor, depends, step)))
        results = result if isinstance(result, tuple | list) else (result,)
        first_in = next((entry for entry in (*args, *kwargs.values()) if isinstance(entry, Tensor)), None)
        first_out = next((entry for entry in results if isinstance(entry, Tensor)), None)
        step.views_input = first_in is not None and first_out is not None and _storage(first_in) == _storage(first_out)
        self.steps.append(step)
        return step

    def _module(self) -> str:
        return _SOURCE_STEPS.last.module if _SOURCE_STEPS else self._modules[-1] if self._modules else ""

    def value(self, tensor: Tensor) -> Value:
        """The current value of a tensor; a tensor not recorded before becomes a constant."""
        tracked = self._tracked.get(id(tensor))
        if tracked is None:
            if (alias := self._alias_value(tensor)) is not None:
                return alias
            plain(tensor)
            value = self._bind(tensor, Value.of(tensor, False))
            self.constants.append(value)
            self._first_reads.setdefault(_storage(tensor), (tensor, value))
            return value
        _, value, version = tracked
        storage = _storage(tensor)
        if version == self._version.get(storage, 0):
            return value
        return self._bind(tensor, self._value_after_writes(tensor, value, storage, version))

    def _value_after_writes(self, tensor: Tensor, before: Value, storage: int, version: int) -> Value:
        """The value of a tensor whose memory was written since it was last read.

        That is the written value if the last write covers exactly this tensor, the old value if no write overlaps it,
        else a view of the root's current value.
        """
        root = self._root(storage)
        part = window(root, tensor)
        for write in reversed(self._writes.get(storage, ())):
            if write.version <= version:
                return before
            if write.untracked:
                break
            if write.layout == _layout(tensor):
                return write.value
            if part is None or write.part is None or not part.is_disjoint(write.part):
                break
        else:
            return before
        if part is None:
            return self._append(aten.as_strided.default, (self.value(root), *_layout(tensor)), tensor).result
        with self._recording():
            return self.value(read_window(part, root))

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """A context in which this recorder is the active dispatch mode, entered only if it is not already."""
        if any(mode is self for mode in _get_current_dispatch_mode_stack()):
            yield
        else:
            with self:
                yield

    def _alias_value(self, tensor: Tensor) -> Value | None:
        """The value of a tensor that shares a recorded tensor's memory but was created without an operator, as by nn.Parameter(y).

        It reads the same memory and has no derivative.
        """
        storage = _storage(tensor)
        if not self._tensors_on.get(storage) or storage in self._input_storages:
            return None
        root = self._root(storage)
        if not self.value(root).depends or root.dtype != tensor.dtype or root.storage_offset():
            return None
        view = self._append(aten.as_strided.default, (self.value(root), *_layout(tensor)), tensor)
        return self._bind(tensor, self._append(aten.detach.default, (view.result,), tensor).result)

    def _read(self, tensor: Tensor) -> Value:
        """The value of a tensor that an operator reads; memory that no recorded step has filled is a constant."""
        value = self.value(tensor)
        if _is_uninitialized(value) and value.numel:
            value = self._bind(tensor, Value.of(tensor, False))
            self.constants.append(value)
        return value

    def _append(self, target: Any, args: tuple[Any, ...], tensor: Tensor) -> Step:
        depends = any(entry.depends for entry in args if isinstance(entry, Value))
        step = Step(target, args, {}, line=where(), grad_enabled=torch.is_grad_enabled())
        step.result = Value.of(tensor, depends, step)
        self.steps.append(step)
        return step

    def _bind(self, tensor: Tensor, value: Value) -> Value:
        storage = _storage(tensor)
        self._tracked[id(tensor)] = (tensor, value, self._version.get(storage, 0))
        self._tensors_on.setdefault(storage, []).append(id(tensor))
        self._values_on.setdefault(storage, []).append(value)
        return value

    def _root(self, storage: int) -> Tensor:
        """The root of a storage: the first tensor that was recorded with it."""
        return self._tracked[self._tensors_on[storage][0]][0]

    def _write(self, func: Any, args: Any, kwargs: Any, written: list[Tensor]) -> Any:
        """Run an in-place operator and record its functional form: the written tensors and what shares their memory get new values."""
        for tensor in written:
            if _storage(tensor) in self._input_storages:
                raise WonderlandError(
                    f"The program writes into one of its inputs ({op_name(func)}, {where()}): "
                    "write into a copy, x.clone(), or use the operator without the underscore."
                )
        pure = functional(func)
        if not known(pure) and (decompose := decomposition(pure)) is not None:
            return self._write_decomposed(func, decompose, args, kwargs, written)
        before = (map_tree(tuple(args), Tensor, self.value), map_tree(kwargs, Tensor, self.value))
        old_values = {id(tensor): self.value(tensor) for tensor in written}
        for tensor in written:
            self._copy_before_overwrite(tensor)
        result = self._run_write(func, args, kwargs, written)
        step = Step(pure, *pure_arguments(func, *before), line=where(), grad_enabled=torch.is_grad_enabled())
        if is_random(func) and func._schema.name.endswith("_"):
            # Stays in place, into uninitialized memory of the same layout: the order of the random draws follows the layout.
            memory = old_values[id(written[0])]
            if not _is_uninitialized(memory):
                memory = self._append(aten.empty_like.default, (memory,), written[0]).result
            step = replace(step, target=func, args=(memory, *before[0][1:]), kwargs=before[1], views_input=True)
        step.module = self._module()
        depends = any(value.depends for value in step.inputs)
        fresh = [Value.of(tensor, depends, step) for tensor in written]
        results = result if isinstance(result, tuple | list) else [result]
        returned = [entry for entry in results if isinstance(entry, Tensor) and not any(entry is t for t in written)]
        more = [self._bind(tensor, Value.of(tensor, depends, step)) for tensor in returned]
        step.result = fresh[0] if len(fresh) + len(more) == 1 else (*more, *fresh)
        self.steps.append(step)
        for tensor, value in zip(written, fresh, strict=True):
            self._set_value(tensor, value, not torch.is_grad_enabled() or _is_detached_view(old_values[id(tensor)]))
        return result

    def _write_decomposed(self, func: Any, decompose: Any, args: Any, kwargs: Any, written: list[Tensor]) -> Any:
        """A write whose functional form decomposes into simpler operators: they are recorded, and their result is written."""
        positional, keywords = pure_arguments(func, args, kwargs)
        with self:
            results = decompose(*positional, **keywords)
            results = results if isinstance(results, tuple | list) else (results,)
        for tensor, new in zip(written, results[len(results) - len(written) :], strict=True):
            value = self.value(new)
            self._copy_before_overwrite(tensor)
            self._run_write(aten.copy_.default, (tensor, new), {}, [tensor])
            self._set_value(tensor, value, not torch.is_grad_enabled())
        others = results[: len(results) - len(written)]
        return written[0] if not others else others[0] if len(others) == 1 else tuple(others)

    def _run_write(self, func: Any, args: Any, kwargs: Any, written: list[Tensor]) -> Any:
        """Run an in-place operator. While tracing with fake tensors, real tensors from outside the program are not written."""
        if not native.imagined() or next(iter(ACTIVE)) is not self or all(map(is_fake, written)):
            return run(func, args, kwargs)
        positional, keywords = pure_arguments(func, args, kwargs)
        results = run(functional(func), positional, keywords)
        others = (results if isinstance(results, tuple | list) else (results,))[: -len(written)]
        return written[0] if not others else others[0] if len(others) == 1 else tuple(others)

    def _keep_derivative(self, before: Value, after: Value, tensor: Tensor) -> Value:
        """The value after an untracked write: the new numbers with the derivative of the old value."""
        if not before.depends or not before.smooth:
            return after
        step = Step(replace_value, (before, after), {}, line=where(), module=self._module())
        step.result = Value.of(tensor, True, step)
        self.steps.append(step)
        return step.result

    def _copy_before_overwrite(self, tensor: Tensor) -> None:
        """Clone the tensor of every value that uses this tensor's memory, before a write changes it."""
        storage = _storage(tensor)
        for value in self._values_on.pop(storage, ()):
            if value.now is not None and _storage(value.now) == storage and not _is_uninitialized(value):
                value.now = value.now.clone()

    def _set_value(self, tensor: Tensor, value: Value, untracked: bool) -> None:
        """Give a tensor a new value after a write, and its root the value with that write in it.

        An untracked write, without gradients or through `detach`, changes values and leaves derivatives as they were.
        """
        storage = _storage(tensor)
        ids = self._tensors_on.setdefault(storage, [])
        root = self._root(storage) if ids else tensor
        if root.dtype != tensor.dtype:
            raise WonderlandError(
                f"The program writes through a view with another dtype, {tensor.dtype} of {root.dtype} ({where()}): "
                "compute a new tensor instead."
            )
        owner = self.value(root)
        if root is not tensor and root.storage_offset():
            raise WonderlandError(
                f"The program writes into part of a larger tensor through a view ({where()}): work on a copy of it."
            )
        part = window(root, tensor)
        if len(ids) > 1:
            version = self._version[storage] = self._version.get(storage, 0) + 1
            self._writes.setdefault(storage, []).append(_Write(version, _layout(tensor), part, value, untracked))
        if root is not tensor and part is not None:
            value = write_window(part, owner, value, lambda *step: self._append(*step).result, root)
        elif root is not tensor:
            value = self._append(aten.as_strided_scatter.default, (owner, value, *_layout(tensor)), root).result
        if untracked:
            value = self._keep_derivative(owner, value, root)
        self._rebind(root, value, storage)

    def _rebind(self, tensor: Tensor, value: Value, storage: int) -> None:
        if id(tensor) not in self._tracked:
            self._tensors_on.setdefault(storage, []).append(id(tensor))
        self._values_on.setdefault(storage, []).append(value)
        self._tracked[id(tensor)] = (tensor, value, self._version.get(storage, 0))

    def track_buffer(self, tensor: Tensor) -> None:
        """Mark a module buffer: what the program writes into it is an effect that every run of the trace repeats."""
        self._buffers.setdefault(_storage(tensor), tensor)

    def effects(self) -> list[tuple[Tensor, Value, Value]]:
        """(buffer, value before, value after) for each module buffer that the program wrote."""
        constants = {id(value) for value in self.constants}
        effects = []
        for storage, tensor in self._buffers.items():
            root, before = self._first_reads.get(storage, (None, None))
            if root is None or before is None or id(before) not in constants or root is not self._root(storage):
                continue
            after = self._tracked[id(root)][1]
            if after is not before and root.shape == tensor.shape:
                effects.append((root, before, after))
        return effects

    def depends_on_inputs(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on the inputs."""
        tracked = self._tracked.get(id(tensor))
        return tracked is not None and tracked[0] is tensor and tracked[1].depends

    def seen(self, tensor: Tensor) -> Value | None:
        """The value of a tensor, None if it was not recorded."""
        return self.value(tensor) if id(tensor) in self._tracked else None


@contextmanager
def attributed_to(step: Step) -> Iterator[None]:
    """Steps recorded in this context get the source line and module of a step of another recording."""
    if not ACTIVE:
        yield
        return
    with _SOURCE_STEPS.pushed(step):
        yield


def where() -> str:
    """The source line of the user's program that is running: the innermost frame outside torch and this package."""
    if _SOURCE_STEPS:
        return _SOURCE_STEPS.last.line
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_INTERNAL_FILES):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator with the dispatch keys for lazy conjugation and negation, which a dispatch mode excludes."""
    keys = torch._C.DispatchKey
    with (
        torch._C._SetExcludeDispatchKeyGuard(keys.Conjugate, False),
        torch._C._SetExcludeDispatchKeyGuard(keys.Negative, False),
    ):
        return func(*args, **kwargs)


def _new_value(before: Tensor, after: Tensor) -> Tensor:
    """The value of `after` with the derivative of `before`."""
    return after.view_as(after)


replace_value = Primitive(_new_value, "replace_value")
RULES[replace_value] = Rule({0: lambda g, n: g, 1: no_cotangent}, tangent=lambda t, n: t.get(0))


def plain(tensor: Tensor) -> None:
    """Refuse tensor subclasses that override operators: the trace would not contain what they do."""
    kind = type(tensor)
    functions = (Tensor.__torch_function__.__func__, torch._C._disabled_torch_function_impl)
    usual = getattr(kind.__torch_function__, "__func__", kind.__torch_function__) in functions
    inner = getattr(kind, "__torch_dispatch__", None) is getattr(Tensor, "__torch_dispatch__", None)
    if usual and (inner or is_fake(tensor)):
        return
    raise WonderlandError(
        f"A {kind.__name__} overrides operators, which a trace cannot record: convert it to a plain tensor first."
    )


def _is_uninitialized(value: Value) -> bool:
    """Whether a value is memory from torch.empty that no step has filled."""
    step = value.origin
    while step is not None and packet(step.target) in VIEWS and step.inputs:
        step = step.inputs[0].origin
    return step is not None and packet(step.target) in _UNINITIALIZED


def _is_detached_view(value: Value) -> bool:
    """Whether a value is a view made through `detach`."""
    step = value.origin
    while step is not None and packet(step.target) in VIEWS:
        if packet(step.target) == "detach":
            return True
        step = step.inputs[0].origin
    return False


def _storage(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def _layout(tensor: Tensor) -> tuple[list[int], list[int], Any]:
    return list(tensor.shape), list(tensor.stride()), tensor.storage_offset()
