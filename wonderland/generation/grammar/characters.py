"""Sets of characters as ranges of code points, and the bytes that UTF-8 writes for them."""

import re
import sys
from collections.abc import Iterable
from functools import cache

import numpy as np

Ranges = tuple[tuple[int, int], ...]
LAST = sys.maxunicode
_ENDS = (0x7F, 0x7FF, 0xFFFF, LAST)
_TEXT: Ranges = ((0, 0xD7FF), (0xE000, LAST))  # surrogates are no text


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in order, merged where they touch.

    >>> union([(5, 9), (1, 3), (4, 4)])
    ((1, 9),)
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def common(one: Ranges, other: Ranges) -> Ranges:
    """What two sets share.

    >>> common(((1, 5), (8, 9)), ((4, 8),))
    ((4, 5), (8, 8))
    """
    return union((max(a, c), min(b, d)) for a, b in one for c, d in other if max(a, c) <= min(b, d))


def complement(ranges: Ranges) -> Ranges:
    """All other characters.

    >>> complement(((0, 96), (98, LAST)))
    ((97, 97),)
    """
    found, low = [], 0
    for start, end in union(ranges):
        if low < start:
            found.append((low, start - 1))
        low = end + 1
    if low <= LAST:
        found.append((low, LAST))
    return common(tuple(found), _TEXT)


def minus(one: Ranges, other: Ranges) -> Ranges:
    """One set without another."""
    return common(one, complement(other))


ANY = complement(())


@cache
def unicode_class(name: str) -> Ranges:
    r"""What \d, \w or \s means to Python for all of Unicode."""
    text = np.arange(LAST + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return common(tuple((run.start(), run.end() - 1) for run in re.finditer(rf"\{name}+", text)), _TEXT)


@cache
def ascii_class(name: str) -> Ranges:
    r"""What \d, \w or \s means among the first 128 characters."""
    return union((code, code) for code in range(128) if re.match(rf"\{name}", chr(code), re.ASCII))


@cache
def utf8(ranges: Ranges) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Sequences of ranges of bytes that spell exactly the characters of a set.

    >>> utf8(((0x61, 0x7A),))
    (((97, 122),),)
    >>> utf8(((0x80, 0x7FF),))
    (((194, 223), (128, 191)),)
    """
    found: list[tuple[tuple[int, int], ...]] = []
    for low, high in common(ranges, _TEXT):
        _spell(low, high, found)
    return tuple(found)


def _spell(low: int, high: int, found: list) -> None:
    for end in _ENDS:
        if low <= end < high:
            _spell(low, end, found)
            _spell(end + 1, high, found)
            return
    if high <= 0x7F:
        found.append(((low, high),))
        return
    for bits in (6, 12, 18):
        mask = (1 << bits) - 1
        if low & ~mask == high & ~mask:
            break
        # Cut off what does not fill a whole block of continuation bytes.
        if low & mask:
            _spell(low, low | mask, found)
            _spell((low | mask) + 1, high, found)
            return
        if high & mask != mask:
            _spell(low, (high & ~mask) - 1, found)
            _spell(high & ~mask, high, found)
            return
    found.append(tuple(zip(chr(low).encode(), chr(high).encode(), strict=True)))
