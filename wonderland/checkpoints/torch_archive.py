"""Tensors in a file of torch.save, read by a small interpreter that knows twenty-odd instructions and calls nothing.

Such a file holds a program for a stack machine. Here the program may build numbers, texts, lists, dicts and tensors; every other
instruction, and every name but those of tensors and their storages, is refused. Nothing is imported or executed.
"""

import math
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError

MOST_BYTES, MOST_PROGRAM, MOST_STEPS, MOST_TENSORS, MOST_AXES = 1 << 32, 1 << 26, 2_000_000, 100_000, 16
_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
_TYPES = {
    "FloatStorage": torch.float32, "DoubleStorage": torch.float64, "HalfStorage": torch.float16, "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64, "IntStorage": torch.int32, "ShortStorage": torch.int16, "CharStorage": torch.int8,
    "ByteStorage": torch.uint8, "BoolStorage": torch.bool,
}  # fmt: skip
_NAMES = {("torch", name): name for name in _TYPES} | {
    ("collections", "OrderedDict"): "dict",
    ("torch._utils", "_rebuild_tensor_v2"): "tensor",
    ("torch._utils", "_rebuild_parameter"): "parameter",
}


class Refused(Exception):
    """A file that does not hold tensors alone; the text says what was met."""


@dataclass(frozen=True)
class _Name:
    kind: str


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: torch.dtype
    count: int


@dataclass(frozen=True)
class _View:
    storage: _Storage
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


_MARK = object()


