"""Learning curves: several series over steps."""

from collections.abc import Mapping, Sequence

from wonderland.understand import svg
from wonderland.understand.format import Number, number, real

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
    most: float | None = None,
) -> str:
    """Several series over steps. None means "not measured at this step" and is skipped, NaN breaks the line.

    `log=None` chooses a logarithmic axis when all values are positive and span more than a factor 50. `best` marks a
    step; `most` is an upper limit of the axis, such as 1 for a share.
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
        return svg.empty_chart(title)
    lines = {name: pieces for name, pieces in lines.items() if pieces}
    styles = _styles(list(lines))
    best_step = real(best)
    entries = [(_sample(style), name) for style, name in zip(styles, lines, strict=True)]
    if best_step is not None:
        mark = '<path class="a dd" d="M12.5 -7V7"/>' + svg.dot(12.5, 0, f"h{styles[-1] % 4}", 4)
        entries.append((mark, f"best: {x_label} {number(best_step)}"))
    parts, top = svg.legend(entries, 16)
    y = _y_scale([v for _, v in shown], top + (24 if y_label else 6), log, most=most)
    x = svg.Scale(*svg.span([s for s, _ in shown], pad=0), svg.gutter(y.ticks()), svg.WIDTH - 14)
    parts += svg.axes(x, y, x_label, y_label + (" (log scale)" if log and y_label else ""))
    if best_step is not None and x.low <= best_step <= x.high:
        parts.append(svg.line(x(best_step), y.start, x(best_step), y.end, "a dd"))
    for style, pieces in zip(styles, lines.values(), strict=True):
        parts += [_path(piece, x, y, style) for piece in pieces]
    if best_step is not None:
        last = [point for piece in list(lines.values())[-1] for point in piece]
        step, value = min(last, key=lambda point: abs(point[0] - best_step))
        if abs(x(step) - x(best_step)) < 3:
            parts.append(svg.dot(x(step), y(value), f"h{styles[-1] % 4}", 4.5))
    description = "; ".join(f"{name} ends at {number(pieces[-1][-1][1])}" for name, pieces in lines.items())
    if best_step is not None:
        description += f"; best at {x_label} {number(best_step)}"
    return svg.chart(parts, y.start + 44, title, description)


def _points(values: Sequence[Number], steps: Sequence[Number] | None) -> list[list[tuple[float, float]]]:
    """Runs of (step, value) between NaNs, at most about 300 points in all."""
    values = list(values or ())
    places = list(range(len(values))) if steps is None else list(steps)[: len(values)]
    pairs = ((real(s), v) for s, v in zip(places, values, strict=False))
    known = [(s, v) for s, v in pairs if s is not None and v is not None]
    known = [known[i] for i in svg.subsample(len(known), 300)]
    pieces: list[list[tuple[float, float]]] = [[]]
    for step, value in known:
        y = real(value)
        if y is None:
            pieces.append([])
        else:
            pieces[-1].append((step, y))
    return [piece for piece in pieces if piece]


def _y_scale(
    values: Sequence[float], top: float, log: bool, height: float = 190, most: float | None = None
) -> svg.Scale:
    low, high = min(values), max(values)
    if not log:
        begin, end = svg.span(values, include=[0.0] if low >= 0 and low < 0.4 * high else [])
        return svg.Scale(begin, end if most is None or high > most else min(end, most), top + height, top)
    return svg.Scale(low / 1.15, high * 1.15, top + height, top, log=True)


def _styles(names: list[str]) -> list[int]:
    """Train and validation have the same style in every chart; other series take the remaining styles."""
    fixed = {"train": 0, "validation": 1}
    free = (i for i in range(len(names) + 4) if i not in {fixed[name] for name in names if name in fixed})
    return [fixed[name] if name in fixed else next(free) for name in names]


def _sample(i: int) -> str:
    return f'<path class="l{i % 4} {_DASHES[i % 4]}" d="M0 0H25"/>'


def _path(piece: Sequence[tuple[float, float]], x: svg.Scale, y: svg.Scale, i: int) -> str:
    if len(piece) == 1:
        return svg.dot(x(piece[0][0]), y(piece[0][1]), f"f{i % 4}", 2.6)
    return f'<path class="l{i % 4} {_DASHES[i % 4]}" d="M{"L".join(f"{x(s):g} {y(v):g}" for s, v in piece)}"/>'
