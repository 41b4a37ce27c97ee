"""Numbers between bounds, as expressions over their digits."""

from wonderland.generation.grammar.expressions import (
    NO_TEXT,
    CharSet,
    Concat,
    Expression,
    Repeat,
    Union,
    literal,
    optional,
)

DIGITS = 15  # of an unbounded integer: a double holds every integer of 15 digits exactly
DECIMALS = 6  # after the point of a bounded number
LARGEST = 10**9  # the magnitude of a bounded number without a bound on one side


def digits(low: int = 0, high: int = 9) -> Expression:
    """One digit from `low` to `high`."""
    return CharSet(((48 + low, 48 + high),))


def integers(low: int | None, high: int | None) -> Expression:
    """Integers from `low` to `high` as JSON writes them; None for no bound other than DIGITS.

    >>> from wonderland.generation.grammar.automaton import build
    >>> matches = build(integers(-3, 120)).matches
    >>> [text for text in ("-4", "-3", "0", "-0", "07", "99", "120", "121") if matches(text.encode())]
    ['-3', '0', '99', '120']
    """
    most = 10**DIGITS - 1
    low, high = -most if low is None else low, most if high is None else high
    signs = []
    if low < 0 and low <= high:
        signs.append(Concat((literal("-"), _between(max(1, -high), -low))))
    if high >= 0 and low <= high:
        signs.append(_between(max(low, 0), high))
    return Union(tuple(signs)) if signs else NO_TEXT


def decimals(low: int | None, high: int | None, open_low: bool, open_high: bool) -> Expression:
    """Numbers between integer bounds, each included unless it is open, with at most DECIMALS digits after the point.

    Without any bound, numbers of up to DIGITS digits before and after the point, with an optional exponent.

    >>> from wonderland.generation.grammar.automaton import build
    >>> matches = build(decimals(0, 2, True, False)).matches
    >>> [text for text in ("0", "0.0", "0.5", "1", "1.99", "2", "2.0", "2.1", "-1") if matches(text.encode())]
    ['0.5', '1', '1.99', '2', '2.0']
    """
    if low is None and high is None:
        exponent = Concat(
            (CharSet(((69, 69), (101, 101))), optional(CharSet(((43, 43), (45, 45)))), Repeat(digits(), 1, 2))
        )
        fraction = Concat((literal("."), Repeat(digits(), 1, DIGITS)))
        return Concat((optional(literal("-")), _between(0, 10**DIGITS - 1), optional(fraction), optional(exponent)))
    low, high = -LARGEST if low is None else low, LARGEST if high is None else high
    signs = []
    if high >= 0:
        signs.append(_magnitudes(max(low, 0), high, open_low and low >= 0, open_high))
    if low < 0:
        least = max(-high, 0)
        open_least = (open_high and high <= 0) or least == 0
        signs.append(Concat((literal("-"), _magnitudes(least, -low, open_least, open_low))))
    return Union(tuple(signs))


def _magnitudes(low: int, high: int, open_low: bool, open_high: bool) -> Expression:
    """Numbers from `low` to `high`, both at least 0, without a sign."""
    zeros = Concat((literal("."), Repeat(digits(0, 0), 1, DECIMALS)))
    nonzero = Concat((literal("."), Union(tuple(_after_zeros(k) for k in range(DECIMALS)))))
    any_fraction = Concat((literal("."), Repeat(digits(), 1, DECIMALS)))
    cases: list[Expression] = []
    if low == high and (open_low or open_high):
        return NO_TEXT
    for value, open_ in ((low, open_low), (high, open_high)):
        if not open_:
            cases.append(Concat((literal(str(value)), optional(zeros))))
    if low < high:
        cases.append(Concat((literal(str(low)), nonzero)))
    if low + 1 <= high - 1:
        cases.append(Concat((_between(low + 1, high - 1), optional(any_fraction))))
    return Union(tuple(cases))


def _after_zeros(zeros: int) -> Expression:
    """Decimals that begin with a number of zeros and a digit that is not 0."""
    return Concat((*[digits(0, 0)] * zeros, digits(1), Repeat(digits(), 0, DECIMALS - 1 - zeros)))


def _between(low: int, high: int) -> Expression:
    """Integers from `low` to `high`, both at least 0, without leading zeros."""
    lengths = []
    for size in range(len(str(low)), len(str(high)) + 1):
        least, most = (0 if size == 1 else 10 ** (size - 1)), 10**size - 1
        first, last = max(low, least), min(high, most)
        if first <= last:
            lengths.append(_same_length(str(first), str(last)))
    return Union(tuple(lengths))


def _same_length(low: str, high: str) -> Expression:
    """Integers between two of the same length: those that share the first digit of a bound, and all between the two digits."""
    if not low:
        return Concat(())
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return Concat((digits(int(low[0]), int(high[0])), Repeat(digits(), rest, rest)))
    if low[0] == high[0]:
        return Concat((literal(low[0]), _same_length(low[1:], high[1:])))
    cases: list[Expression] = [Concat((literal(low[0]), _same_length(low[1:], "9" * rest)))]
    if int(low[0]) + 1 <= int(high[0]) - 1:
        cases.append(Concat((digits(int(low[0]) + 1, int(high[0]) - 1), Repeat(digits(), rest, rest))))
    cases.append(Concat((literal(high[0]), _same_length("0" * rest, high[1:]))))
    return Union(tuple(cases))
