"""Points in a plane."""

from collections.abc import Sequence

from wonderland.understand import svg
from wonderland.understand.format import Number, number, real


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
    pairs = [(real(a), real(b)) for a, b in zip(svg.listed(x_values), svg.listed(y_values), strict=False)]
    points = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not points:
        return svg.nothing(title)
    shown = [points[i] for i in svg.thin(len(points), limit)]
    y = svg.Scale(*svg.span([b for _, b in points]), 250, 30)
    x = svg.Scale(*svg.span([a for a, _ in points]), svg.gutter(y.ticks()), svg.WIDTH - 14)
    parts = svg.axes(x, y, x_label, y_label, top=16)
    if y.low < 0 < y.high:
        parts.append(svg.line(x.start, y(0), x.end, y(0), "a"))
    dots = "".join(f"M{x(a):g} {y(b):g}h0" for a, b in shown)
    parts.append(f'<path class="l0 r" stroke-opacity=".75" style="stroke-width:5" d="{dots}"/>')
    said = f"{len(points)} points; {x_label or 'x'} from {number(min(points)[0])} to {number(max(points)[0])}"
    return svg.chart(parts, 294, title, said)