def read_torch_archive(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a file of torch.save by name: a state dict, or one under "state_dict" or "model".

    Files in both formats, zipped and older ones, of plain CPU tensors. A file with anything else in it is refused, and sizes are
    checked before memory is taken.
    """
    path = Path(path)
    if not path.is_file():
        raise WonderlandError(f"{path} is missing, or no file.")
    if path.stat().st_size > MOST_BYTES:
        raise WonderlandError(f"{path} has {path.stat().st_size / 2**30:.1f} GiB; at most 4 GiB are read.")
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
        value, load = _older(path.read_bytes()) if start == _MAGIC else _zipped(path)
        return _tensors(value, load)
    except Refused as error:
        raise WonderlandError(f"{path} is not a file of plain tensors: {error}.") from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise WonderlandError(f"{path} is not a file of torch.save, or it is damaged.") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, struct.error, MemoryError) as error:
        raise WonderlandError(f"{path} is damaged: its program ends in disorder.") from error


def _tensors(value: Any, load: Callable[[_Storage], Tensor]) -> dict[str, Tensor]:
    for key in ("state_dict", "model"):
        if isinstance(value, dict) and isinstance(value.get(key), dict):
            value = value[key]
    if not isinstance(value, dict) or not value or len(value) > MOST_TENSORS:
        raise Refused("it holds no dict of tensors")
    loaded: dict[str, Tensor] = {}
    tensors: dict[str, Tensor] = {}
    for name, view in value.items():
        if not isinstance(name, str) or not isinstance(view, _View):
            raise Refused(f"the entry {str(name)[:60]!r} is no tensor")
        if view.storage.key not in loaded:
            loaded[view.storage.key] = load(view.storage)
        stored = loaded[view.storage.key]
        if stored.numel() != view.storage.count or stored.dtype != view.storage.dtype:
            raise Refused(f"two descriptions of the storage {view.storage.key[:40]!r} differ")
        tensors[name] = torch.as_strided(stored, view.sizes, view.strides, view.offset).clone()
    return tensors


def _zipped(path: Path) -> tuple[Any, Callable[[_Storage], Tensor]]:
    with zipfile.ZipFile(path) as archive:
        names = {info.filename: info for info in archive.infolist()}
        program = next((name for name in names if name.endswith("/data.pkl") or name == "data.pkl"), None)
        if program is None:
            raise Refused("it has no data.pkl")
        root = program.removesuffix("data.pkl")
        if names[program].file_size > MOST_PROGRAM:
            raise Refused("its program is too long")
        order = archive.read(root + "byteorder") if root + "byteorder" in names else b"little"
        if order != b"little":
            raise Refused("its numbers are not little-endian")
        value, _ = _run(archive.read(program), 0)

    def load(storage: _Storage) -> Tensor:
        info = names.get(f"{root}data/{storage.key}")
        size = storage.count * storage.dtype.itemsize
        if info is None or info.file_size != size or info.compress_type != zipfile.ZIP_STORED:
            raise Refused(f"the storage {storage.key[:40]!r} is missing or has another size")
        with zipfile.ZipFile(path) as archive:
            return _numbers(archive.read(info), storage)

    return value, load


def _older(content: bytes) -> tuple[Any, Callable[[_Storage], Tensor]]:
    """The format before zip: a magic number, a version, the machine, the object, the storage keys, then the storages."""
    at = len(_MAGIC)
    version, at = _run(content, at)
    machine, at = _run(content, at)
    value, at = _run(content, at)
    keys, at = _run(content, at)
    if version != 1001 or not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise Refused("its version or byte order is not known")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Refused("its list of storages is damaged")
    described = _storages(value)
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        (count,) = struct.unpack_from("<q", content, at)
        at += 8
        if key not in described or count != described[key].count:
            raise Refused(f"the storage {key[:40]!r} has another size")
        places[key] = at, count
        at += count * described[key].dtype.itemsize
        if at > len(content):
            raise Refused("it ends too early")

    def load(storage: _Storage) -> Tensor:
        start, count = places[storage.key]
        return _numbers(content[start : start + count * storage.dtype.itemsize], storage)

    return value, load


def _storages(value: Any) -> dict[str, _Storage]:
    pending, storages, seen = [value], {}, 0
    while pending:
        item, seen = pending.pop(), seen + 1
        if seen > MOST_STEPS:
            raise Refused("it refers to itself")
        if isinstance(item, _View):
            storages[item.storage.key] = item.storage
        elif isinstance(item, dict):
            pending += item.values()
        elif isinstance(item, list | tuple):
            pending += item
    return storages


def _numbers(content: bytes, storage: _Storage) -> Tensor:
    if not storage.count:
        return torch.empty(0, dtype=storage.dtype)
    return torch.frombuffer(bytearray(content), dtype=storage.dtype)


def _run(program: bytes, at: int) -> tuple[Any, int]:
    """Run one program from a position; returns what it leaves on the stack, and the position after it."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for _ in range(MOST_STEPS):
        code = program[at : at + 1]
        at += 1
        if code == b".":
            return stack.pop(), at
        if code in _FIXED:
            form, push = _FIXED[code]
            (number,) = struct.unpack_from(form, program, at) if form else (None,)
            at += struct.calcsize(form) if form else 0
            push(stack, memo, number)
        elif code == b"X":
            (length,) = struct.unpack_from("<I", program, at)
            if length > len(program) - at - 4:
                raise Refused("a text is longer than the file")
            stack.append(program[at + 4 : at + 4 + length].decode("utf-8"))
            at += 4 + length
        elif code == b"\x8a":
            length = program[at]
            stack.append(int.from_bytes(program[at + 1 : at + 1 + length], "little", signed=True))
            at += 1 + length
        elif code == b"c":
            end = program.index(b"\n", program.index(b"\n", at, at + 200) + 1, at + 400)
            module, _, name = program[at:end].decode("ascii").partition("\n")
            if (module, name) not in _NAMES:
                raise Refused(f"it names {module[:40]}.{name[:40]}, which is no tensor")
            stack.append(_Name(_NAMES[module, name]))
            at = end + 1
        else:
            raise Refused(f"it holds the instruction {code.hex() or 'end of file'}")
    raise Refused("its program is too long")


def _since_mark(stack: list[Any]) -> list[Any]:
    items = []
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]


def _tuple(count: int) -> Callable:
    def push(stack: list[Any], memo: dict[int, Any], number: Any) -> None:
        if count > len(stack):
            raise Refused("a tuple lacks items")
        items = tuple(stack[-count:])
        del stack[-count:]
        stack.append(items)

    return push


def _set_items(stack: list[Any], memo: dict[int, Any], number: Any) -> None:
    items = _since_mark(stack)
    owner = stack[-1]
    if not isinstance(owner, dict) or len(items) % 2:
        raise Refused("entries are set on something that is no dict")
    owner.update({_key(key): value for key, value in zip(items[::2], items[1::2], strict=True)})


def _set_item(stack: list[Any], memo: dict[int, Any], number: Any) -> None:
    value, key = stack.pop(), stack.pop()
    if not isinstance(stack[-1], dict):
        raise Refused("entries are set on something that is no dict")
    stack[-1][_key(key)] = value


