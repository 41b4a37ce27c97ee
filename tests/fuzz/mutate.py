"""A seeded mutator of files: JSON values, JSON text, bytes, safetensors headers and tensors, with digests made anew or not.

Every mutation is a function of a `random.Random`, so that the seed of a case repeats it.
"""

import contextlib
import copy
import hashlib
import json
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from wonderland.core import digest

WORDS = ("config.json", "model.safetensors", "preprocess.json", "preprocess.safetensors")
TERMINAL = "a\x1b[2J\x07\u202eb\nc"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 10**5, 10**6, 2**24, 10**9, 2**31, 2**63 - 1, 2**63, 10**40, -(10**40),
    0.0, -0.5, 0.5, 1.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"),
    "", "x", "0", "1e9", "\x00", "\ud800", TERMINAL, "../../etc/passwd", "__import__", "os.system", "nn.Linear", "x" * 100_000,
    [], [0], [[]], [None], ["x"], [1e308] * 3, [0] * 70_000, {}, {"a": 1}, {"part": "os.system", "arguments": {}},
    {"part": "nn.MLP", "arguments": {}}, {"function": "nn.gelu"}, {"own": "x"}, {"tensor": "x", "channels_last": True},
)  # fmt: skip
SIZES = (0, 1, 2, 3, 64, 1 << 16, 1 << 24, 10**6, 10**9)


def mutate_json_value(value: Any, draw: random.Random) -> tuple[Any, str]:
    """One to three places of a JSON value changed: replaced, removed, repeated, renamed, swapped, scaled, nested."""
    value, done = copy.deepcopy(value), []
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        places = _places(value)
        if not places:
            return draw.choice(VALUES), "replaced by another value"
        path, holder, key = draw.choice(places)
        done.append(f"{path}: {_change(holder, key, draw)}")
    return value, "; ".join(done)


def _places(value: Any, path: str = "", most: int = 20_000) -> list[tuple[str, Any, Any]]:
    """Every place of a JSON value, those deep inside as often as those outside."""
    found: list[tuple[str, Any, Any]] = []
    pending = [(path, value)]
    while pending and len(found) < most:
        path, node = pending.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((f"{path}.{key}", node, key))
            pending.append((f"{path}.{key}", node[key]))
    return found


