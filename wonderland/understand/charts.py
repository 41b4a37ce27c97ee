"""Charts as SVG text: plain numbers in, one self-contained picture out, with no plotting library.

Every chart carries its own colours for light and dark, a title and a description for those who hear it instead of
seeing it, and marks that differ in shape as well as in colour. Names are escaped, and numbers that are missing,
infinite or all alike give a smaller chart, never a broken one.

>>> svg = curves({"train": [2.3, 0.9, 0.4], "validation": [2.2, 1.0, 0.7]}, steps=[0, 100, 200], best=200)
>>> svg.startswith("<svg"), "<title>Learning curves</title>" in svg
(True, True)
"""

import html
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 420
MISSING = "–"

COLOURS = (
    ".wl{--paper:#fff;--ink:#1b1f24;--muted:#59636e;--line:#dce1e6;--soft:#f4f6f8;"
    "--s0:#1f5fa8;--s1:#bf5409;--s2:#17735a;--s3:#7547ab;color-scheme:light}"
    "@media (prefers-color-scheme:dark){.wl{--paper:#14171a;--ink:#e6e9ec;--muted:#9ba5af;--line:#30373e;"
    "--soft:#1d2226;--s0:#74aef0;--s1:#f0944d;--s2:#5cc2a0;--s3:#b893e8;color-scheme:dark}}"
)
CSS = COLOURS + (
    'svg.wl text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:var(--ink);'
    "font-variant-numeric:tabular-nums}"
    "svg.wl .paper{fill:var(--paper)}svg.wl text.m{fill:var(--muted)}svg.wl text.s{font-size:11px}"
    "svg.wl text.t{font-size:9.5px}svg.wl text.b{font-weight:600}svg.wl text.on{fill:var(--paper)}"
    "svg.wl .e{text-anchor:end}svg.wl .c{text-anchor:middle}"
    "svg.wl .g{stroke:var(--line);fill:none}svg.wl .a{stroke:var(--muted);fill:none}"
    "svg.wl .d{stroke-dasharray:5 4}svg.wl .dd{stroke-dasharray:1.5 3.5}svg.wl .r{stroke-linecap:round}"
    + "".join(
        f"svg.wl .l{i}{{stroke:var(--s{i});fill:none;stroke-width:1.8;stroke-linejoin:round}}"
        f"svg.wl .f{i}{{fill:var(--s{i})}}"
        f"svg.wl .h{i}{{fill:var(--paper);stroke:var(--s{i});stroke-width:1.6}}"
        for i in range(4)
    )
)

Number = float | int | None


# Words and numbers, made for people.


def plain(value: Any) -> str:
    """Text without the characters that XML forbids or that reorder what stands around them."""
    return _UNSAFE.sub("\ufffd", str(value))


_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def escape(value: Any) -> str:
    """Text that is safe between tags and inside quoted attributes, in HTML and in XML.

    >>> escape('<script>"a" & b</script>')
    '&lt;script&gt;&quot;a&quot; &amp; b&lt;/script&gt;'
    """
    return html.escape(plain(value), quote=True)


def real(value: Any) -> float | None:
    """The value as a finite float of sane size, or None when it has none."""
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(found) or abs(found) > 1e100:
        return None
    return 0.0 if abs(found) < 1e-100 else found


def number(value: Any, digits: int = 3) -> str:
    """A number as one would write it by hand, with about `digits` significant digits.

    >>> number(0.97812), number(1234567), number(12.345), number(-0.00000123), number(float("nan"))
    ('0.978', '1,234,567', '12.3', '−1.23e-6', '–')
    """
    found = real(value)
    if found is None:
        return MISSING
    if found == 0:
        return "0"
    size = abs(found)
    if size < 1e-4 or size >= 1e12 or (size >= 1e7 and found != int(found)):
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"
    elif found == int(found):
        text = f"{int(size):,}"
    else:
        places = max(0, digits - 1 - math.floor(math.log10(size)))
        text = f"{size:,.{places}f}"
        while size < 1 <= float(text) and places < 9:  # 0.9996 is not 1
            places += 1
            text = f"{size:,.{places}f}"
    return "−" + text if found < 0 else text


def percent(value: Any, digits: int = 1) -> str:
    """A share as a percentage that never rounds up to certainty.

    >>> percent(0.9781), percent(1), percent(0.99999), percent(0.00001)
    ('97.8\\xa0%', '100\\xa0%', '>99.9\\xa0%', '<0.1\\xa0%')
    """
    found = real(value)
    if found is None:
        return MISSING
    if found in (0, 1):
        return f"{100 * found:.0f}\xa0%"
    edge = 10.0**-digits
    if 0 < found < 1 and 100 * found > 100 - edge / 2:
        return f">{100 - edge:.{digits}f}\xa0%"
    if 0 < found < 1 and 100 * found < edge / 2:
        return f"<{edge:.{digits}f}\xa0%"
    return f"{100 * found:.{digits}f}\xa0%".replace("-", "−")


