"""Recording: what a function does to tensors, noted while it runs, with writes in place turned into new values."""

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
from wonderland.autodiff.local import Pile
from wonderland.autodiff.node import Step, Value, over
from wonderland.autodiff.rules.table import RULES, Rule, decomposition, known, nothing
from wonderland.autodiff.windows import Window, put, taken, window
from wonderland.autodiff.writes import draws, functional, pure_arguments, spelled_op, written_by
from wonderland.core import WonderlandError
from wonderland.ops import native

aten = torch.ops.aten
ACTIVE: Pile["Recorder"] = Pile()
_STANDING: Pile[Step] = Pile()
_OWN = (str(torch.__path__[0]), *(str(Path(__file__).parents[1] / name) for name in ("autodiff", "cli")), "<")
_EMPTY = frozenset(["empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"])


class _TooFar(Exception):
    """An operator was taken apart into what is no simpler, torch's own inner primitives: it is a primitive itself."""


@dataclass(frozen=True)
class _Write:
    """A write into memory that several tensors share: the memory's version from then on, where, and what."""

    version: int
    layout: Any
    part: Window | None
    value: Value
    silent: bool


class Recorder(TorchDispatchMode):
    """Notes each primitive that runs while it is active, in the order of running.

    Numbers are computed as always, so Python decides by them as it likes. `inputs` are the tensors that the program is a
    function of; tensors from elsewhere become constants.
    """

    def __init__(self, inputs: list[Tensor], differentiates: bool = False):
        super().__init__()
        self.differentiates = differentiates
        self.steps: list[Step] = []
        self.constants: list[Value] = []
        self._held: dict[int, tuple[Tensor, Value, int]] = {}
        self._storages: dict[int, list[int]] = {}
        self._living: dict[int, list[Value]] = {}
        self._version: dict[int, int] = {}
        self._writes: dict[int, list[_Write]] = {}
        self._modules: list[str] = []
        self._lowering = 0
        self._lasting: dict[int, Tensor] = {}
        self._first: dict[int, tuple[Tensor, Value]] = {}
        self.inputs = [self._hold(tensor, Value.of(tensor, True)) for tensor in inputs]
        self._given = {_storage(tensor) for tensor in inputs}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:  # tensors without numbers are asked for their device in this way
            return args[0].fake_device
        if func._schema.is_mutable and (written := written_by(func, args, kwargs)):
            return self._write(func, args, kwargs, written)
        if not known(func):
            if func.namespace == "prims" and self._lowering:
                raise _TooFar
            if (lower := decomposition(func)) is not None:
                self._lowering += 1
                try:
                    with self:
                        return lower(*args, **kwargs)
                except _TooFar:
                    pass
                finally:
                    self._lowering -= 1
            if func._can_decompose() and func.namespace == "aten":
                with self:
                    found = func.decompose(*args, **kwargs)
                if found is not NotImplemented:
                    return found
        result = run(func, args, kwargs)
        self.note(func, args, kwargs, result)
        return result

    def note(self, target: Any, args: Any, kwargs: dict[str, Any], result: Any) -> Step:
        """Add a step: tensors among the arguments become values, tensors in the result get new ones."""
        read = self.value if packet(target) in VIEWS else self._read
        step = Step(
            target,
            over(tuple(args), Tensor, read),
            over(kwargs, Tensor, read),
            line=where(),
            module=self._module(),
            smooth=torch.is_grad_enabled(),
        )
        depends = any(value.depends for value in step.inputs)
        step.result = over(result, Tensor, lambda tensor: self._hold(tensor, Value.of(tensor, depends, step)))
        first = next((one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)), None)
        given = next(
            (one for one in (result if isinstance(result, tuple | list) else (result,)) if isinstance(one, Tensor)),
            None,
        )
        step.looks = first is not None and given is not None and _storage(first) == _storage(given)
        self.steps.append(step)
        return step

    def _module(self) -> str:
        return _STANDING.last.module if _STANDING else self._modules[-1] if self._modules else ""

    def value(self, tensor: Tensor) -> Value:
        """The value that a tensor has now; one never seen before is a constant."""
        held = self._held.get(id(tensor))
        if held is None:
            if (alias := self._alias(tensor)) is not None:
                return alias
            plain(tensor)
            value = self._hold(tensor, Value.of(tensor, False))
            self.constants.append(value)
            self._first.setdefault(_storage(tensor), (tensor, value))
            return value
        _, value, version = held
        place = _storage(tensor)
        if version == self._version.get(place, 0):
            return value
        return self._hold(tensor, self._seen_anew(tensor, value, place, version))

    def _seen_anew(self, tensor: Tensor, before: Value, place: int, version: int) -> Value:
        """The value of a tensor whose memory was written since it was last read: what was written, what it had, or a look."""
        root = self._root(place)
        part = window(root, tensor)
        for write in reversed(self._writes.get(place, ())):
            if write.version <= version:
                return before
            if write.silent:
                break
            if write.layout == _layout(tensor):
                return write.value
            if part is None or write.part is None or not part.misses(write.part):
                break
        else:
            return before
        if part is None:
            return self._append(aten.as_strided.default, (self.value(root), *_layout(tensor)), tensor).result
        with self._awake():
            return self.value(taken(part, root))

    @contextmanager
    def _awake(self) -> Iterator[None]:
        """Noting what runs, from within a step that is being noted or from outside."""
        if any(one is self for one in _get_current_dispatch_mode_stack()):
            yield
        else:
            with self:
                yield

    def _alias(self, tensor: Tensor) -> Value | None:
        """A tensor made of a value's memory past the dispatcher, as nn.Parameter(y) is: the same numbers, no derivative."""
        place = _storage(tensor)
        if not self._storages.get(place) or place in self._given:
            return None
        root = self._root(place)
        if not self.value(root).depends or root.dtype != tensor.dtype or root.storage_offset():
            return None
        seen = self._append(aten.as_strided.default, (self.value(root), *_layout(tensor)), tensor)
        return self._hold(tensor, self._append(aten.detach.default, (seen.result,), tensor).result)

    def _read(self, tensor: Tensor) -> Value:
        """The value of a tensor that is read: memory that nobody was seen to fill is a constant as it lies there."""
        value = self.value(tensor)
        if _unfilled(value) and value.numel:
            value = self._hold(tensor, Value.of(tensor, False))
            self.constants.append(value)
        return value

    def _append(self, target: Any, args: tuple[Any, ...], tensor: Tensor) -> Step:
        depends = any(entry.depends for entry in args if isinstance(entry, Value))
        step = Step(target, args, {}, line=where(), smooth=torch.is_grad_enabled())
        step.result = Value.of(tensor, depends, step)
        self.steps.append(step)
        return step

    def _hold(self, tensor: Tensor, value: Value) -> Value:
        place = _storage(tensor)
        self._held[id(tensor)] = (tensor, value, self._version.get(place, 0))
        self._storages.setdefault(place, []).append(id(tensor))
        self._living.setdefault(place, []).append(value)
        return value

    def _root(self, place: int) -> Tensor:
        """The tensor that owns a storage: the first that was seen with it."""
        return self._held[self._storages[place][0]][0]

    def _write(self, func: Any, args: Any, kwargs: Any, written: list[Tensor]) -> Any:
        """A write in place: the memory is written, and noted are a new value for the tensor and for what shares it."""
        for tensor in written:
            if _storage(tensor) in self._given:
                raise WonderlandError(
                    f"The program writes into one of its inputs ({spelled_op(func)}, {where()}): "
                    "work on a copy, x.clone(), or without the underscore."
                )
        pure = functional(func)
        if not known(pure) and (lower := decomposition(pure)) is not None:
            return self._write_lowered(func, lower, args, kwargs, written)
        before = (over(tuple(args), Tensor, self.value), over(kwargs, Tensor, self.value))
        held = {id(tensor): self.value(tensor) for tensor in written}
        for tensor in written:
            self._keep(tensor)
        result = self._filled(func, args, kwargs, written)
        step = Step(pure, *pure_arguments(func, *before), line=where(), smooth=torch.is_grad_enabled())
        if draws(func) and func._schema.name.endswith(
            "_"
        ):  # again into memory of the same layout: the order of the draws follows it
            room = held[id(written[0])]
            if not _unfilled(room):
                room = self._append(aten.empty_like.default, (room,), written[0]).result
            step = replace(step, target=func, args=(room, *before[0][1:]), kwargs=before[1], looks=True)
        step.module = self._module()
        depends = any(value.depends for value in step.inputs)
        fresh = [Value.of(tensor, depends, step) for tensor in written]
        given = result if isinstance(result, tuple | list) else [result]
        others = [entry for entry in given if isinstance(entry, Tensor) and not any(entry is one for one in written)]
        more = [self._hold(tensor, Value.of(tensor, depends, step)) for tensor in others]
        step.result = fresh[0] if len(fresh) + len(more) == 1 else (*more, *fresh)
        self.steps.append(step)
        for tensor, value in zip(written, fresh, strict=True):
            self._now(tensor, value, not torch.is_grad_enabled() or _cut(held[id(tensor)]))
        return result

    def _write_lowered(self, func: Any, lower: Any, args: Any, kwargs: Any, written: list[Tensor]) -> Any:
        """A write whose functional form is made of simpler operators: these are noted, and what they give is written."""
        plain, named = pure_arguments(func, args, kwargs)
        with self:
            found = lower(*plain, **named)
            found = found if isinstance(found, tuple | list) else (found,)
        for tensor, new in zip(written, found[len(found) - len(written) :], strict=True):
            value = self.value(new)
            self._keep(tensor)
            self._filled(aten.copy_.default, (tensor, new), {}, [tensor])
            self._now(tensor, value, not torch.is_grad_enabled())
        others = found[: len(found) - len(written)]
        return written[0] if not others else others[0] if len(others) == 1 else tuple(others)

    def _filled(self, func: Any, args: Any, kwargs: Any, written: list[Tensor]) -> Any:
        """A write as it runs; where tensors have no numbers, those of the world outside, which have, stay as they are."""
        if not native.is_shapes_only() or next(iter(ACTIVE)) is not self or all(map(is_fake, written)):
            return run(func, args, kwargs)
        plain, named = pure_arguments(func, args, kwargs)
        found = run(functional(func), plain, named)
        others = (found if isinstance(found, tuple | list) else (found,))[: -len(written)]
        return written[0] if not others else others[0] if len(others) == 1 else tuple(others)

    def _replaced(self, before: Value, after: Value, tensor: Tensor) -> Value:
        """Without gradients a write changes numbers and no derivative: those of the old value still hold."""
        if not before.depends or not before.smooth:
            return after
        step = Step(replaced, (before, after), {}, line=where(), module=self._module())
        step.result = Value.of(tensor, True, step)
        self.steps.append(step)
        return step.result

    def _keep(self, tensor: Tensor) -> None:
        """Copy the numbers of every value that shares a tensor's memory, before they are overwritten."""
        place = _storage(tensor)
        for value in self._living.pop(place, ()):
            if value.now is not None and _storage(value.now) == place and not _unfilled(value):
                value.now = value.now.clone()

    def _now(self, tensor: Tensor, value: Value, silent: bool) -> None:
        """From here on a tensor has a new value, and what shares its memory reads from the owner's new value.

        A silent write, without gradients or through `detach`, changes numbers and leaves derivatives as they were.
        """
        place = _storage(tensor)
        ids = self._storages.setdefault(place, [])
        root = self._root(place) if ids else tensor
        if root.dtype != tensor.dtype:
            raise WonderlandError(
                f"The program writes through a view of other numbers, {tensor.dtype} of {root.dtype} ({where()}): "
                "compute a new tensor instead."
            )
        owner = self.value(root)
        if root is not tensor and root.storage_offset():
            raise WonderlandError(
                f"The program writes into part of a larger tensor through a view ({where()}): work on a copy of it."
            )
        part = window(root, tensor)
        if len(ids) > 1:
            now = self._version[place] = self._version.get(place, 0) + 1
            self._writes.setdefault(place, []).append(_Write(now, _layout(tensor), part, value, silent))
        if root is not tensor and part is not None:
            value = put(part, owner, value, lambda *step: self._append(*step).result, root)
        elif root is not tensor:
            value = self._append(aten.as_strided_scatter.default, (owner, value, *_layout(tensor)), root).result
        if silent:
            value = self._replaced(owner, value, root)
        self._hold_again(root, value, place)

    def _hold_again(self, tensor: Tensor, value: Value, place: int) -> None:
        if id(tensor) not in self._held:
            self._storages.setdefault(place, []).append(id(tensor))
        self._living.setdefault(place, []).append(value)
        self._held[id(tensor)] = (tensor, value, self._version.get(place, 0))

    def lasts(self, tensor: Tensor) -> None:
        """A buffer: what the program writes into it stays when the program ends."""
        self._lasting.setdefault(_storage(tensor), tensor)

    def effects(self) -> list[tuple[Tensor, Value, Value]]:
        """The buffers that the program wrote: each with the value that it had and the one that it was left with."""
        before = {id(value): value for value in self.constants}
        found = []
        for place, tensor in self._lasting.items():
            first = self._first.get(place)
            if first is None or id(first[1]) not in before or first[0] is not self._root(place):
                continue
            now = self._held[id(first[0])][1]
            if now is not first[1] and first[0].shape == tensor.shape:
                found.append((first[0], first[1], now))
        return found

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on the inputs."""
        held = self._held.get(id(tensor))
        return held is not None and held[0] is tensor and held[1].depends

    def seen(self, tensor: Tensor) -> Value | None:
        """The value of a tensor, None if the program has not met it."""
        return self.value(tensor) if id(tensor) in self._held else None


@contextmanager
def standing_for(step: Step) -> Iterator[None]:
    """What is recorded here belongs to a step of another record: its line and its module are told."""
    if not ACTIVE:
        yield
        return
    with _STANDING.holding(step):
        yield


def where() -> str:
    """The line of the user's program that is running: the innermost one outside of torch and of this package."""
    if _STANDING:
        return _STANDING.last.line
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OWN):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """An operator as it runs outside of a record: within one, numbers that are lazily conjugated would be taken as they lie."""
    keys = torch._C.DispatchKey
    with (
        torch._C._SetExcludeDispatchKeyGuard(keys.Conjugate, False),
        torch._C._SetExcludeDispatchKeyGuard(keys.Negative, False),
    ):
        return func(*args, **kwargs)


