"""A seeded mutator of JSON values, JSON text, JSON lines and bytes.

Every mutation is a function of a `random.Random`, so that the seed of a case repeats it. `mutate_tensors.py` changes
safetensors, `mutate_files.py` files and folders.
"""

import copy
import json
import random
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

TERMINAL = "a\x1b[2J\x07\u202eb\nc"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 10**5, 10**6, 2**24, 10**9, 2**31, 2**63 - 1, 2**63, 10**40, -(10**40),
    0.0, -0.0, -0.5, 0.5, 1.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf"),
    "", "x", "0", "1e9", "\x00", "\ud800", TERMINAL, "../../etc/passwd", "__import__", "os.system", "nn.Linear", "x" * 100_000,
    "/dev/zero", "true", "NaN", "sqlite:///etc/passwd?query=select 1", "\ufeff", "e\u0301", "％s%n{0}{self}", "<script>alert(1)</script>",
    [], [0], [[]], [None], ["x"], [1e308] * 3, [0] * 70_000, [[]] * 30_000, ["a"] * 30_000, {}, {"a": 1}, {str(i): i for i in range(3000)},
    {"part": "os.system", "arguments": {}}, {"part": "nn.MLP", "arguments": {}}, {"function": "nn.gelu"}, {"own": "x"},
    {"tensor": "x", "channels_last": True}, {"float": "inf"}, {"dict": [[1]]}, {"list": 3}, {"value": {}},
)  # fmt: skip
SIZES = (0, 1, 2, 3, 63, 64, 65, 1 << 16, 1 << 24, (1 << 24) + 1, 10**6, 10**9)


def mutate_json_value(value: Any, draw: random.Random) -> tuple[Any, str]:
    """One to three places of a JSON value changed: replaced, removed, repeated, renamed, swapped, scaled, nested, of another type."""
    value, done = copy.deepcopy(value), []
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        places = _places(value)
        if not places:
            return draw.choice(VALUES), "replaced by another value"
        path, holder, key = draw.choice(places)
        if not done and draw.random() < 0.12:  # later, a value could get deeper than a copy may go
            other, there, name = draw.choice(places)
            holder[key] = copy.deepcopy(there[name])
            done.append(f"{path}: a copy of {other}")
            continue
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
    ways = (
        _removed,
        _scaled,
        _entries,
        _nested,
        _swapped,
        _also,
        _letters,
        _of_another_type,
        _part,
        _replaced,
        _replaced,
    )
    for way in draw.sample(ways, len(ways)):
        words = way(holder, key, draw)
        if words is not None:
            return words
    holder[key] = None
    return f"{_short(old)} becomes None"


def _removed(holder: Any, key: Any, draw: random.Random) -> str:
    del holder[key]
    return "removed"