def compact(value: Any) -> str:
    """A count, shortened from a million on.

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
    found = real(value)
    if found is None:
        return MISSING
    for scale, unit in units:
        if abs(found) >= scale:
            text = f"{found / scale:.3g}" if abs(found) < 1000 * scale else f"{found / scale:,.0f}"
            return f"{text} {unit}"
    return number(found)


# Geometry.


def width_of(text: str, size: float = 12) -> float:
    """About how wide a text is drawn, in pixels."""
    ems = 0.0
    for letter in text:
        if unicodedata.combining(letter) or letter in "\u200d\ufe0f":
            continue
        if unicodedata.east_asian_width(letter) in "WF":
            ems += 1.1
        elif letter in " .,:;il|!'j":
            ems += 0.32
        elif letter in "mwMW@%":
            ems += 0.95
        else:
            ems += 0.7 if letter.isupper() else 0.61
    return ems * size


def fit(text: Any, room: float, size: float = 12) -> str:
    """The text, or as much of its beginning as `room` pixels hold, then an ellipsis."""
    text = " ".join(plain(text).split())
    if width_of(text, size) <= room:
        return text
    cut = text[: int(room / (0.25 * size)) + 1]
    while cut and width_of(cut + "…", size) > room:
        cut = cut[:-1]
    return cut.rstrip("\u200d ") + "…"


@dataclass(frozen=True)
class _Scale:
    """From values in [low, high] to pixels between start and end."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, 1e-100))
        share = (value - low) / (high - low)
        return round(self.start + (self.end - self.start) * min(max(share, -0.02), 1.02), 1)

    def ticks(self, count: int = 5) -> list[tuple[float, str]]:
        if self.log:
            return _log_ticks(self.low, self.high, count)
        step = _nice((self.high - self.low) / count)
        first, last = math.ceil(self.low / step - 1e-6), math.floor(self.high / step + 1e-6)
        places = max(0, -math.floor(math.log10(step) + 1e-9))
        values = [i * step for i in range(first, last + 1)]
        if places > 4 or max(map(abs, values), default=0) >= 1e7:
            return [(value, number(value)) for value in values]
        return [(value, f"{value:,.{places}f}".replace("-", "−")) for value in values]


def _nice(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10, 20) if step <= power * factor * 1.0000001)


def _log_ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    stride = max(1, math.ceil((last - first) / (count + 1)))
    values = [factor * 10.0**power for power in range(first, last + 1, stride) for factor in factors]
    return [
        (value, f"{value:g}" if 1e-4 <= value < 1e3 else number(value))
        for value in values
        if low * 0.999 <= value <= high * 1.001
    ]


def _range(values: Sequence[float], *, pad: float = 0.05, include: Sequence[float] = ()) -> tuple[float, float]:
    """An interval with some air around all values; never empty."""
    values = [*values, *include] or [0.0, 1.0]
    low, high = min(values), max(values)
    scale = max(abs(low), abs(high))
    if high - low <= 1e-9 * scale or scale == 0:
        air = 0.1 * scale or 0.5
        return low - air, high + air
    air = pad * (high - low)
    return (low if low in include else low - air), (high if high in include else high + air)


def _text(x: float, y: float, text: Any, classes: str = "", extra: str = "") -> str:
    name = f' class="{classes}"' if classes else ""
    return f'<text x="{x:g}" y="{y:g}"{name}{extra}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, classes: str) -> str:
    return f'<path class="{classes}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>'


def _rect(x: float, y: float, wide: float, tall: float, classes: str, extra: str = "", inner: str = "") -> str:
    box = f'x="{x:.4g}" y="{y:.4g}" width="{wide:.4g}" height="{tall:.4g}"'
    return (
        f'<rect class="{classes}" {box}{extra}>{inner}</rect>' if inner else f'<rect class="{classes}" {box}{extra}/>'
    )


def _dot(x: float, y: float, classes: str, radius: float = 3.6, inner: str = "") -> str:
    return f'<circle class="{classes}" cx="{x:g}" cy="{y:g}" r="{radius:g}">{inner}</circle>'


def _square(x: float, y: float, classes: str, half: float = 3.5, inner: str = "") -> str:
    return _rect(x - half, y - half, 2 * half, 2 * half, classes, inner=inner)


def _hint(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _svg(parts: Sequence[str], height: float, title: str, description: str, width: float = WIDTH) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wl" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}"><title>{escape(title or "Chart")}</title><desc>{escape(description)}</desc>'
        f'<style>{CSS}</style><rect class="paper" width="{width:g}" height="{height:g}" rx="6"/>{"".join(parts)}</svg>'
    )


def without_style(svg: str) -> str:
    """The chart without its own style sheet, for a page that already has `CSS`."""
    return svg.replace(f"<style>{CSS}</style>", "")


def _nothing(title: str, why: str = "Nothing to draw: no finite values.") -> str:
    return _svg([_text(WIDTH / 2, 44, why, "m c")], 80, title, why)


