"""Checks that several parts of generation share."""

from numbers import Integral
from typing import Any

from wonderland.core import WonderlandError


def whole(value: Any, words: str, least: int | None = 1) -> int:
    """A whole number, numpy's too, from `least` on; else a sentence that begins with `words`.

    >>> whole(3, "beams is")
    3
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or (least is not None and value < least):
        start = "" if least is None else f" from {least}"
        raise WonderlandError(f"{words} a whole number{start}, not {value!r}.")
    return int(value)


def whole_count(count: Any) -> int:
    """The number of tokens to write."""
    return whole(count, "count, the number of tokens to write, is")