def _change(holder: Any, key: Any, draw: random.Random) -> str:
    old = holder[key]
    way = draw.randrange(9)
    if way == 0:
        del holder[key]
        return "removed"
    if way == 1 and isinstance(old, int | float) and not isinstance(old, bool):
        changed = draw.choice(
            [-old, old + 1, old - 1, old * 2, old * 1e10, float(old), str(old), [old], old // 2, old * 1e-9]
        )
        holder[key] = changed
        return f"{_short(old)} becomes {_short(changed)}"
    if way == 2 and isinstance(old, list | dict) and old:
        if isinstance(old, list):
            holder[key] = draw.choice(
                [old * 2, old[:-1], old[::-1], [*old, draw.choice(VALUES)], old * min(5000, 200_000 // len(old))]
            )
        else:
            inner = draw.choice(list(old))
            holder[key] = {
                (draw.choice(["x", "", TERMINAL, inner + "s"]) if k == inner else k): v for k, v in old.items()
            }
        return "entries repeated, removed or renamed"
    if way == 3:
        deep: Any = old
        depth = draw.choice([1, 2, 40, 500])
        for _ in range(depth):
            deep = draw.choice([[deep], {"x": deep}])
        holder[key] = deep
        return f"nested {depth} levels deeper"
    if way == 4 and isinstance(holder, dict) and len(holder) > 1:
        other = draw.choice(list(holder))
        holder[key], holder[other] = holder[other], holder[key]
        return f"swapped with {_short(other)}"
    if way == 5 and isinstance(holder, dict):
        name = draw.choice(["x", "__class__", "arguments", "part", TERMINAL, f"{key}s"])
        holder[name] = old
        return f"also as {_short(name)}"
    if way == 6 and isinstance(old, str) and old:
        place = draw.randrange(len(old))
        holder[key] = (
            old[:place]
            + draw.choice(["\x1b", "\x00", "é", "/", "..", "\n", "9", "a"])
            + old[place + draw.randrange(2) :]
        )
        return f"{_short(old)} becomes {_short(holder[key])}"
    if isinstance(old, int) and not isinstance(old, bool) and draw.random() < 0.4:
        holder[key] = draw.choice(SIZES)
        return f"{old} becomes {holder[key]}"
    holder[key] = copy.deepcopy(draw.choice(VALUES))
    return f"{_short(old)} becomes {_short(holder[key])}"


def _short(value: Any) -> str:
    return repr(value)[:60]


def mutate_json_text(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """JSON that `json.dumps` does not write: repeated keys, constants, huge numbers, deep nesting, other encodings."""
    text = content.decode("utf-8", "replace")
    way = draw.randrange(8)
    if way == 0:
        colon = [place for place in range(len(text)) if text[place] == "{"]
        place = draw.choice(colon) + 1 if colon else 0
        name = draw.choice(["kind", "part", "format", "arguments", "classes", "model", "x"])
        return (
            text[:place] + f'"{name}": {draw.choice(["1", "null", "[]", "NaN", "{}"])},' + text[place:]
        ).encode(), f"{name} twice"
    if way == 1:
        return b"\xff\xfe" + text.encode("utf-16-le"), "as UTF-16"
    if way == 2:
        return b"[" * draw.choice([10, 1000, 100_000]), "opening brackets"
    if way == 3:
        return b'{"a":' * draw.choice([10, 900, 50_000]) + b"1", "opening objects"
    if way == 4:
        return b"9" * draw.choice([30, 5000, 300_000]), "a number of many digits"
    digits = [place for place in range(len(text)) if text[place].isdigit()]
    if not digits:
        return b"", "emptied"
    place = draw.choice(digits)
    new = draw.choice(["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "9" * 5000, "0x10", "-", "1e-999", "true"])
    return (text[:place] + new + text[place + 1 :]).encode(), f"a digit becomes {new[:20]}"


def mutate_bytes(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """Bytes flipped, cut, removed, repeated, or replaced."""
    way, size = draw.randrange(6), len(content)
    place = draw.randrange(size) if size else 0
    if way == 0:
        return content[:place], f"cut after {place} bytes"
    if way == 1:
        data = bytearray(content or b"\0")
        for _ in range(draw.choice([1, 1, 4, 100])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        return bytes(data), "bytes changed"
    if way == 2:
        end = min(size, place + draw.choice([1, 8, 100]))
        return content[:place] + content[end:], f"bytes {place} to {end} removed"
    if way == 3:
        return content[:place] + draw.randbytes(draw.choice([1, 8, 100])) + content[place:], f"bytes added at {place}"
    if way == 4:
        return draw.choice(
            [b"", b"\0" * 64, b"{}", b"null", draw.randbytes(200), b"\x80\x04\x95", b"PK\x03\x04"]
        ), "replaced"
    return content + content, "twice"


def mutate_tensors(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """A safetensors file with its header, a tensor, or the JSON beside the tensors changed."""
    way = draw.randrange(4)
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    if way == 0:
        changed, words = mutate_json_value(header, draw)
        text = _dumps(changed)
        return struct.pack("<Q", len(text)) + text + content[8 + size :], f"header {words}"
    if way == 1:
        length = draw.choice([0, 1, size - 1, size + 1, size * 2, 1 << 20, 1 << 31, (1 << 64) - 1])
        return struct.pack("<Q", length) + content[8:], f"header of {length} bytes"
    tensors = load(content)
    own = header.get("__metadata__", {}).get("wonderland")
    stored = json.loads(own) if own else {"meta": {}}
    if way == 2 and own:
        stored["meta"], words = mutate_json_value(stored["meta"], draw)
        words = f"meta {words}"
    else:
        words = _change_tensor(tensors, draw)
    if own is None:
        return save(tensors, metadata={"format": "pt"}), words
    with contextlib.suppress(TypeError, ValueError):
        stored["sha256"] = digest(tensors, stored["meta"])
    return save(tensors, metadata={"wonderland": _dumps(stored).decode()}), words


def _change_tensor(tensors: dict[str, torch.Tensor], draw: random.Random) -> str:
    names = sorted(tensors)
    if not names:
        tensors["x"] = torch.zeros(3)
        return "a tensor added"
    name = draw.choice(names)
    tensor = tensors[name]
    ways: dict[str, Callable[[], Any]] = {
        "removed": lambda: None,
        "not finite": lambda: torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor,
        "infinite": lambda: torch.full_like(tensor, float("inf")) if tensor.is_floating_point() else tensor,
        "huge": lambda: torch.full_like(tensor, 3e38 if tensor.is_floating_point() else 120),
        "negative": lambda: -tensor - 1 if tensor.dtype not in (torch.uint8, torch.bool) else tensor,
        "flat": lambda: tensor.flatten(),
        "deeper": lambda: tensor[None],
        "transposed": lambda: tensor.T.contiguous() if tensor.dim() == 2 else tensor.flatten()[:0],
        "longer": lambda: torch.cat([tensor[None]] * 3).flatten(0, 1) if tensor.dim() else tensor.expand(5).clone(),
        "empty": lambda: tensor.flatten()[:0].clone(),
        "float64": lambda: tensor.double(),
        "int64": lambda: tensor.nan_to_num().long(),
        "bool": lambda: tensor.bool(),
        "uint8": lambda: tensor.nan_to_num().to(torch.uint8),
        "bfloat16": lambda: tensor.to(torch.bfloat16),
        "large integers": lambda: torch.full(tensor.shape, 2**62, dtype=torch.int64),
        "zeros": lambda: torch.zeros_like(tensor),
        "random": lambda: (torch.rand(tensor.shape, dtype=torch.float64) * 2000 - 1000).to(tensor.dtype),
        "renamed": lambda: tensor,
    }
    way = draw.choice(sorted(ways))
    changed = ways[way]()
    del tensors[name]
    if changed is not None:
        tensors[name + "x" if way == "renamed" else name] = changed.contiguous().clone()
    return f"tensor {name[:60]} {way}"


def _dumps(value: Any) -> bytes:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 5000)  # for values nested deeper than the reader under test may go
    try:
        return json.dumps(value).encode()
    finally:
        sys.setrecursionlimit(limit)


def mutate_file(path: Path, draw: random.Random) -> str:
    """Change one file in place; says how."""
    if draw.random() < 0.04:
        path.unlink()
        if draw.random() < 0.3:
            path.mkdir()
            return f"{path.name}: a folder in its place"
        return f"{path.name}: removed"
    content = path.read_bytes()
    suffix = path.suffix
    if suffix == ".json" and draw.random() < 0.8:
        changed, words = mutate_json_value(json.loads(content), draw)
        content = _dumps(changed)
    elif suffix in (".json", ".jsonl") and draw.random() < 0.5:
        content, words = mutate_json_text(content, draw)
    elif suffix == ".safetensors" and draw.random() < 0.85:
        content, words = mutate_tensors(content, draw)
    elif suffix == ".jsonl" and draw.random() < 0.8:
        rows = [json.loads(line) for line in content.splitlines()]
        changed, words = mutate_json_value(rows, draw)
        changed = changed if isinstance(changed, list) else [changed]
        content = b"".join(_dumps(row) + b"\n" for row in changed)
    else:
        content, words = mutate_bytes(content, draw)
    path.write_bytes(content)
    return f"{path.name}: {words}"


def sign_again(folder: Path) -> None:
    """Make the digests of a run fit its files again, as somebody who changed them on purpose would."""

    def sha(name: str) -> str:
        path = folder / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

    _sign_preprocessing(folder)
    inputs = {"config.json": sha("config.json")}
    for name in (
        "model.safetensors",
        *(f"checkpoint/{path.name}" for path in sorted((folder / "checkpoint").glob("*.safetensors"))),
    ):
        _sign_tensors(folder / name, inputs)
    try:
        trust = json.loads((folder / "trust.json").read_bytes())
        trust["inputs"] = {name: sha(name) for name in trust["inputs"]}
        (folder / "trust.json").write_bytes(_dumps(trust))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass


def _sign_preprocessing(folder: Path) -> None:
    """config.json records the preprocessing too."""
    from wonderland.ship.run import load_encoder

    try:
        config = json.loads((folder / "config.json").read_bytes())
        if "preprocessing" in config:
            config["preprocessing"] = load_encoder(folder).digest()
            (folder / "config.json").write_bytes(_dumps(config))
    except Exception:  # what is refused anyway
        return


def _sign_tensors(path: Path, inputs: dict[str, str]) -> None:
    try:
        content = path.read_bytes()
        size = struct.unpack("<Q", content[:8])[0]
        stored = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["wonderland"])
        meta, tensors = stored["meta"], load(content)
        if "inputs" in meta:
            meta["inputs"] = inputs
        for key, value in meta.get("state", {}).get("dict", []):
            if key == {"value": "identity"}:
                value["value"] = inputs["config.json"]
        stored["sha256"] = digest(tensors, meta)
        path.write_bytes(save(tensors, metadata={"wonderland": _dumps(stored).decode()}))
    except Exception:  # what cannot be read any more stays as it is
        return
