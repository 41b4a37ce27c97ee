"""Bar charts of named values and of counts, and histograms."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wonderland.understand import svg
from wonderland.understand.format import Number, number, real


def bars(
    items: Sequence[Mapping[str, Any]],
    *,
    title: str = "Importance",
    x_label: str = "",
    most: int = 20,
    show: Callable[[Any], str] = number,
) -> str:
    """Horizontal bars for items {name, value, spread}, in the order given; spread is drawn as a whisker."""
    rows = [
        (str(item.get("name", "")), real(item.get("value")), abs(real(item.get("spread")) or 0.0))
        for item in list(items or ())[:most]
    ]
    rows = [(name, value, spread) for name, value, spread in rows if value is not None]
    if not rows:
        return svg.empty_chart(title)
    gutter = 16 + min(168.0, max(svg.text_width(svg.fit_text(name, 168)) for name, _, _ in rows))
    ends = [v - s for _, v, s in rows] + [v + s for _, v, s in rows]
    low, high = min(0.0, *ends), max(0.0, *ends)
    low, high = (low, high) if high - low > 0 else (0.0, 1.0)
    room = 14 + max(svg.text_width(show(value)) for _, value, _ in rows)
    x = svg.Scale(low, high, gutter + (room if low < 0 else 0), svg.WIDTH - 6 - room)
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
        bar = svg.rect(left, middle - 7, max(right - left, 1), 14, f"f{int(value < 0)}", ' fill-opacity=".85" rx="2"')
        label = svg.text(gutter - 8, middle + 4, svg.fit_text(name, 168), "e")
        parts.append(
            f"<g>{label}{bar}{whisker}{svg.text(at[0], middle + 4, show(value), at[1])}{svg.tooltip(hint)}</g>"
        )
    bottom = top + tall * len(rows)
    parts.append(svg.line(x(0), top, x(0), bottom, "a"))
    if x_label:
        parts.append(svg.text(gutter, bottom + 18, svg.fit_text(x_label, svg.WIDTH - gutter), "m s"))
    description = "; ".join(f"{name}: {show(value)}" for name, value, _ in rows[:5])
    return svg.chart(parts, bottom + (28 if x_label else 8), title, description)


def counts(
    tally: Mapping[Any, Number], *, title: str = "Counts", x_label: str = "", y_label: str = "examples", most: int = 16
) -> str:
    """Vertical bars for named counts, each with its number on top; entries beyond `most` are summed in one bar."""
    pairs = [(str(name), real(value) or 0.0) for name, value in dict(tally or {}).items()]
    if not pairs:
        return svg.empty_chart(title)
    if len(pairs) > most:
        pairs = [*pairs[: most - 1], ("more", sum(value for _, value in pairs[most - 1 :]))]
    y = svg.Scale(0, max(1e-9, max(v for _, v in pairs)) * 1.1, 200, 30)
    left, right = 12.0, svg.WIDTH - 12.0
    slot = min(72.0, (right - left) / len(pairs))
    first = (svg.WIDTH - slot * len(pairs)) / 2
    parts = [svg.text(8, 16, y_label, "m"), svg.line(left, y.start, right, y.start, "a")]
    for i, (name, value) in enumerate(pairs):
        middle = first + slot * (i + 0.5)
        tall = max(0.0, y.start - y(value))
        bar = svg.rect(middle - 0.36 * slot, y.start - tall, 0.72 * slot, tall, "f0", ' fill-opacity=".85" rx="2"')
        label = svg.text(middle, y.start + 17, svg.fit_text(name, slot - 2, 11), "m s c")
        top = svg.text(middle, y.start - tall - 5, number(value), "s c")
        parts.append(f"<g>{bar}{top}{label}{svg.tooltip(f'{name}: {number(value)}')}</g>")
    parts.append(svg.text(svg.WIDTH / 2, y.start + 35, svg.fit_text(x_label, svg.WIDTH), "m c"))
    description = "; ".join(f"{name}: {number(value)}" for name, value in pairs)
    return svg.chart(parts, y.start + 44, title, description)


def histogram(
    values: Sequence[Number], *, bins: int = 20, title: str = "Histogram", x_label: str = "", y_label: str = "examples"
) -> str:
    """A histogram with bins of equal width; zero is marked where it lies in the range."""
    numbers = sorted(v for v in map(real, svg.as_list(values)) if v is not None)
    if not numbers:
        return svg.empty_chart(title)
    low, high = svg.span(numbers, pad=0)
    bins = max(1, min(bins, 60))
    tally = [0] * bins
    for value in numbers:
        tally[min(bins - 1, max(0, int((value - low) / (high - low) * bins)))] += 1
    y = svg.Scale(0, max(tally) * 1.04, 212, 30)
    x = svg.Scale(low, high, svg.gutter(y.ticks()), svg.WIDTH - 14)
    parts = svg.axes(x, y, x_label, y_label, top=16)
    wide = (x.end - x.start) / bins
    for i, count in enumerate(tally):
        if count:
            edges = f"{number(low + i * (high - low) / bins)} to {number(low + (i + 1) * (high - low) / bins)}"
            box = (x.start + i * wide + 0.5, y(count), max(wide - 1, 0.5), y.start - y(count))
            parts.append(svg.rect(*box, "f0", ' fill-opacity=".85"', svg.tooltip(f"{edges}: {count}")))
    if low < 0 < high:
        parts.append(svg.line(x(0), y.start, x(0), y.end, "a dd"))
    median = number(numbers[len(numbers) // 2])
    description = f"{len(numbers)} values from {number(numbers[0])} to {number(numbers[-1])}, median {median}"
    return svg.chart(parts, 256, title, description)
