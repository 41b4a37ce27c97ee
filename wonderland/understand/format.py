"""Formatting of numbers and text for people: rounded, escaped, and never "nan"."""

import html
import math
import re
from typing import Any

MISSING = "–"
Number = float | int | None
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def plain(value: Any) -> str:
    """Text without the characters that XML forbids or that reorder the text around them."""
    return _UNSAFE.sub("\ufffd", str(value))


def escape(value: Any) -> str:
    """Text that is safe between tags and inside quoted attributes, in HTML and in XML.

    >>> escape('<script>"a" & b</script>')
    '&lt;script&gt;&quot;a&quot; &amp; b&lt;/script&gt;'
    """
    return html.escape(plain(value), quote=True)


def real(value: Any) -> float | None:
    """The value as a float, or None where it is not a finite number below 1e100."""
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        x = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(x) or abs(x) > 1e100:
        return None
    return 0.0 if abs(x) < 1e-100 else x


def number(value: Any, digits: int = 3) -> str:
    """A number with about `digits` significant digits and separators of thousands.

    >>> number(0.97812), number(1234567), number(12.345), number(-0.00000123), number(float("nan"))
    ('0.978', '1,234,567', '12.3', '−1.23e-6', '–')
    """
    x = real(value)
    if x is None:
        return MISSING
    if x == 0:
        return "0"
    size = abs(x)
    if size < 1e-4 or size >= 1e12 or (size >= 1e7 and x != int(x)):
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"
    elif x == int(x):
        text = f"{int(size):,}"
    else:
        places = max(0, digits - 1 - math.floor(math.log10(size)))
        text = f"{size:,.{places}f}"
        while size < 1 <= float(text) and places < 9:  # 0.9996 is not 1
            places += 1
            text = f"{size:,.{places}f}"
    return "−" + text if x < 0 else text


def percent(value: Any, digits: int = 1) -> str:
    """A share as a percentage that is never rounded to 0 % or 100 %.

    >>> percent(0.9781), percent(1), percent(0.99999), percent(0.00001)
    ('97.8\\xa0%', '100\\xa0%', '>99.9\\xa0%', '<0.1\\xa0%')
    """
    x = real(value)
    if x is None:
        return MISSING
    if x in (0, 1):
        return f"{100 * x:.0f}\xa0%"
    edge = 10.0**-digits
    if 0 < x < 1 and 100 * x > 100 - edge / 2:
        return f">{100 - edge:.{digits}f}\xa0%"
    if 0 < x < 1 and 100 * x < edge / 2:
        return f"<{edge:.{digits}f}\xa0%"
    return f"{100 * x:.{digits}f}\xa0%".replace("-", "−")


def compact(value: Any) -> str:
    """A count, in millions or more where it is large.

    >>> compact(84234), compact(1234567), compact(3.2e9)
    ('84,234', '1.23 million', '3.2 billion')
    """
    return _scaled(value, [(1e12, "trillion"), (1e9, "billion"), (1e6, "million")])


def size(value: Any) -> str:
    """Bytes in decimal units.

    >>> size(512), size(1_500_000)
    ('512 B', '1.5 MB')
    """
    text = _scaled(value, [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")])
    return text if text == MISSING or " " in text else text + " B"


def duration(value: Any) -> str:
    """Seconds as a time span.

    >>> duration(0.0123), duration(48.2), duration(200), duration(7300)
    ('12.3 ms', '48.2 s', '3 min 20 s', '2 h 1 min')
    """
    seconds = real(value)
    if seconds is None or seconds < 0:
        return MISSING
    if seconds < 1:
        return f"{number(1000 * seconds)} ms"
    if seconds < 100:
        return f"{number(seconds)} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def _scaled(value: Any, units: list[tuple[float, str]]) -> str:
    x = real(value)
    if x is None:
        return MISSING
    for scale, unit in units:
        if abs(x) >= scale:
            text = f"{x / scale:.3g}" if abs(x) < 1000 * scale else f"{x / scale:,.0f}"
            return f"{text} {unit}"
    return number(x)


def wilson(share: float, count: float, z: float = 1.96) -> tuple[float, float]:
    """The Wilson interval of a share measured on `count` examples.

    >>> low, high = wilson(0.978, 360)
    >>> round(low, 3), round(high, 3)
    (0.957, 0.989)
    """
    if count <= 0:
        return 0.0, 1.0
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    margin = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, centre - margin), min(1.0, centre + margin)
