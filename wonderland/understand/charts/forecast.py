"""A forecast: recent values, forecasts, and the intervals around them."""

from collections.abc import Mapping, Sequence
from typing import Any

from wonderland.understand import svg
from wonderland.understand.format import number, real


def forecast(
    history: Sequence[float | None],
    pieces: Sequence[Mapping[str, Any]],
    labels: Sequence[Sequence[Any]] = (),
    *,
    title: str = "Forecast",
) -> str:
    """Values (None where unknown) with forecasts that begin at a place: {begin, forecast, low, high}; labels are (place, text)."""
    known = [real(value) for value in history]
    shown = [value for value in known if value is not None]
    bands, ends = [], [len(known)]
    for piece in pieces:
        rows = list(zip(*(map(real, piece.get(name) or ()) for name in ("forecast", "low", "high")), strict=False))
        begin = int(piece.get("begin") or 0)
        ends.append(begin + len(rows))
        shown += [value for row in rows for value in row if value is not None]
        bands.append((begin, rows))
    if not shown:
        return svg.empty_chart(title)
    entries = [
        ('<path class="l0" d="M0 0H25"/>', "values"),
        ('<path class="l1 d" d="M0 0H25"/>', "forecast"),
        ('<rect class="f1" fill-opacity=".18" y="-6" width="25" height="12"/>', "interval"),
    ]
    parts, top = svg.legend(entries, 16)
    y = svg.Scale(*svg.span(shown), top + 200, top + 10)
    x = svg.Scale(0, max(1, max(ends) - 1), svg.gutter(y.ticks()), svg.WIDTH - 14)
    # The labels at both ends would not fit in: those between them are shown.
    ticks = [(float(place), str(text)) for place, text in labels][1:-1] or None
    parts += svg.axes(x, y, "", "", x_ticks=ticks)
    for begin, rows in bands:
        sides = [
            (begin + i, low, high) for i, (_, low, high) in enumerate(rows) if low is not None and high is not None
        ]
        if sides:
            upper = "L".join(f"{x(i):g} {y(high):g}" for i, _, high in sides)
            lower = "L".join(f"{x(i):g} {y(low):g}" for i, low, _ in reversed(sides))
            parts.append(f'<path class="f1" fill-opacity=".18" d="M{upper}L{lower}Z"/>')
    for run in runs([(i, value) for i, value in enumerate(known)]):
        parts.append(f'<path class="l0" d="M{"L".join(f"{x(i):g} {y(value):g}" for i, value in run)}"/>')
    for begin, rows in bands:
        for run in runs([(begin + i, middle) for i, (middle, _, _) in enumerate(rows)]):
            mark = f'<path class="l1 d" d="M{"L".join(f"{x(i):g} {y(value):g}" for i, value in run)}"/>'
            parts.append(mark if len(run) > 1 else svg.dot(x(run[0][0]), y(run[0][1]), "f1"))
    last = bands[-1][1][-1][0] if bands and bands[-1][1] else None
    description = f"{len(shown)} values" + (f"; the last forecast is {number(last)}" if last is not None else "")
    return svg.chart(parts, y.start + 30, title, description)


def runs(points: Sequence[tuple[int, float | None]]) -> list[list[tuple[int, float]]]:
    """Points without the unknown ones, broken there."""
    pieces: list[list[tuple[int, float]]] = [[]]
    for place, value in points:
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((place, value))
    return [piece for piece in pieces if piece]
