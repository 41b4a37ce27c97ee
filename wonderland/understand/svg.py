"""Elements of a chart as SVG text: colours, scales, marks, axes, legend and frame."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wonderland.understand.format import escape, number, plain

WIDTH = 420
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


def text_width(text: str, size: float = 12) -> float:
    """The approximate width of a text in pixels."""
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


def fit_text(text: Any, room: float, size: float = 12) -> str:
    """The text, cut to `room` pixels with an ellipsis."""
    text = " ".join(plain(text).split())
    if text_width(text, size) <= room:
        return text
    cut = text[: int(room / (0.25 * size)) + 1]
    while cut and text_width(cut + "…", size) > room:
        cut = cut[:-1]
    return cut.rstrip("\u200d ") + "…"


@dataclass(frozen=True)
class Scale:
    """Maps values in [low, high] to pixels between start and end, linearly or logarithmically."""

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
        """About `count` round values with their labels."""
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


def span(values: Sequence[float], *, pad: float = 0.05, include: Sequence[float] = ()) -> tuple[float, float]:
    """An interval around all values with padding; never empty."""
    values = [*values, *include] or [0.0, 1.0]
    low, high = min(values), max(values)
    scale = max(abs(low), abs(high))
    if high - low <= 1e-9 * scale or scale == 0:
        padding = 0.1 * scale or 0.5
        return low - padding, high + padding
    padding = pad * (high - low)
    return (low if low in include else low - padding), (high if high in include else high + padding)


def text(x: float, y: float, content: Any, classes: str = "", extra: str = "") -> str:
    """Text anchored at (x, y)."""
    name = f' class="{classes}"' if classes else ""
    return f'<text x="{x:g}" y="{y:g}"{name}{extra}>{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, classes: str) -> str:
    """A straight line."""
    return f'<path class="{classes}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>'


def rect(x: float, y: float, wide: float, tall: float, classes: str, extra: str = "", inner: str = "") -> str:
    """A box with its upper left corner at (x, y)."""
    box = f'<rect class="{classes}" x="{x:.4g}" y="{y:.4g}" width="{wide:.4g}" height="{tall:.4g}"{extra}'
    return f"{box}>{inner}</rect>" if inner else f"{box}/>"


def dot(x: float, y: float, classes: str, radius: float = 3.6, inner: str = "") -> str:
    """A round mark around (x, y)."""
    return f'<circle class="{classes}" cx="{x:g}" cy="{y:g}" r="{radius:g}">{inner}</circle>'


def square(x: float, y: float, classes: str, half: float = 3.5, inner: str = "") -> str:
    """A square mark around (x, y)."""
    return rect(x - half, y - half, 2 * half, 2 * half, classes, inner=inner)


def tooltip(content: str) -> str:
    """A tooltip."""
    return f"<title>{escape(content)}</title>"


def chart(parts: Sequence[str], height: float, title: str, description: str, width: float = WIDTH) -> str:
    """The whole SVG, with its style, its title, and a description for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wl" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}"><title>{escape(title or "Chart")}</title><desc>{escape(description)}</desc>'
        f'<style>{CSS}</style><rect class="paper" width="{width:g}" height="{height:g}" rx="6"/>{"".join(parts)}</svg>'
    )


def without_style(svg: str) -> str:
    """The chart without its own style sheet, for a page that already has `CSS`."""
    return svg.replace(f"<style>{CSS}</style>", "")


def empty_chart(title: str, why: str = "Nothing to draw: no finite values.") -> str:
    """A placeholder with the reason why there is no chart."""
    return chart([text(WIDTH / 2, 44, why, "m c")], 80, title, why)


def axes(
    x: Scale,
    y: Scale,
    x_label: str,
    y_label: str,
    x_ticks: list[tuple[float, str]] | None = None,
    y_ticks: list[tuple[float, str]] | None = None,
    top: float | None = None,
) -> list[str]:
    """Grid lines, tick labels and axis names of a plot; the name of y is above the plot."""
    parts = []
    for value, label in y.ticks() if y_ticks is None else y_ticks:
        parts += [line(x.start, y(value), x.end, y(value), "g"), text(x.start - 7, y(value) + 4, label, "m s e")]
    parts.append(line(x.start, y.start, x.end, y.start, "a"))
    for value, label in x.ticks() if x_ticks is None else x_ticks:
        middle = min(x(value), WIDTH - 2 - text_width(label, 11) / 2)
        parts += [line(x(value), y.start, x(value), y.start + 4, "a"), text(middle, y.start + 17, label, "m s c")]
    parts.append(text((x.start + x.end) / 2, y.start + 35, fit_text(x_label, x.end - x.start), "m c"))
    if y_label:
        parts.append(text(8, y.end - 13 if top is None else top, fit_text(y_label, WIDTH - 16), "m"))
    return parts


def gutter(ticks: list[tuple[float, str]]) -> float:
    """The width of the labels of the y axis."""
    return max(34.0, 14 + max((text_width(label, 11) for _, label in ticks), default=0))


def legend(entries: Sequence[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """A legend of (mark, name) entries, wrapped to the chart's width; returns the parts and the y below them."""
    parts, x = [], 8.0
    for sample, name in entries:
        name = fit_text(name, WIDTH - 60)
        if x > 8 and x + 30 + text_width(name) > WIDTH - 8:
            x, y = 8.0, y + 19
        parts += [f'<g transform="translate({x:g} {y:g})">{sample}</g>', text(x + 31, y + 4, name)]
        x += 31 + text_width(name) + 18
    return parts, y + 16


def subsample(count: int, limit: int) -> list[int]:
    """At most `limit` indices spread evenly over range(count), both ends included."""
    if count <= limit:
        return list(range(count))
    return sorted({round(i * (count - 1) / (limit - 1)) for i in range(limit)})


def as_list(values: Any) -> list[Any]:
    """A list from a list, a tuple, an array or a tensor."""
    if values is None:
        return []
    return list(values.tolist() if hasattr(values, "tolist") else values)