def _frame(
    x: _Scale,
    y: _Scale,
    x_label: str,
    y_label: str,
    x_ticks: list[tuple[float, str]] | None = None,
    top: float | None = None,
) -> list[str]:
    """Grid lines, tick labels and axis names of a plot; the name of y stands above it, level with the reader's eye."""
    parts = []
    for value, label in y.ticks():
        parts += [_line(x.start, y(value), x.end, y(value), "g"), _text(x.start - 7, y(value) + 4, label, "m s e")]
    parts.append(_line(x.start, y.start, x.end, y.start, "a"))
    marks = x.ticks() if x_ticks is None else x_ticks
    for value, label in marks:
        middle = min(x(value), WIDTH - 2 - width_of(label, 11) / 2)
        parts += [_line(x(value), y.start, x(value), y.start + 4, "a"), _text(middle, y.start + 17, label, "m s c")]
    parts.append(_text((x.start + x.end) / 2, y.start + 35, fit(x_label, x.end - x.start), "m c"))
    if y_label:
        parts.append(_text(8, y.end - 13 if top is None else top, fit(y_label, WIDTH - 16), "m"))
    return parts


def _gutter(ticks: list[tuple[float, str]]) -> float:
    return max(34.0, 14 + max((width_of(label, 11) for _, label in ticks), default=0))