def _key(key: Any) -> Any:
    if not isinstance(key, str | int):
        raise Refused("a key is neither text nor number")
    return key


def _append(items: list[Any], stack: list[Any]) -> None:
    if not isinstance(stack[-1], list):
        raise Refused("items are appended to something that is no list")
    stack[-1].extend(items)


def _build(stack: list[Any], memo: dict[int, Any], number: Any) -> None:
    """Attributes of a state dict (versions of its modules), which are left out."""
    stack.pop()
    if not isinstance(stack[-1], dict):
        raise Refused("attributes are set on something that is no dict")


def _reduce(stack: list[Any], memo: dict[int, Any], number: Any) -> None:
    arguments, name = stack.pop(), stack.pop()
    kind = name.kind if isinstance(name, _Name) and isinstance(arguments, tuple) else ""
    if kind == "dict" and not arguments:
        stack.append({})
    elif kind == "tensor" and 4 <= len(arguments) <= 7:
        stack.append(_view(*arguments[:4]))
    elif kind == "parameter" and len(arguments) == 3 and isinstance(arguments[0], _View):
        stack.append(arguments[0])
    else:
        raise Refused("it calls something else than a tensor")


def _view(storage: Any, offset: Any, sizes: Any, strides: Any) -> _View:
    numbers = isinstance(sizes, tuple) and isinstance(strides, tuple) and len(sizes) == len(strides) <= MOST_AXES
    if not isinstance(storage, _Storage) or not numbers or not all(map(_is_size, (offset, *sizes, *strides))):
        raise Refused("a tensor has no sizes")
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    total = math.prod(sizes)
    if total > storage.count or (total and last >= storage.count):
        raise Refused("a tensor is larger than its storage")
    return _View(storage, offset, sizes, strides)


def _persistent(stack: list[Any], memo: dict[int, Any], number: Any) -> None:
    described = stack.pop()
    fine = isinstance(described, tuple) and len(described) in (5, 6) and described[0] == "storage"
    if not fine or not isinstance(described[1], _Name) or described[1].kind not in _TYPES:
        raise Refused("a storage is not described as one")
    key, place, count = described[2], described[3], described[4]
    if not isinstance(key, str) or not isinstance(place, str) or not _is_size(count) or any(described[5:]):
        raise Refused("a storage is not described as one")
    stack.append(_Storage(key, _TYPES[described[1].kind], count))


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_BYTES


def _get(stack: list[Any], memo: dict[int, Any], number: Any) -> None:
    stack.append(memo[number])


def _put(stack: list[Any], memo: dict[int, Any], number: Any) -> None:
    memo[number] = stack[-1]


def _constant(make: Callable[[Any], Any]) -> Callable:
    return lambda stack, memo, number: stack.append(make(number))


# Instruction: the form of the number after it, and what it does.
_FIXED: dict[bytes, tuple[str, Callable]] = {
    b"\x80": ("B", lambda stack, memo, number: None),
    b"K": ("B", _constant(int)), b"M": ("<H", _constant(int)), b"J": ("<i", _constant(int)), b"G": (">d", _constant(float)),
    b"N": ("", _constant(lambda _: None)), b"\x88": ("", _constant(lambda _: True)), b"\x89": ("", _constant(lambda _: False)),
    b"}": ("", _constant(lambda _: {})), b"]": ("", _constant(lambda _: [])), b")": ("", _constant(lambda _: ())),
    b"(": ("", _constant(lambda _: _MARK)),
    b"t": ("", lambda stack, memo, number: stack.append(tuple(_since_mark(stack)))),
    b"\x85": ("", _tuple(1)), b"\x86": ("", _tuple(2)), b"\x87": ("", _tuple(3)),
    b"q": ("B", _put), b"r": ("<I", _put), b"h": ("B", _get), b"j": ("<I", _get),
    b"s": ("", _set_item), b"u": ("", _set_items), b"b": ("", _build), b"R": ("", _reduce), b"Q": ("", _persistent),
    b"a": ("", lambda stack, memo, number: _append([stack.pop()], stack)),
    b"e": ("", lambda stack, memo, number: _append(_since_mark(stack), stack)),
}  # fmt: skip
