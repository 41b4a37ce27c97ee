"""Bounds in a JSON schema: of lengths and counts, and of numbers."""

from collections.abc import Mapping
from typing import NamedTuple

from wonderland.core import WonderlandError
from wonderland.generation.grammar.regex import MAX_REPEATS


class NumberBounds(NamedTuple):
    """Bounds of a number, None for no bound, and whether each is exclusive."""

    low: float | int | None
    high: float | int | None
    open_low: bool
    open_high: bool


def size_bounds(schema: Mapping, low: str, high: str, where: str) -> tuple[int, int | None]:
    """The values of two keywords such as minItems and maxItems."""
    for keyword in (low, high):
        value = schema.get(keyword, 0)
        if type(value) is not int or not 0 <= value <= MAX_REPEATS:
            raise WonderlandError(
                f"{where} has {keyword}={value!r}: it must be a whole number from 0 to {MAX_REPEATS}."
            )
    least, most = schema.get(low, 0), schema.get(high)
    if most is not None and most < least:
        raise WonderlandError(f"{where} has {low}={least} and {high}={most}: no value has both.")
    return least, most


def number_bounds(schema: Mapping, where: str) -> NumberBounds:
    """The bounds of a number: the tighter one where both minimum and exclusiveMinimum, or their opposites, are given."""
    low, open_low = _tightest(schema, "Minimum", 1, where)
    high, open_high = _tightest(schema, "Maximum", -1, where)
    return NumberBounds(low, high, open_low, open_high)


def _tightest(schema: Mapping, keyword: str, sign: int, where: str) -> tuple[float | int | None, bool]:
    bound: float | int | None = None
    exclusive = False
    for name, excluded in ((keyword.lower(), False), (f"exclusive{keyword}", True)):
        if name not in schema:
            continue
        value = schema[name]
        # The comparison is written so that it is false for NaN too.
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= 10**15:
            shown = repr(value) if not isinstance(value, int) or value.bit_length() < 128 else "a huge number"
            raise WonderlandError(f"{where} has {name}={shown}: it must be a number of magnitude at most 10 to the 15.")
        if bound is None or sign * value > sign * bound or (value == bound and excluded):
            bound, exclusive = value, excluded
    return bound, exclusive