def _legend(entries: Sequence[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """Samples and names in rows of the chart's width; returns the parts and the y below them."""
    parts, x = [], 8.0
    for sample, name in entries:
        name = fit(name, WIDTH - 60)
        if x > 8 and x + 30 + width_of(name) > WIDTH - 8:
            x, y = 8.0, y + 19
        parts += [f'<g transform="translate({x:g} {y:g})">{sample}</g>', _text(x + 31, y + 4, name)]
        x += 31 + width_of(name) + 18
    return parts, y + 16


def _thin(count: int, limit: int) -> list[int]:
    """At most `limit` indices spread evenly over range(count), both ends included."""
    if count <= limit:
        return list(range(count))
    return sorted({round(i * (count - 1) / (limit - 1)) for i in range(limit)})


# Charts.

_DASHES = ("d", "", "dd", "d")


def curves(
    series: Mapping[str, Sequence[Number]],
    steps: Sequence[Number] | None = None,
    *,
    title: str = "Learning curves",
    x_label: str = "step",
    y_label: str = "",
    log: bool | None = None,
    best: Number = None,
) -> str:
    """Several series over steps. None means "not measured here" and is bridged, NaN breaks the line.

    `log=None` takes a logarithmic axis when all values are positive and span more than a factor 50. `best` marks a
    step.
    """
    lines = {str(name): _points(values, steps) for name, values in list(series.items())[:8]}
    shown = [point for pieces in lines.values() for piece in pieces for point in piece]
    if log is None:
        log = bool(shown) and min(v for _, v in shown) > 0 and max(v for _, v in shown) > 50 * min(v for _, v in shown)
    if log:
        lines = {name: [[p for p in piece if p[1] > 0] for piece in pieces] for name, pieces in lines.items()}
        lines = {name: [piece for piece in pieces if piece] for name, pieces in lines.items()}
        shown = [point for pieces in lines.values() for piece in pieces for point in piece]
    if not shown:
        return _nothing(title)
    lines = {name: pieces for name, pieces in lines.items() if pieces}
    styles = _styles(list(lines))
    best_step = real(best)
    entries = [(_sample(style), name) for style, name in zip(styles, lines, strict=True)]
    if best_step is not None:
        mark = '<path class="a dd" d="M12.5 -7V7"/>' + _dot(12.5, 0, f"h{styles[-1] % 4}", 4)
        entries.append((mark, f"best: {x_label} {number(best_step)}"))
    parts, top = _legend(entries, 16)
    y = _y_scale([v for _, v in shown], top + (24 if y_label else 6), log)
    x = _Scale(*_range([s for s, _ in shown], pad=0), _gutter(y.ticks()), WIDTH - 14)
    parts += _frame(x, y, x_label, y_label + (" (log scale)" if log and y_label else ""))
    if best_step is not None and x.low <= best_step <= x.high:
        parts.append(_line(x(best_step), y.start, x(best_step), y.end, "a dd"))
    for style, pieces in zip(styles, lines.values(), strict=True):
        parts += [_path(piece, x, y, style) for piece in pieces]
    if best_step is not None:
        last = [point for piece in list(lines.values())[-1] for point in piece]
        step, value = min(last, key=lambda point: abs(point[0] - best_step))
        if abs(x(step) - x(best_step)) < 3:
            parts.append(_dot(x(step), y(value), f"h{styles[-1] % 4}", 4.5))
    said = "; ".join(f"{name} ends at {number(pieces[-1][-1][1])}" for name, pieces in lines.items())
    if best_step is not None:
        said += f"; best at {x_label} {number(best_step)}"
    return _svg(parts, y.start + 44, title, said)


def _points(values: Sequence[Number], steps: Sequence[Number] | None) -> list[list[tuple[float, float]]]:
    """Runs of (step, value) between NaNs, at most about 300 points in all."""
    values = list(values or ())
    places = list(range(len(values))) if steps is None else list(steps)[: len(values)]
    pairs = ((real(s), v) for s, v in zip(places, values, strict=False))
    known = [(s, v) for s, v in pairs if s is not None and v is not None]
    known = [known[i] for i in _thin(len(known), 300)]
    pieces: list[list[tuple[float, float]]] = [[]]
    for step, value in known:
        found = real(value)
        if found is None:
            pieces.append([])
        else:
            pieces[-1].append((step, found))
    return [piece for piece in pieces if piece]


def _y_scale(values: Sequence[float], top: float, log: bool, height: float = 190) -> _Scale:
    if not log:
        return _Scale(
            *_range(values, include=[0.0] if min(values) >= 0 and min(values) < 0.4 * max(values) else []),
            top + height,
            top,
        )
    low, high = min(values), max(values)
    return _Scale(low / 1.15, high * 1.15, top + height, top, log=True)


def _styles(names: list[str]) -> list[int]:
    """Train and validation look the same in every chart; other series take what is left."""
    fixed = {"train": 0, "validation": 1}
    free = (i for i in range(len(names) + 4) if i not in {fixed[name] for name in names if name in fixed})
    return [fixed[name] if name in fixed else next(free) for name in names]


def _sample(i: int) -> str:
    return f'<path class="l{i % 4} {_DASHES[i % 4]}" d="M0 0H25"/>'


def _path(piece: Sequence[tuple[float, float]], x: _Scale, y: _Scale, i: int) -> str:
    if len(piece) == 1:
        return _dot(x(piece[0][0]), y(piece[0][1]), f"f{i % 4}", 2.6)
    return f'<path class="l{i % 4} {_DASHES[i % 4]}" d="M{"L".join(f"{x(s):g} {y(v):g}" for s, v in piece)}"/>'


def confusion(
    matrix: Sequence[Sequence[Number]],
    classes: Sequence[Any] | None = None,
    *,
    title: str = "Confusion matrix",
    most: int = 20,
) -> str:
    """Counts of true (rows) against predicted class (columns), with percentages of each row.

    Of more than `most` classes, those with the most errors are drawn.
    """
    counts = [[real(v) or 0.0 for v in row] for row in matrix or ()]
    side = max([len(counts), *map(len, counts)], default=0)
    if not side:
        return _nothing(title, "Nothing to draw: no predictions.")
    counts = [row + [0.0] * (side - len(row)) for row in counts] + [[0.0] * side for _ in range(side - len(counts))]
    names = [str(c) for c in classes or ()][:side]
    names += [str(i) for i in range(len(names), side)]
    totals = [sum(row) for row in counts]
    kept = _worst(counts, most)
    cell = 62 if len(kept) <= 4 else 48 if len(kept) <= 6 else 34 if len(kept) <= 10 else 27
    gutter = 28 + min(118.0, max(width_of(names[i]) for i in kept))
    flat = max(width_of(names[i]) for i in kept) <= cell - 4
    head = 46.0 if flat else 34 + min(84.0, 0.72 * max(width_of(names[i]) for i in kept) + 10)
    edge = gutter + cell * len(kept)
    parts = [
        _text(gutter, 14, "predicted class", "m s"),
        _text(edge + 27, head - 8, "right", "m s c"),
        _text(0, 0, "true class", "m s c", f' transform="translate(13 {head + cell * len(kept) / 2:g}) rotate(-90)"'),
    ]
    for place, i in enumerate(kept):
        middle = gutter + cell * (place + 0.5)
        if flat:
            parts.append(_text(middle, head - 8, names[i], "c"))
        else:
            turn = f' transform="translate({middle + 3:g} {head - 7:g}) rotate(-45)"'
            parts.append(f"<g{turn}>{_text(0, 0, fit(names[i], 112))}{_hint(names[i])}</g>")
        row_y = head + cell * (place + 0.5) + 4
        parts.append(f"<g>{_text(gutter - 7, row_y, fit(names[i], 118), 'e')}{_hint(names[i])}</g>")
        parts.append(_text(edge + 27, row_y, percent(counts[i][i] / totals[i], 0) if totals[i] else MISSING, "m s c"))
        for column, j in enumerate(kept):
            hint = f"{names[i]} taken for {names[j]}: " if i != j else f"{names[i]} found: "
            parts.append(
                _cell(gutter + cell * column, head + cell * place, cell, counts[i][j], totals[i], i == j, hint)
            )
    for i in range(len(kept) + 1):
        at = cell * i
        parts += [
            _line(gutter, head + at, edge, head + at, "g"),
            _line(gutter + at, head, gutter + at, head + cell * len(kept), "g"),
        ]
    right = sum(counts[i][i] for i in range(side))
    said = f"{number(right)} of {number(sum(totals))} right over {side} classes"
    if len(kept) < side:
        said += f"; drawn are the {len(kept)} classes with the most errors"
    width = max(edge + 54, 200)
    return _svg(parts, head + cell * len(kept) + 12, title, said, width)


def _worst(counts: list[list[float]], most: int) -> list[int]:
    """The classes with the most errors made on them or towards them, in their own order."""
    side = len(counts)
    if side <= most:
        return list(range(side))
    wrong = [sum(counts[i]) + sum(row[i] for row in counts) - 2 * counts[i][i] for i in range(side)]
    return sorted(sorted(range(side), key=lambda i: (-wrong[i], i))[:most])


def _cell(x: float, y: float, cell: float, count: float, total: float, diagonal: bool, hint: str) -> str:
    if not count:
        return ""
    share = count / total if total else 0.0
    strength = share if diagonal else min(1.0, math.sqrt(max(share, 0.0)) * 1.1)
    strength = 0.08 + 0.84 * min(max(strength, 0.0), 1.0)
    on = " on" if strength > 0.55 else ""
    text = number(count) if count < 100_000 else f"{count / 1000:,.0f}k"
    small = width_of(text) > cell - 4
    middle = y + cell / 2
    fill = f' fill-opacity="{strength:.2f}"'
    parts = [_rect(x, y, cell, cell, f"f{0 if diagonal else 1}", fill)]
    if cell >= 34:
        parts.append(_text(x + cell / 2, middle, text, ("t c" if small else "c") + on))
        parts.append(_text(x + cell / 2, middle + 12, percent(share, 0).replace("\xa0", ""), "t c" + on))
    else:
        parts.append(_text(x + cell / 2, middle + 4, text, ("t c" if small else "s c") + on))
    return f"<g>{''.join(parts)}{_hint(f'{hint}{number(count)} ({percent(share)} of the row)')}</g>"


Bin = Mapping[str, Any]


def reliability(
    before: Sequence[Bin] | None, after: Sequence[Bin] | None = None, *, title: str = "Reliability diagram"
) -> str:
    """Share of right answers against stated confidence, before and after temperature, with the counts below.

    Whiskers are 95 % intervals of the last series: a point whose whisker meets the diagonal may be off by chance alone.
    """
    groups = [("before", _bins(before), 1), ("after", _bins(after), 0)]
    groups = [(name, bins, colour) for name, bins, colour in groups if bins]
    if not groups:
        return _nothing(title, "Nothing to draw: no bins with examples.")
    if len(groups) == 1:
        groups = [("measured", groups[0][1], 0)]
    samples = {
        0: '<path class="l0" d="M0 0H25"/><circle class="f0" cx="12.5" r="3.6"/>',
        1: '<path class="l1 d" d="M0 0H25"/><path class="h1" d="M9 -3.5h7v7h-7z"/>',
    }
    entries = [(samples[colour], "after temperature" if name == "after" else name) for name, _, colour in groups]
    parts, top = _legend([*entries, ('<path class="a dd" d="M0 0H25"/>', "perfect")], 16)
    y = _Scale(0, 1, top + 258, top + 26)
    least = min(0.9, math.floor(10 * min(c for _, bins, _ in groups for c, _, _ in bins)) / 10)
    x = _Scale(max(0.0, least), 1, 44, WIDTH - 14)
    ticks = [(i / 5, f"{20 * i}\xa0%") for i in range(6)]
    parts += [
        _line(x.start, y(v), x.end, y(v), "g") + _text(x.start - 6, y(v) + 4, label, "m s e") for v, label in ticks
    ]
    parts += [_text(8, top + 10, "share that was right", "m"), _line(x(x.low), y(x.low), x(1), y(1), "a dd")]
    for _, bins, colour in groups:
        parts += _reliability_line(bins, x, y, colour, whiskers=colour == 0)
    floor = y.start + 62
    parts += _count_bars(groups, x, y.start + 20, floor)
    parts += [_line(x.start, floor, x.end, floor, "a"), _text(x.start, y.start + 18, "examples", "m s")]
    marks = [(v, percent(v, 0)) for v, _ in x.ticks()]
    parts += [_text(x(v), floor + 16, label, "m s c" if v < 0.99 else "m s e") for v, label in marks]
    parts.append(_text((x.start + x.end) / 2, floor + 34, "stated confidence", "m c"))
    worst = max(groups[-1][1], key=lambda b: abs(b[0] - b[1]) * b[2])
    said = f"{len(groups[-1][1])} bins; the heaviest gap: of answers stated at {percent(worst[0])}, "
    said += f"{percent(worst[1])} were right"
    return _svg(parts, floor + 42, title, said)


def _bins(bins: Sequence[Bin] | None) -> list[tuple[float, float, float]]:
    found = [(real(b.get("confidence")), real(b.get("accuracy")), real(b.get("count"))) for b in bins or ()]
    kept = [(c, a, n) for c, a, n in found if c is not None and a is not None and n is not None and n > 0]
    return [kept[i] for i in _thin(len(kept), 60)]


def _reliability_line(
    bins: list[tuple[float, float, float]], x: _Scale, y: _Scale, colour: int, whiskers: bool
) -> list[str]:
    parts = []
    for confidence, accuracy, count in bins if whiskers else ():
        low, high = wilson(min(max(accuracy, 0.0), 1.0), count)
        parts.append(f'<path class="l0" stroke-opacity=".45" d="M{x(confidence):g} {y(low):g}V{y(high):g}"/>')
    most = max(count for _, _, count in bins)
    if len(bins) > 1:
        way = "L".join(f"{x(c):g} {y(a):g}" for c, a, _ in bins)
        parts.append(f'<path class="l{colour}{" d" if colour else ""}" stroke-opacity=".55" d="M{way}"/>')
    for confidence, accuracy, count in bins:
        hint = _hint(f"confidence {percent(confidence)}, right {percent(accuracy)}, {number(count)} examples")
        mark = _square if colour else _dot
        radius = 2.4 + 2.6 * math.sqrt(count / most)
        parts.append(mark(x(confidence), y(accuracy), "h1" if colour else "f0", radius, hint))
    return parts


def _count_bars(
    groups: list[tuple[str, list[tuple[float, float, float]], int]], x: _Scale, top: float, floor: float
) -> list[str]:
    """How many examples stand behind each point: thin bars, side by side."""
    most = max(n for _, bins, _ in groups for _, _, n in bins)
    parts = []
    for place, (_, bins, colour) in enumerate(groups):
        shift = (place - (len(groups) - 1) / 2) * 6 - 2.5
        for confidence, _, count in bins:
            tall = max(1.0, round((floor - top - 4) * count / most, 1))
            left = min(max(x(confidence) + shift, x.start), x.end - 5)
            bar = _rect(left, floor - tall, 5, tall, "h1" if colour else "f0", inner=_hint(f"{number(count)} examples"))
            parts.append(bar)
    return parts


def wilson(share: float, count: float, z: float = 1.96) -> tuple[float, float]:
    """The Wilson interval of a share measured on `count` examples.

    >>> low, high = wilson(0.978, 360)
    >>> round(low, 3), round(high, 3)
    (0.957, 0.989)
    """
    if count <= 0:
        return 0.0, 1.0
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def bars(
    items: Sequence[Mapping[str, Any]],
    *,
    title: str = "Importance",
    x_label: str = "",
    most: int = 20,
    show: Callable[[Any], str] = number,
) -> str:
    """Horizontal bars for items {name, value, spread}, in the order given; spread draws a whisker either side."""
    rows = [
        (str(item.get("name", "")), real(item.get("value")), abs(real(item.get("spread")) or 0.0))
        for item in list(items or ())[:most]
    ]
    rows = [(name, value, spread) for name, value, spread in rows if value is not None]
    if not rows:
        return _nothing(title)
    gutter = 16 + min(168.0, max(width_of(fit(name, 168)) for name, _, _ in rows))
    ends = [v - s for _, v, s in rows] + [v + s for _, v, s in rows]
    low, high = min(0.0, *ends), max(0.0, *ends)
    low, high = (low, high) if high - low > 0 else (0.0, 1.0)
    room = 14 + max(width_of(show(value)) for _, value, _ in rows)
    x = _Scale(low, high, gutter + (room if low < 0 else 0), WIDTH - 6 - room)
    parts, top, tall = [], 8, 25
    for i, (name, value, spread) in enumerate(rows):
        middle = top + tall * (i + 0.5)
        left, right = sorted((x(0), x(value)))
        whisker = ""
        if spread:
            a, b = x(value - spread), x(value + spread)
            ends = f"M{a:g} {middle - 4:g}v8M{b:g} {middle - 4:g}v8"
            whisker = f'<path class="a" stroke-width="1.4" d="M{a:g} {middle:g}H{b:g}{ends}"/>'
        hint = f"{name}: {show(value)}" + (f" ± {show(spread)}" if spread else "")
        at = (x(value - spread) - 7, "m s e") if value < 0 else (x(max(value + spread, 0)) + 7, "m s")
        bar = _rect(left, middle - 7, max(right - left, 1), 14, f"f{int(value < 0)}", ' fill-opacity=".85" rx="2"')
        label = _text(gutter - 8, middle + 4, fit(name, 168), "e")
        parts.append(f"<g>{label}{bar}{whisker}{_text(at[0], middle + 4, show(value), at[1])}{_hint(hint)}</g>")
    bottom = top + tall * len(rows)
    parts.append(_line(x(0), top, x(0), bottom, "a"))
    if x_label:
        parts.append(_text(gutter, bottom + 18, fit(x_label, WIDTH - gutter), "m s"))
    said = "; ".join(f"{name}: {show(value)}" for name, value, _ in rows[:5])
    return _svg(parts, bottom + (28 if x_label else 8), title, said)


def intervals(examples: Sequence[Mapping[str, Any]], *, title: str = "Predicted against true", limit: int = 150) -> str:
    """Predictions over true values for {true, predicted, low, high}: bars are intervals, hollow squares were missed."""
    found = [(real(e.get("true")), real(e.get("predicted")), _bounds(e)) for e in examples or ()]
    points = sorted(((t, p, bounds) for t, p, bounds in found if t is not None and p is not None), key=lambda p: p[:2])
    points = [points[i] for i in _thin(len(points), limit)]
    if not points:
        return _nothing(title)
    bounded = any(bounds for _, _, bounds in points)
    y_range = _range([v for true, predicted, bounds in points for v in (true, predicted, *bounds)], pad=0.03)
    x_range = _range([p[0] for p in points], pad=0.03)
    low, high = max(x_range[0], y_range[0]), min(x_range[1], y_range[1])
    entries = [('<circle class="f0" cx="12" r="3"/>', "prediction")]
    if bounded:
        entries = [
            (
                '<path class="l0" stroke-opacity=".5" d="M12 -7V7"/><circle class="f0" cx="12" r="3"/>',
                "inside the interval",
            ),
            (
                '<path class="l1" stroke-opacity=".6" d="M12 -7V7"/><path class="h1" d="M9 -3h6v6h-6z"/>',
                "outside",
            ),
        ]
    parts, top = _legend([*entries, ('<path class="a dd" d="M0 0H25"/>', "perfect")], 16)
    y = _Scale(*y_range, top + 312, top + 24)
    x = _Scale(*x_range, _gutter(y.ticks()), WIDTH - 14)
    parts += [*_frame(x, y, "true value", "predicted value"), _line(x(low), y(low), x(high), y(high), "a dd")]
    missed = 0
    for true, predicted, bounds in points:
        outside = bool(bounds) and not bounds[0] <= true <= bounds[1]
        missed += outside
        px, py = x(true), y(predicted)
        hint = f"true {number(true)}, predicted {number(predicted)}"
        bar = ""
        if bounds:
            way = f"M{px:g} {y(bounds[0]):g}V{y(bounds[1]):g}"
            bar = f'<path class="l{int(outside)}" stroke-opacity=".38" style="stroke-width:1.4" d="{way}"/>'
            hint += f", interval {number(bounds[0])} to {number(bounds[1])}"
        mark = _square(px, py, "h1", 3) if outside else _dot(px, py, "f0", 2.8)
        parts.append(f"<g>{bar}{mark}{_hint(hint)}</g>")
    said = f"{len(points)} examples" + (f", {missed} outside their interval" if bounded else "")
    return _svg(parts, y.start + 44, title, said)


def _bounds(example: Mapping[str, Any]) -> tuple[float, ...]:
    """Both ends of an interval, or nothing."""
    low, high = real(example.get("low")), real(example.get("high"))
    return () if low is None or high is None else (low, high)


def coverage(points: Sequence[Mapping[str, Any]], *, title: str = "Coverage by level") -> str:
    """Measured coverage over the level that was asked for, for {level, coverage} pairs."""
    found = [(real(p.get("level")), real(p.get("coverage"))) for p in points or ()]
    pairs = sorted((a, b) for a, b in found if a is not None and b is not None)
    pairs = [pairs[i] for i in _thin(len(pairs), 60)]
    if not pairs:
        return _nothing(title)
    low = max(0.0, min(0.9, math.floor(10 * min(min(p) for p in pairs) - 0.5) / 10))
    y, x = _Scale(low, 1, 250, 30), _Scale(low, 1, 48, WIDTH - 20)
    ticks = [(value, percent(value, 0)) for value, _ in x.ticks()]
    parts = _frame(x, y, "level asked for", "", x_ticks=ticks)
    parts = [part for part in parts if "m s e" not in part]
    parts += [_text(x.start - 7, y(value) + 4, label, "m s e") for value, label in ticks]
    parts += [_text(8, 16, "measured coverage", "m"), _line(x(low), y(low), x(1), y(1), "a dd")]
    if len(pairs) > 1:
        parts.append(f'<path class="l0" d="M{"L".join(f"{x(a):g} {y(b):g}" for a, b in pairs)}"/>')
    for level, measured in pairs:
        hint = _hint(f"level {percent(level)}: measured {percent(measured)}")
        parts.append(f'<circle class="f0" cx="{x(level):g}" cy="{y(measured):g}" r="3.6">{hint}</circle>')
    said = "; ".join(f"asked {percent(a)}, measured {percent(b)}" for a, b in pairs[:10])
    return _svg(parts, 294, title, said)


def histogram(
    values: Sequence[Number], *, bins: int = 20, title: str = "Histogram", x_label: str = "", y_label: str = "examples"
) -> str:
    """How often values fall into equal steps; zero is marked when it lies inside."""
    found = sorted(v for v in map(real, _listed(values)) if v is not None)
    if not found:
        return _nothing(title)
    low, high = _range(found, pad=0)
    bins = max(1, min(bins, 60))
    tally = [0] * bins
    for value in found:
        tally[min(bins - 1, max(0, int((value - low) / (high - low) * bins)))] += 1
    y = _Scale(0, max(tally) * 1.04, 212, 30)
    x = _Scale(low, high, _gutter(y.ticks()), WIDTH - 14)
    parts = _frame(x, y, x_label, y_label, top=16)
    wide = (x.end - x.start) / bins
    for i, count in enumerate(tally):
        if count:
            edges = f"{number(low + i * (high - low) / bins)} to {number(low + (i + 1) * (high - low) / bins)}"
            box = (x.start + i * wide + 0.5, y(count), max(wide - 1, 0.5), y.start - y(count))
            parts.append(_rect(*box, "f0", ' fill-opacity=".85"', _hint(f"{edges}: {count}")))
    if low < 0 < high:
        parts.append(_line(x(0), y.start, x(0), y.end, "a dd"))
    half = number(found[len(found) // 2])
    said = f"{len(found)} values from {number(found[0])} to {number(found[-1])}, half of them below {half}"
    return _svg(parts, 256, title, said)


def counts(
    tally: Mapping[Any, Number], *, title: str = "Counts", x_label: str = "", y_label: str = "examples", most: int = 16
) -> str:
    """Upright bars for named counts, each with its number on top; the rest of a long list is summed up."""
    pairs = [(str(name), real(value) or 0.0) for name, value in dict(tally or {}).items()]
    if not pairs:
        return _nothing(title)
    if len(pairs) > most:
        pairs = [*pairs[: most - 1], ("more", sum(value for _, value in pairs[most - 1 :]))]
    y = _Scale(0, max(1e-9, max(v for _, v in pairs)) * 1.1, 200, 30)
    left, right = 12.0, WIDTH - 12.0
    slot = min(72.0, (right - left) / len(pairs))
    first = (WIDTH - slot * len(pairs)) / 2
    parts = [_text(8, 16, y_label, "m"), _line(left, y.start, right, y.start, "a")]
    for i, (name, value) in enumerate(pairs):
        middle = first + slot * (i + 0.5)
        tall = max(0.0, y.start - y(value))
        bar = _rect(middle - 0.36 * slot, y.start - tall, 0.72 * slot, tall, "f0", ' fill-opacity=".85" rx="2"')
        label = _text(middle, y.start + 17, fit(name, slot - 2, 11), "m s c")
        top = _text(middle, y.start - tall - 5, number(value), "s c")
        parts.append(f"<g>{bar}{top}{label}{_hint(f'{name}: {number(value)}')}</g>")
    parts.append(_text(WIDTH / 2, y.start + 35, fit(x_label, WIDTH), "m c"))
    said = "; ".join(f"{name}: {number(value)}" for name, value in pairs)
    return _svg(parts, y.start + 44, title, said)


def heat_map(
    values: Sequence[Sequence[Number]], *, title: str = "Pixel importance", low: str = "least", high: str = "most"
) -> str:
    """A picture of numbers: the stronger the colour, the larger the value. Large maps shrink to 48 cells a side."""
    grid = _shrunk([_listed(row) for row in _listed(values)], 48)
    found = [v for row in grid for v in row if v is not None]
    if not found:
        return _nothing(title)
    bottom, top = min(found), max(found)
    tall, wide = len(grid), max(map(len, grid))
    cell = min(300 / max(tall, wide), 36.0)
    left, levels = round((WIDTH - cell * wide) / 2, 1), 16
    layers: dict[int, list[str]] = {}
    for i, row in enumerate(grid):
        for j, value in enumerate(row):
            if value is not None:
                share = (value - bottom) / (top - bottom) if top > bottom else 0.5
                layers.setdefault(round(share * levels), []).append(f"M{j} {i}h1v1h-1z")
    parts = [f'<g transform="translate({left:g} 8) scale({cell:.4g})" shape-rendering="crispEdges">']
    parts += [
        f'<path class="f0" fill-opacity="{level / levels:.3g}" d="{"".join(way)}"/>'
        for level, way in sorted(layers.items())
        if level
    ]
    parts.append("</g>")
    parts.append(f'<rect class="g" x="{left:g}" y="8" width="{cell * wide:g}" height="{cell * tall:g}"/>')
    base = 8 + cell * tall + 14
    middle = WIDTH / 2
    for i in range(8):
        parts.append(_rect(middle - 64 + 16 * i, base, 16, 9, "f0", f' fill-opacity="{i / 7:.2f}"'))
    parts.append(f'<rect class="g" x="{middle - 64:g}" y="{base:g}" width="128" height="9"/>')
    parts += [_text(middle - 70, base + 9, low, "m s e"), _text(middle + 70, base + 9, high, "m s")]
    _, i, j = max((value, -i, -j) for i, row in enumerate(grid) for j, value in enumerate(row) if value is not None)
    said = f"{tall} by {wide} cells; the strongest is in row {1 - i}, column {1 - j}"
    return _svg(parts, base + 20, title, said)


def _listed(values: Any) -> list[Any]:
    """A list from a list, a tuple, an array or a tensor."""
    if values is None:
        return []
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _shrunk(grid: list[list[Any]], limit: int) -> list[list[float | None]]:
    grid = [[real(v) for v in row] for row in grid if row]
    side = max([len(grid), *map(len, grid)], default=0)
    block = -(-side // limit) if side else 1
    if block <= 1:
        return grid
    wide = max(map(len, grid))
    small = []
    for top in range(0, len(grid), block):
        row = []
        for left in range(0, wide, block):
            inside = [v for line in grid[top : top + block] for v in line[left : left + block] if v is not None]
            row.append(sum(inside) / len(inside) if inside else None)
        small.append(row)
    return small


def scatter(
    x_values: Sequence[Number],
    y_values: Sequence[Number],
    *,
    title: str = "Scatter",
    x_label: str = "",
    y_label: str = "",
    limit: int = 800,
) -> str:
    """Points in a plane, at most `limit` of them drawn. Zero is marked when y lies on both sides of it."""
    pairs = [(real(a), real(b)) for a, b in zip(_listed(x_values), _listed(y_values), strict=False)]
    points = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not points:
        return _nothing(title)
    shown = [points[i] for i in _thin(len(points), limit)]
    y = _Scale(*_range([b for _, b in points]), 250, 30)
    x = _Scale(*_range([a for a, _ in points]), _gutter(y.ticks()), WIDTH - 14)
    parts = _frame(x, y, x_label, y_label, top=16)
    if y.low < 0 < y.high:
        parts.append(_line(x.start, y(0), x.end, y(0), "a"))
    dots = "".join(f"M{x(a):g} {y(b):g}h0" for a, b in shown)
    parts.append(f'<path class="l0 r" stroke-opacity=".75" style="stroke-width:5" d="{dots}"/>')
    said = f"{len(points)} points; {x_label or 'x'} from {number(min(points)[0])} to {number(max(points)[0])}"
    return _svg(parts, 294, title, said)
