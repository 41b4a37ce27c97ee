"""Lines in a plot whose axes may both be logarithmic."""

from collections.abc import Mapping, Sequence

from wonderland.understand import svg
from wonderland.understand.format import number

DASHES = ("", "d", "dd", "")
Points = Sequence[tuple[float, float]]


def lines(
    series: Mapping[str, Points],
    *,
    title: str,
    x_label: str = "",
    y_label: str = "",
    log_x: bool = False,
    log_y: bool = False,
    marks: Mapping[str, Points] | None = None,
    whiskers: Mapping[str, Sequence[tuple[float, float, float]]] | None = None,
) -> str:
    """Named lines, at most four; `marks` draws points instead, `whiskers` a vertical bar (x, low, high) for each point."""
    bars = [bar for several in (whiskers or {}).values() for bar in several]
    shown = [point for points in (*series.values(), *(marks or {}).values()) for point in points]
    heights = [y for _, y in shown] + [end for _, low, high in bars for end in (low, high)]
    names = [*series, *(name for name in marks or {} if name not in series)]
    entries = [
        (
            _line(((0, 0), (25, 0)), i)
            if name in series
            else svg.dot(12.5, 0, f"h{i % 4}", 4.8 - 1.3 * (i - len(series))),
            name,
        )
        for i, name in enumerate(names)
    ]
    parts, top = svg.legend(entries, 16)
    top += 24 if y_label else 6
    if log_y:
        y = svg.Scale(min(heights) / 1.3, max(heights) * 1.3, top + 210, top, log=True)
    else:
        y = svg.Scale(*svg.span(heights), top + 210, top)
    wide = [x for x, _ in shown]
    between = (min(wide), max(wide)) if log_x else svg.span(wide, pad=0)
    x = svg.Scale(*between, svg.gutter(y.ticks()), svg.WIDTH - 18, log=log_x)
    parts += svg.axes(x, y, x_label, y_label)
    for i, name in enumerate(names):
        for at, low, high in (whiskers or {}).get(name, ()):
            parts.append(_line(((x(at), y(low)), (x(at), y(high))), i, solid=True))
        if name in series:
            parts.append(_line([(x(a), y(b)) for a, b in series[name]], i))
        # Later marks are smaller, so that none hides another.
        size = 4.8 - 1.3 * (i - len(series))
        parts += [svg.dot(x(a), y(b), f"h{i % 4}", size) for a, b in (marks or {}).get(name, ())]
    said = "; ".join(f"{name} ends at {number(points[-1][1])}" for name, points in series.items() if points)
    return svg.chart(parts, y.start + 44, title, said)


def _line(points: Points, i: int, solid: bool = False) -> str:
    way = "L".join(f"{a:g} {b:g}" for a, b in points)
    return f'<path class="l{i % 4} {"" if solid else DASHES[i % 4]}" d="M{way}"/>'
