"""Contour plots of functions of two variables, with paths and points."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from wonderland.understand import svg
from wonderland.understand.format import number

Points = Sequence[tuple[float, float]]
CELLS, SHADES = 96, 14
MARKS = ("dot", "square", "cross", "ring")


def plane(
    f: Callable[[Tensor], Tensor],
    x_span: tuple[float, float],
    y_span: tuple[float, float],
    *,
    title: str,
    paths: Mapping[str, Sequence[Points]] | None = None,
    marks: Mapping[str, Points] | None = None,
    names: tuple[str, str] = ("x₁", "x₂"),
    even: bool = False,
) -> str:
    """A contour plot of f, from (n, 2) to (n); darker is lower. `paths` are lines with a dot at each step, `marks` points.

    Levels are quantiles of the values, so that each band has the same area; with `even` they are equally spaced.
    """
    parts, top = svg.legend(
        [(_path([(0, 0), (12, 0), (25, 0)], i + 1, 2.2), name) for i, name in enumerate(paths or {})]
        + [(_mark(12.5, 0, i), name) for i, name in enumerate(marks or {})],
        16,
    )
    top = top + 4 if paths or marks else 10.0
    x = svg.Scale(*x_span, 34, svg.WIDTH - 14)
    tall = min(max((y_span[1] - y_span[0]) / (x_span[1] - x_span[0]), 0.55), 1.0) * (x.end - x.start)
    y = svg.Scale(*y_span, top + tall, top)
    grid = _grid(f, x_span, y_span)
    levels = _levels(grid, even)
    parts += [_shades(grid, levels, x, y), *_level_lines(grid, levels, x, y)]
    parts.append(svg.rect(x.start, y.end, x.end - x.start, y.start - y.end, "a"))
    for value, label in y.ticks():
        parts.append(svg.text(x.start - 6, y(value) + 4, label, "m s e"))
    for value, label in x.ticks():
        parts.append(svg.text(x(value), y.start + 16, label, "m s c"))
    parts.append(svg.text((x.start + x.end) / 2, y.start + 33, f"{names[0]} across, {names[1]} upward", "m c"))
    # Paths are clipped to the frame.
    frame = f'<clipPath id="frame"><rect x="{x.start:g}" y="{y.end:g}" width="{x.end - x.start:g}" height="{tall:g}"/></clipPath>'
    parts += [frame, '<g clip-path="url(#frame)">']
    for i, several in enumerate((paths or {}).values()):
        for points in several:
            inside = [_place(point, x, y) for point in points]
            # Earlier paths have larger dots, so that all stay visible.
            parts.append(_path(inside, i + 1, 1.9 + 0.8 * (len(paths or {}) - i - 1) if len(several) < 9 else 1))
    parts.append("</g>")
    for i, points in enumerate((marks or {}).values()):
        parts += [_mark(x(a), y(b), i) for a, b in points]
    low, high = grid.min().item(), grid.max().item()
    return svg.chart(parts, y.start + 42, title, f"{title}; values from {number(low)} to {number(high)}")


def _grid(f: Callable[[Tensor], Tensor], x_span: tuple[float, float], y_span: tuple[float, float]) -> Tensor:
    """Values on (CELLS + 1, CELLS + 1) points; rows go upward."""
    across = torch.linspace(*x_span, CELLS + 1, dtype=torch.float64)
    upward = torch.linspace(*y_span, CELLS + 1, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(across, upward, indexing="xy"), -1)
    with torch.no_grad():
        return f(points.reshape(-1, 2)).reshape(CELLS + 1, CELLS + 1)


def _levels(grid: Tensor, even: bool) -> list[float]:
    if even:
        return torch.linspace(grid.min().item(), grid.max().item(), SHADES + 1).tolist()[1:-1]
    return torch.quantile(grid.flatten(), torch.linspace(0, 1, SHADES + 1, dtype=grid.dtype)[1:-1]).tolist()


def _shades(grid: Tensor, levels: list[float], x: svg.Scale, y: svg.Scale) -> str:
    """Shaded cells; neighbours of the same shade in a row are one rectangle."""
    middle = (grid[:-1, :-1] + grid[1:, :-1] + grid[:-1, 1:] + grid[1:, 1:]) / 4
    shade = torch.bucketize(middle, torch.tensor(levels, dtype=grid.dtype)).tolist()
    outlines: dict[int, list[str]] = {}
    for row, cells in enumerate(shade):
        start = 0
        for column in range(1, CELLS + 1):
            if column == CELLS or cells[column] != cells[start]:
                outlines.setdefault(cells[start], []).append(f"M{start} {row}h{column - start}v1H{start}z")
                start = column
    wide, tall = (x.end - x.start) / CELLS, (y.start - y.end) / CELLS
    drawn = "".join(
        f'<path class="f0" fill-opacity="{0.62 * (1 - level / SHADES):.3f}" d="{"".join(outline)}"/>'
        for level, outline in sorted(outlines.items())
    )
    return (
        f'<g transform="translate({x.start:g} {y.start:g}) scale({wide:.5g} {-tall:.5g})" shape-rendering="crispEdges">'
        f"{drawn}</g>"
    )


def _level_lines(grid: Tensor, levels: list[float], x: svg.Scale, y: svg.Scale) -> list[str]:
    """Level lines by marching squares: in each cell, segments between the points where the level crosses its sides."""
    values = grid.tolist()
    wide, tall = (x.end - x.start) / CELLS, (y.start - y.end) / CELLS
    parts = []
    for level in levels:
        outline = []
        for row in range(CELLS):
            for column in range(CELLS):
                ends = _crossings(values, row, column, level)
                for (a, b), (c, d) in zip(ends[::2], ends[1::2], strict=False):
                    outline.append(
                        f"M{x.start + a * wide:.1f} {y.start - b * tall:.1f}L{x.start + c * wide:.1f} {y.start - d * tall:.1f}"
                    )
        parts.append(f'<path class="a" stroke-opacity=".4" stroke-width=".6" d="{"".join(outline)}"/>')
    return parts


def _crossings(values: list[list[float]], row: int, column: int, level: float) -> list[tuple[float, float]]:
    """The points where a level crosses the sides of a cell, counterclockwise from the lower side."""
    corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1)]
    heights = [values[b][a] - level for a, b in corners]
    crossings = []
    for k in range(4):
        start, end = heights[k], heights[(k + 1) % 4]
        if (start < 0) != (end < 0):
            share = start / (start - end)
            (a, b), (c, d) = corners[k], corners[(k + 1) % 4]
            crossings.append((a + share * (c - a), b + share * (d - b)))
    return crossings


def _place(point: tuple[float, float], x: svg.Scale, y: svg.Scale) -> tuple[float, float]:
    """Pixels of a point that may lie outside of the scales, which themselves would clamp it to the edge."""
    across = x.start + (x.end - x.start) * (point[0] - x.low) / (x.high - x.low)
    upward = y.start + (y.end - y.start) * (point[1] - y.low) / (y.high - y.low)
    keep = lambda pixel: max(-1e5, min(1e5, pixel)) if math.isfinite(pixel) else 1e5  # noqa: E731
    return round(keep(across), 1), round(keep(upward), 1)


def _path(points: Points, i: int, radius: float) -> str:
    outline = "L".join(f"{a:g} {b:g}" for a, b in points)
    dots = "".join(f"M{a:g} {b:g}h0" for a, b in points)
    return (
        f'<path class="l{i % 4}" d="M{outline}" style="stroke-width:1.4"/>'
        f'<path class="l{i % 4} r" style="stroke-width:{2 * radius:g}" d="{dots}"/>'
    )


def _mark(a: float, b: float, i: int) -> str:
    kind = MARKS[i % 4]
    if kind == "dot":
        return f'<circle cx="{a:g}" cy="{b:g}" r="4.6" style="fill:var(--s2);stroke:var(--paper);stroke-width:1.3"/>'
    if kind == "square":
        return f'<rect x="{a - 4.2:g}" y="{b - 4.2:g}" width="8.4" height="8.4" style="fill:var(--s1);stroke:var(--paper);stroke-width:1.3"/>'
    if kind == "cross":
        outline = f"M{a - 4:g} {b - 4:g}l8 8m0 -8l-8 8"
        return (
            f'<path d="{outline}" style="stroke:var(--paper);stroke-width:4.6;fill:none"/>'
            f'<path d="{outline}" style="stroke:var(--s3);stroke-width:2.4;fill:none"/>'
        )
    return svg.dot(a, b, "h1", 4.2)
