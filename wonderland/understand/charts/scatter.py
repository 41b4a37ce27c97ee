"""Scatter plots."""

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
    """A scatter plot of at most `limit` points. Zero is marked where y has both signs."""
    pairs = [(real(a), real(b)) for a, b in zip(svg.as_list(x_values), svg.as_list(y_values), strict=False)]
    points = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not points:
        return svg.empty_chart(title)
    shown = [points[i] for i in svg.subsample(len(points), limit)]
    y = svg.Scale(*svg.span([b for _, b in points]), 250, 30)
    x = svg.Scale(*svg.span([a for a, _ in points]), svg.gutter(y.ticks()), svg.WIDTH - 14)
    parts = svg.axes(x, y, x_label, y_label, top=16)
    if y.low < 0 < y.high:
        parts.append(svg.line(x.start, y(0), x.end, y(0), "a"))
    dots = "".join(f"M{x(a):g} {y(b):g}h0" for a, b in shown)
    parts.append(f'<path class="l0 r" stroke-opacity=".75" style="stroke-width:5" d="{dots}"/>')
    description = f"{len(points)} points; {x_label or 'x'} from {number(min(points)[0])} to {number(max(points)[0])}"
    return svg.chart(parts, 294, title, description)
