"""Mutations of safetensors: the header, its length, types, shapes and places of tensors, their values, and the JSON beside them.

The digest that our files carry is made anew where there is something to digest, as somebody would who changed them on purpose.
"""

import contextlib
import json
import random
import struct
from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import load, save

from tests.fuzz.mutate import TERMINAL, dumps, mutate_json_value
from wonderland.core import digest

BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8,
         "I64": 8, "U64": 8, "C64": 8}  # fmt: skip


def mutate_tensors(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """A safetensors file with its header, a tensor, or the JSON beside the tensors changed."""
    way = draw.randrange(7)
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    if way == 0:
        changed, words = mutate_json_value(header, draw)
        return _with_header(changed, data), f"header {words}"
    if way == 1:
        length = draw.choice([0, 1, size - 1, size + 1, size * 2, 1 << 20, 1 << 31, 1 << 63, (1 << 64) - 1])
        return struct.pack("<Q", length) + content[8:], f"header of {length} bytes"
    if way == 2:
        return _layout(header, data, draw)
    own = header.get("__metadata__", {}).get("wonderland")
    if way == 3 and own:
        stored = json.loads(own)
        stored["meta"], words = mutate_json_value(stored["meta"], draw)
        changed = save(load(content), metadata={"wonderland": dumps(stored).decode()})
        return sign_tensors(changed), f"meta {words}"
    said: list[str] = []
    return with_tensors(content, lambda tensors: said.append(change_tensor(tensors, draw))), said[0]


def with_tensors(content: bytes, change: Callable[[dict[str, torch.Tensor]], object]) -> bytes:
    """The file with its tensors changed, and its digest made anew if it has one."""
    size = struct.unpack("<Q", content[:8])[0]
    own = json.loads(content[8 : 8 + size]).get("__metadata__", {}).get("wonderland")
    tensors = load(content)
    change(tensors)
    if own is None:
        return save(tensors, metadata={"format": "pt"})
    return sign_tensors(save(tensors, metadata={"wonderland": own}))


def _with_header(header: Any, data: bytes) -> bytes:
    text = dumps(header)
    return struct.pack("<Q", len(text)) + text + data


def _layout(header: dict[str, Any], data: bytes, draw: random.Random) -> tuple[bytes, str]:
    """Places, types and shapes in the header that do not fit the data, or each other; sometimes signed again, if it can be read."""
    names = sorted(name for name in header if name != "__metadata__")
    if not names:
        return _with_header(
            {"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}, data
        ), "a tensor that is not there"
    name, other = draw.choice(names), draw.choice(names)
    entry = header[name]
    begin, end = entry["data_offsets"]

    def same_bytes() -> None:
        """Another type that the same bytes can be read as."""
        kind = draw.choice(sorted(BYTES))
        entry["dtype"], entry["shape"] = kind, [(end - begin) // BYTES[kind]]

    ways: dict[str, Callable[[], Any]] = {
        "of another type": lambda: entry.update(dtype=draw.choice([*sorted(BYTES), "F4", "f32", "", TERMINAL])),
        "the same bytes as another type": same_bytes,
        "at the place of another": lambda: entry.update(data_offsets=header[other]["data_offsets"]),
        "overlapping": lambda: entry.update(data_offsets=[max(0, begin - 4), end]),
        "with a gap": lambda: entry.update(data_offsets=[begin + 4, end + 4]),
        "backwards": lambda: entry.update(data_offsets=[end, begin]),
        "beyond the end": lambda: entry.update(data_offsets=[begin, end + 10**12]),
        "of a negative place": lambda: entry.update(data_offsets=[-1, end]),
        "of a huge shape": lambda: entry.update(shape=draw.choice([[1 << 40, 1 << 40], [0, 1 << 62], [1 << 62, 4], [2] * 64, [1] * 5000])),
        "of a broken shape": lambda: entry.update(shape=draw.choice([[-1], [1.5], ["3"], None, [[1]], {}])),
        "split in dimensions": lambda: entry.update(shape=[1, *entry["shape"], 1]),
        "swapped with another": lambda: header.update({name: header[other], other: entry}),
        "renamed": lambda: header.update({draw.choice(["", TERMINAL, "x" * 10_000, "../x", "__metadata__x", "é"]): header.pop(name)}),
        "metadata of another type": lambda: header.update(__metadata__=draw.choice([{"wonderland": 3}, [], "x", None, {"a": "b"}, {"wonderland": "{"}])),
        "many more, empty": lambda: header.update(
            {f"x{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(draw.choice([100, 60_000]))}
        ),
    }  # fmt: skip
    way = draw.choice(sorted(ways))
    ways[way]()
    content = _with_header(header, data)
    if draw.random() < 0.3:
        content, way = content + b"\0" * draw.choice([1, 8, 4096]), f"{way}, and bytes after the end"
    return sign_tensors(content), f"{name[:60]} {way}"


def sign_tensors(content: bytes) -> bytes:
    """A file of ours with the digest that fits what it holds now; as it is where that cannot be read."""
    with contextlib.suppress(Exception):
        size = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + size])
        stored = json.loads(header["__metadata__"]["wonderland"])
        stored["sha256"] = digest(load(content), stored["meta"])
        header["__metadata__"]["wonderland"] = dumps(stored).decode()
        return _with_header(header, content[8 + size :])
    return content


def change_tensor(tensors: dict[str, torch.Tensor], draw: random.Random) -> str:
    """One tensor removed, renamed, of another shape, type or other values."""
    names = sorted(tensors)
    if not names:
        tensors["x"] = torch.zeros(3)
        return "a tensor added"
    name = draw.choice(names)
    tensor = tensors[name]
    floating = tensor.is_floating_point()
    plain = tensor if not tensor.is_complex() else tensor.real
    ways: dict[str, Callable[[], Any]] = {
        "removed": lambda: None,
        "not finite": lambda: torch.full_like(tensor, float("nan")) if floating else tensor,
        "one entry not finite": lambda: _one(tensor, draw, float("nan") if floating else 1),
        "infinite": lambda: torch.full_like(tensor, float("inf")) if floating else tensor,
        "huge": lambda: torch.full_like(tensor, 3e38 if floating else 120) if tensor.dtype not in (torch.float16, torch.bool) else tensor,
        "one entry huge": lambda: _one(tensor, draw, 3e38 if floating else 2**62),
        "one entry negative": lambda: _one(tensor, draw, -1),
        "negative": lambda: -tensor - 1 if tensor.dtype not in (torch.uint8, torch.bool) else tensor,
        "denormal": lambda: torch.full_like(tensor, 1e-42) if floating else tensor,
        "flat": lambda: tensor.flatten(),
        "deeper": lambda: tensor[None],
        "very deep": lambda: tensor.reshape(*[1] * 30, *tensor.shape),
        "transposed": lambda: tensor.T.contiguous() if tensor.dim() == 2 else tensor.flatten()[:0],
        "longer": lambda: torch.cat([tensor[None]] * 3).flatten(0, 1) if tensor.dim() else tensor.expand(5).clone(),
        "one row more": lambda: torch.cat([tensor, tensor[:1]]) if tensor.dim() and len(tensor) else tensor.flatten(),
        "one row less": lambda: tensor[:-1] if tensor.dim() and len(tensor) else tensor.flatten(),
        "very long": lambda: tensor.flatten()[:1].expand(1_000_000).clone(),
        "rows reordered": lambda: tensor.flip(0) if tensor.dim() else tensor,
        "empty": lambda: tensor.flatten()[:0].clone(),
        "float64": lambda: tensor.double() if not tensor.is_complex() else tensor,
        "int64": lambda: plain.nan_to_num().long(),
        "bool": lambda: tensor.bool(),
        "uint8": lambda: plain.nan_to_num().to(torch.uint8),
        "int8": lambda: plain.nan_to_num().to(torch.int8),
        "bfloat16": lambda: plain.to(torch.bfloat16),
        "float8": lambda: plain.float().to(torch.float8_e4m3fn),
        "complex": lambda: plain.float().to(torch.complex64),
        "uint16": lambda: plain.nan_to_num().to(torch.int32).to(torch.uint16),
        "large integers": lambda: torch.full(tensor.shape, 2**62, dtype=torch.int64),
        "zeros": lambda: torch.zeros_like(tensor),
        "random": lambda: (torch.rand(tensor.shape, dtype=torch.float64) * 2000 - 1000).to(tensor.dtype),
        "renamed": lambda: tensor,
        "swapped with another": lambda: tensors[draw.choice(names)],
        "added many times": lambda: tensor,
    }  # fmt: skip
    way = draw.choice(sorted(ways))
    changed = ways[way]()
    if way == "swapped with another":
        tensors[draw.choice(names)] = tensor.clone()
    if way == "added many times":
        tensors.update({f"{name}.{i}": tensor.flatten()[:1].clone() for i in range(3000)})
    del tensors[name]
    if changed is not None:
        tensors[name + "x" if way == "renamed" else name] = changed.contiguous().clone()
    return f"tensor {name[:60]} {way}"


def _one(tensor: torch.Tensor, draw: random.Random, value: float) -> torch.Tensor:
    """The tensor with one entry changed, where its type has the value."""
    changed = tensor.clone().flatten()
    if len(changed):
        with contextlib.suppress(RuntimeError, OverflowError):
            changed[draw.randrange(len(changed))] = value
    return changed.reshape(tensor.shape)