def _scaled(holder: Any, key: Any, draw: random.Random) -> str | None:
    old = holder[key]
    if not isinstance(old, int | float) or isinstance(old, bool):
        return None
    near = [-old, old + 1, old - 1, old * 2, old * 3, old * 1e10, float(old), str(old), [old], old * 1e-9]
    changed = draw.choice(near if isinstance(old, float) else [*near, *SIZES, old // 2])
    holder[key] = changed
    return f"{_short(old)} becomes {_short(changed)}"


def _entries(holder: Any, key: Any, draw: random.Random) -> str | None:
    old = holder[key]
    if not isinstance(old, list | dict) or not old:
        return None
    if isinstance(old, list):
        shuffled = draw.sample(old, len(old))
        extended = [*old, draw.choice(VALUES)]
        holder[key] = draw.choice(
            [old * 2, old[:-1], old[::-1], shuffled, extended, old * min(5000, 200_000 // len(old))]
        )
        return "entries repeated, removed, reordered or added"
    inner = draw.choice(list(old))
    name = draw.choice(
        [
            "x",
            "",
            TERMINAL,
            inner + "s",
            inner.upper(),
            f" {inner}",
            inner + "\u200b",
            unicodedata.normalize("NFD", inner + "é"),
        ]
    )
    holder[key] = {(name if k == inner else k): v for k, v in old.items()}
    return f"{_short(inner)} renamed to {_short(name)}"


def _nested(holder: Any, key: Any, draw: random.Random) -> str:
    deep, depth = holder[key], draw.choice([1, 2, 40, 500])
    for _ in range(depth):
        deep = draw.choice([[deep], {"x": deep}, {"list": [deep]}])
    holder[key] = deep
    return f"nested {depth} levels deeper"


def _swapped(holder: Any, key: Any, draw: random.Random) -> str | None:
    if len(holder) < 2:
        return None
    other = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]
    return f"swapped with {_short(other)}"


def _also(holder: Any, key: Any, draw: random.Random) -> str | None:
    if not isinstance(holder, dict):
        return None
    name = draw.choice(
        ["x", "__class__", "arguments", "part", "self", "dim", "generator", "device", TERMINAL, f"{key}s"]
    )
    holder[name] = holder[key]
    return f"also as {_short(name)}"


def _letters(holder: Any, key: Any, draw: random.Random) -> str | None:
    old = holder[key]
    if not isinstance(old, str) or not old:
        return None
    place = draw.randrange(len(old))
    letter = draw.choice(
        ["\x1b", "\x00", "é", "/", "..", "\n", "9", "a", "\u202e", "\u200b", "\ud83d", "ａ", "%s", "{}"]
    )
    holder[key] = old[:place] + letter + old[place + draw.randrange(2) :]
    return f"{_short(old)} becomes {_short(holder[key])}"


def _of_another_type(holder: Any, key: Any, draw: random.Random) -> str:
    """The same content as another type of JSON."""
    old = holder[key]
    kinds: list[Callable[[], Any]] = [lambda: [old], lambda: {"x": old}, lambda: _text(old)]
    if isinstance(old, dict):
        kinds += [lambda: list(old.values()), lambda: [[k, v] for k, v in old.items()], lambda: list(old)]
    elif isinstance(old, list):
        kinds += [lambda: {str(i): v for i, v in enumerate(old)}, lambda: old[0] if old else None, lambda: len(old)]
    elif isinstance(old, str):
        kinds += [lambda: list(old[:1000]), lambda: len(old), lambda: [ord(c) for c in old[:1000]]]
    elif isinstance(old, bool | int | float):
        kinds += [
            lambda: bool(old),
            lambda: float(old) if abs(old) < 1e300 else 0.0,
            lambda: f" {old} ",
            lambda: {"value": old},
        ]
    holder[key] = draw.choice(kinds)()
    return f"{_short(old)} becomes {_short(holder[key])}"


def _part(holder: Any, key: Any, draw: random.Random) -> str | None:
    """The name of another part of the library."""
    from wonderland.core.spec import parts

    old = holder[key]
    if not isinstance(old, str) or not any(
        old.startswith(f"{name}.") for name in ("nn", "models", "tasks", "optim", "data", "train", "kinds")
    ):
        return None
    holder[key] = draw.choice(parts())
    return f"{old} becomes {holder[key]}"


def _replaced(holder: Any, key: Any, draw: random.Random) -> str:
    old = holder[key]
    holder[key] = copy.deepcopy(draw.choice(VALUES))
    return f"{_short(old)} becomes {_short(holder[key])}"


def _text(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "["


def _short(value: Any) -> str:
    try:
        return repr(value)[:60]
    except RecursionError:
        return "something deep"


def mutate_json_text(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """JSON that `json.dumps` does not write: repeated keys, constants, huge numbers, deep nesting, other encodings, trailing text."""
    text = content.decode("utf-8", "replace")
    ways: list[Callable[[], tuple[bytes, str]]] = [
        lambda: _twice(text, draw),
        lambda: (
            draw.choice([b"\xff\xfe" + text.encode("utf-16-le"), text.encode("utf-32"), b"\xef\xbb\xbf" + content]),
            "in another encoding",
        ),
        lambda: (b"[" * draw.choice([10, 1000, 100_000]), "opening brackets"),
        lambda: (b'{"a":' * draw.choice([10, 900, 50_000]) + b"1", "opening objects"),
        lambda: (b"9" * draw.choice([30, 5000, 300_000]), "a number of many digits"),
        lambda: (b"[" + b"[]," * draw.choice([1000, 400_000, 3_000_000]) + b"[]]", "a list of many lists"),
        lambda: (b'{"a":"' + b"\\u00e9" * draw.choice([1000, 2_000_000]) + b'"}', "a long text"),
        lambda: (content + draw.choice([b"\n\n", b"{}", b"]", b"\0" * 4096, b" " * 3_000_000]), "followed by more"),
        lambda: (content.replace(b'"', b"'"), "single quotes"),
        lambda: (content.replace(b"}", b",}"), "trailing commas"),
        lambda: (b"/* */" + content, "a comment"),
        lambda: (content[: draw.randrange(len(content) + 1)], "cut"),
        lambda: _digit(text, draw),
        lambda: _digit(text, draw),
        lambda: _digit(text, draw),
    ]
    return draw.choice(ways)()


def _twice(text: str, draw: random.Random) -> tuple[bytes, str]:
    """A key of an object written twice: one that it has, or another."""
    opening = [place for place in range(len(text)) if text[place] == "{"]
    place = draw.choice(opening) + 1 if opening else 0
    there = text[place:].split('"', 2)
    names = [
        "kind",
        "part",
        "format",
        "arguments",
        "classes",
        "model",
        "x",
        *([there[1]] * 4 if len(there) > 2 else []),
    ]
    name = draw.choice(names)
    value = draw.choice(["1", "null", "[]", "NaN", "{}", '"x"'])
    return (text[:place] + f'"{name}": {value},' + text[place:]).encode("utf-8", "surrogatepass"), f"{name} twice"


def _digit(text: str, draw: random.Random) -> tuple[bytes, str]:
    digits = [place for place in range(len(text)) if text[place].isdigit()]
    if not digits:
        return b"", "emptied"
    place = draw.choice(digits)
    new = draw.choice(
        [
            "NaN",
            "Infinity",
            "-Infinity",
            "1e999",
            "9" * 400,
            "9" * 5000,
            "0x10",
            "-",
            "1e-999",
            "true",
            "1_0",
            "01",
            ".5",
            "-0",
            "1e400000000",
        ]
    )
    return (text[:place] + new + text[place + 1 :]).encode("utf-8", "replace"), f"a digit becomes {new[:20]}"


def mutate_lines(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """JSON lines repeated, reordered, cut, emptied, joined, or very many."""
    lines = content.splitlines(keepends=True) or [b"{}\n"]
    place = draw.randrange(len(lines))
    ways = {
        "a line repeated": lambda: [*lines[:place], *lines[place : place + 1] * draw.choice([2, 3000]), *lines[place:]],
        "lines reordered": lambda: draw.sample(lines, len(lines)),
        "a line cut": lambda: [*lines[:place], lines[place][: draw.randrange(len(lines[place]))], *lines[place + 1 :]],
        "empty lines": lambda: [b"\n" * draw.choice([1, 10, 300_000]), *lines],
        "no ends of lines": lambda: [line.strip() for line in lines],
        "ends of another system": lambda: [line.strip() + b"\r\n" for line in lines],
        "a list in place of a line": lambda: [*lines[:place], draw.choice([b"[]\n", b"3\n", b"null\n", b'"x"\n', b"{}\n"]), *lines[place + 1 :]],
        "the first line missing": lambda: lines[1:],
    }  # fmt: skip
    way = draw.choice(sorted(ways))
    return b"".join(ways[way]()), way


def mutate_bytes(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """Bytes flipped, cut, removed, repeated, or replaced."""
    way, size = draw.randrange(7), len(content)
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
        magic = [
            b"",
            b"\0" * 64,
            b"{}",
            b"null",
            b"\x80\x04\x95",
            b"PK\x03\x04",
            b"\x1f\x8b\x08",
            b"\x89PNG\r\n\x1a\n",
            b"PAR1",
            b"SQLite format 3\0",
        ]
        return draw.choice([*magic, draw.randbytes(200)]), "replaced"
    if way == 5:
        data = bytearray(content or b"\0")
        data[place] ^= 1 << draw.randrange(8)
        return bytes(data), f"a bit changed at {place}"
    return content + content, "twice"


def dumps(value: Any) -> bytes:
    """JSON text, also of what is nested deeper than the reader under test may go."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 5000)
    try:
        return json.dumps(value).encode()
    finally:
        sys.setrecursionlimit(limit)
