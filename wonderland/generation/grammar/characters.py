"""Sets of characters as ranges of code points, and the bytes that UTF-8 writes for them."""

import re
import sys
from collections.abc import Iterable
from functools import cache

import numpy as np

Ranges = tuple[tuple[int, int], ...]
LAST = sys.maxunicode
_LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, LAST)  # the last code points that take 1, 2, 3 and 4 bytes
_CHARACTERS: Ranges = ((0, 0xD7FF), (0xE000, LAST))  # all code points but surrogates


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union of ranges: sorted, and merged where they touch.

    >>> union([(5, 9), (1, 3), (4, 4)])
    ((1, 9),)
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """The characters that are in both sets.

    >>> intersection(((1, 5), (8, 9)), ((4, 8),))
    ((4, 5), (8, 8))
    """
    return union((max(a, c), min(b, d)) for a, b in left for c, d in right if max(a, c) <= min(b, d))


def complement(ranges: Ranges) -> Ranges:
    """All characters that are not in a set.

    >>> complement(((0, 96), (98, LAST)))
    ((97, 97),)
    """
    gaps, low = [], 0
    for start, end in union(ranges):
        if low < start:
            gaps.append((low, start - 1))
        low = end + 1
    if low <= LAST:
        gaps.append((low, LAST))
    return intersection(tuple(gaps), _CHARACTERS)


def difference(left: Ranges, right: Ranges) -> Ranges:
    """The characters of the left set that are not in the right one."""
    return intersection(left, complement(right))


ANY = complement(())


@cache
def unicode_class(name: str) -> Ranges:
    r"""The characters of \d, \w or \s in Python, over all of Unicode."""
    text = np.arange(LAST + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return intersection(tuple((run.start(), run.end() - 1) for run in re.finditer(rf"\{name}+", text)), _CHARACTERS)


@cache
def ascii_class(name: str) -> Ranges:
    r"""The ASCII characters of \d, \w or \s."""
    return union((code, code) for code in range(128) if re.match(rf"\{name}", chr(code), re.ASCII))


@cache
def utf8(ranges: Ranges) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Sequences of byte ranges that together encode exactly the characters of a set.

    >>> utf8(((0x61, 0x7A),))
    (((97, 122),),)
    >>> utf8(((0x80, 0x7FF),))
    (((194, 223), (128, 191)),)
    """
    sequences: list[tuple[tuple[int, int], ...]] = []
    for low, high in intersection(ranges, _CHARACTERS):
        _encode_range(low, high, sequences)
    return tuple(sequences)


def _encode_range(low: int, high: int, sequences: list) -> None:
    """Append the byte ranges of code points from low to high, split until each part is one sequence."""
    for end in _LAST_OF_LENGTH:
        if low <= end < high:
            _encode_range(low, end, sequences)
            _encode_range(end + 1, high, sequences)
            return
    if high <= 0x7F:
        sequences.append(((low, high),))
        return
    for bits in (6, 12, 18):
        mask = (1 << bits) - 1
        if low & ~mask == high & ~mask:
            break
        # Split off what does not fill a whole block of continuation bytes.
        if low & mask:
            _encode_range(low, low | mask, sequences)
            _encode_range((low | mask) + 1, high, sequences)
            return
        if high & mask != mask:
            _encode_range(low, (high & ~mask) - 1, sequences)
            _encode_range(high & ~mask, high, sequences)
            return
    sequences.append(tuple(zip(chr(low).encode(), chr(high).encode(), strict=True)))
