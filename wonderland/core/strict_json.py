"""JSON that anybody may have written: repeated keys, NaN, infinities and whole numbers beyond 64 bits are refused.

Python's own parser takes all of them, and each has a way of becoming an error far from the file that it came from.
"""

import gc
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SURROGATES = re.compile("[\ud800-\udfff]")


def parse_json(text: str | bytes) -> Any:
    """A JSON text as a value; `ValueError` for what is not plain JSON, `RecursionError` for what is nested too deeply.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: the key 'a' is there twice
    """
    with _uncollected():
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite, parse_int=_whole
        )


def load_json(text: str | bytes) -> Any:
    """A JSON text as a value, as Python's own parser takes it."""
    with _uncollected():
        return json.loads(text)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold back the garbage collector: while many objects are made and all of them kept, it takes ten times as long as parsing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def count_values(text: str | bytes) -> int:
    """At least the number of values of a JSON text, objects counted thrice: in proportion to the memory that parsing it takes.

    >>> count_values('{"a": [1, 2, []]}')
    7
    """
    comma, list_, object_ = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    return text.count(comma) + text.count(list_) + 3 * text.count(object_)  # pyright: ignore[reportArgumentType]


def dump_json(value: Any) -> str:
    """Indented JSON text. Halves of surrogate pairs, which stand for bytes of file names that are not UTF-8, are escaped.

    >>> print(dump_json({"path": "caf\\udce9"}))
    {
      "path": "caf\\udce9"
    }
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _SURROGATES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"the key {twice[:60]!r} is there twice")
    return members


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is beyond the range of floating point")
    return value


def _whole(digits: str) -> int:
    if len(digits) > 20 or not -(1 << 63) <= (value := int(digits)) < 1 << 63:
        raise ValueError("a whole number has more than 64 bits")
    return value