def _second(before: Tensor, after: Tensor) -> Tensor:
    """The second's numbers, with the first's derivative."""
    return after.view_as(after)


replaced = Primitive(_second, "replaced")
RULES[replaced] = Rule({0: lambda g, n: g, 1: nothing}, tangent=lambda t, n: t.get(0))


def plain(tensor: Tensor) -> None:
    """Refuse tensors that are more than numbers in memory: what they do to operators would be lost."""
    kind = type(tensor)
    functions = (Tensor.__torch_function__.__func__, torch._C._disabled_torch_function_impl)
    usual = getattr(kind.__torch_function__, "__func__", kind.__torch_function__) in functions
    inner = getattr(kind, "__torch_dispatch__", None) is getattr(Tensor, "__torch_dispatch__", None)
    if usual and (inner or is_fake(tensor)):
        return
    raise WonderlandError(
        f"A {kind.__name__} changes what operators do, which a trace would not see: convert it to a plain tensor first."
    )


def _unfilled(value: Value) -> bool:
    """Whether a value is memory that nobody has filled: its numbers mean nothing."""
    step = value.origin
    while step is not None and packet(step.target) in VIEWS and step.inputs:
        step = step.inputs[0].origin
    return step is not None and packet(step.target) in _EMPTY


def _cut(value: Value) -> bool:
    """Whether a value looks at memory through `detach`."""
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
