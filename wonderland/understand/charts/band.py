"""A predicted curve with its band, and the rows it was learned from."""

from collections.abc import Sequence

from wonderland.understand import svg
from wonderland.understand.format import Number, number, real


def band(
    x_values: Sequence[Number],
    middle: Sequence[Number],
    low: Sequence[Number],
    high: Sequence[Number],
    points: Sequence[Sequence[Number]] = (),
    *,
    title: str = "Band",
    x_label: str = "",
    y_label: str = "",
    limit: int = 300,
) -> str:
    """A line between its low and high ends, over `points` (x, y); places where a value is not finite are left out."""
    rows = [tuple(map(real, row)) for row in zip(x_values, middle, low, high, strict=False)]
    rows = [row for row in rows if None not in row]
    known = [(a, b) for a, b in (tuple(map(real, point)) for point in points) if a is not None and b is not None]
    dots = [known[i] for i in svg.subsample(len(known), limit)]
    if len(rows) < 2:
        return svg.empty_chart(title)
    ends = [value for row in rows for value in row[1:] if value is not None] + [b for _, b in dots]
    entries = [
        ('<path class="l0" d="M0 0H25"/>', "prediction"),
        (svg.rect(0, -6, 25, 12, "f0", ' fill-opacity=".18"'), "band"),
    ]
    if dots:
        entries.append((svg.dot(12, 0, "h1", 2.6), "rows"))
    parts, top = svg.legend(entries, 16)
    y = svg.Scale(*svg.span(ends), top + 220, top + 24)
    x = svg.Scale(
        *svg.span([row[0] for row in rows if row[0] is not None], pad=0), svg.gutter(y.ticks()), svg.WIDTH - 14
    )
    parts += svg.axes(x, y, x_label, y_label)
    upper = [f"{x(row[0]):g} {y(row[3]):g}" for row in rows]  # pyright: ignore[reportArgumentType]
    lower = [f"{x(row[0]):g} {y(row[2]):g}" for row in reversed(rows)]  # pyright: ignore[reportArgumentType]
    line = [f"{x(row[0]):g} {y(row[1]):g}" for row in rows]  # pyright: ignore[reportArgumentType]
    parts.append(f'<path class="f0" fill-opacity=".18" d="M{"L".join(upper + lower)}Z"/>')
    parts += [svg.dot(x(a), y(b), "h1", 2.2) for a, b in dots if x.low <= a <= x.high]
    parts.append(f'<path class="l0" d="M{"L".join(line)}"/>')
    first, last = rows[0], rows[-1]
    description = (
        f"{x_label or 'x'} from {number(first[0])} to {number(last[0])}: from {number(first[1])} to {number(last[1])}"
    )
    return svg.chart(parts, y.start + 44, title, description)
