"""Numbers between bounds, as expressions over their digits."""

from wonderland.generation.grammar.expressions import (
    NOTHING,
    Chars,
    Either,
    Expression,
    Then,
    Times,
    literal,
    maybe,
)

DIGITS = 15  # of a whole number without bounds: what every reader of JSON holds exactly


def digits(low: int = 0, high: int = 9) -> Expression:
    return Chars(((48 + low, 48 + high),))


def whole(low: int | None, high: int | None) -> Expression:
    """Whole numbers from `low` to `high`, as JSON writes them; None for no bound but that of DIGITS.

    >>> from wonderland.generation.grammar.automaton import build
    >>> matches = build(whole(-3, 120)).matches
    >>> [text for text in ("-4", "-3", "0", "-0", "07", "99", "120", "121") if matches(text.encode())]
    ['-3', '0', '99', '120']
    """
    most = 10**DIGITS - 1
    low, high = -most if low is None else low, most if high is None else high
    found = []
    if low < 0 and low <= high:
        found.append(Then((literal("-"), _between(max(1, -high), -low))))
    if high >= 0 and low <= high:
        found.append(_between(max(low, 0), high))
    return Either(tuple(found)) if found else NOTHING


def real(low: int | None, high: int | None, open_low: bool, open_high: bool) -> Expression:
    """Numbers between whole bounds, each included unless it is open, with at most six digits after the point.

    >>> from wonderland.generation.grammar.automaton import build
    >>> matches = build(real(0, 2, True, False)).matches
    >>> [text for text in ("0", "0.0", "0.5", "1", "1.99", "2", "2.0", "2.1", "-1") if matches(text.encode())]
    ['0.5', '1', '1.99', '2', '2.0']
    """
    if low is None and high is None:
        exponent = Then((Chars(((69, 69), (101, 101))), maybe(Chars(((43, 43), (45, 45)))), Times(digits(), 1, 2)))
        fraction = Then((literal("."), Times(digits(), 1, DIGITS)))
        return Then((maybe(literal("-")), _between(0, 10**DIGITS - 1), maybe(fraction), maybe(exponent)))
    most = 10**9
    low, high = -most if low is None else low, most if high is None else high
    found = []
    if high >= 0:
        found.append(_magnitudes(max(low, 0), high, open_low and low >= 0, open_high))
    if low < 0:
        least = max(-high, 0)
        found.append(Then((literal("-"), _magnitudes(least, -low, (open_high and high <= 0) or least == 0, open_low))))
    return Either(tuple(found))


def _magnitudes(low: int, high: int, open_low: bool, open_high: bool) -> Expression:
    """Numbers from `low` to `high`, both at least 0, without a sign."""
    zeros = Then((literal("."), Times(digits(0, 0), 1, 6)))
    # Some digit after the point is not 0.
    some = Then((literal("."), Either(tuple(_some(k) for k in range(6)))))
    found: list[Expression] = []
    if low == high and (open_low or open_high):
        return NOTHING
    for value, open_ in ((low, open_low), (high, open_high)):
        if not open_:
            found.append(Then((literal(str(value)), maybe(zeros))))
    if low < high:
        found.append(Then((literal(str(low)), some)))
    if low + 1 <= high - 1:
        found.append(Then((_between(low + 1, high - 1), maybe(Then((literal("."), Times(digits(), 1, 6)))))))
    return Either(tuple(found))


def _some(zeros: int) -> Expression:
    return Then((*[digits(0, 0)] * zeros, digits(1), Times(digits(), 0, 5 - zeros)))


def _between(low: int, high: int) -> Expression:
    """Whole numbers from `low` to `high`, both at least 0, without leading zeros."""
    found = []
    for size in range(len(str(low)), len(str(high)) + 1):
        least, most = (0 if size == 1 else 10 ** (size - 1)), 10**size - 1
        first, last = max(low, least), min(high, most)
        if first <= last:
            found.append(_same_size(str(first), str(last)))
    return Either(tuple(found))


def _same_size(low: str, high: str) -> Expression:
    """Numbers of one length between two of that length: digit by digit, free as soon as both bounds are left."""
    if not low:
        return Then(())
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return Then((digits(int(low[0]), int(high[0])), Times(digits(), rest, rest)))
    if low[0] == high[0]:
        return Then((literal(low[0]), _same_size(low[1:], high[1:])))
    found: list[Expression] = [Then((literal(low[0]), _same_size(low[1:], "9" * rest)))]
    if int(low[0]) + 1 <= int(high[0]) - 1:
        found.append(Then((digits(int(low[0]) + 1, int(high[0]) - 1), Times(digits(), rest, rest))))
    found.append(Then((literal(high[0]), _same_size("0" * rest, high[1:]))))
    return Either(tuple(found))
