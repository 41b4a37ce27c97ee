"""Heat map of a matrix."""

from collections.abc import Sequence
from typing import Any

from wonderland.understand import svg
from wonderland.understand.format import Number, real


def heat_map(
    values: Sequence[Sequence[Number]], *, title: str = "Pixel importance", low: str = "least", high: str = "most"
) -> str:
    """A matrix as colours: the stronger the colour, the larger the value. Large matrices are averaged to 48 cells per side."""
    grid = _downsampled([svg.as_list(row) for row in svg.as_list(values)], 48)
    values_in_grid = [v for row in grid for v in row if v is not None]
    if not values_in_grid:
        return svg.empty_chart(title)
    bottom, top = min(values_in_grid), max(values_in_grid)
    tall, wide = len(grid), max(map(len, grid))
    cell = min(300 / max(tall, wide), 36.0)
    left, levels = round((svg.WIDTH - cell * wide) / 2, 1), 16
    layers: dict[int, list[str]] = {}
    for i, row in enumerate(grid):
        for j, value in enumerate(row):
            if value is not None:
                share = (value - bottom) / (top - bottom) if top > bottom else 0.5
                layers.setdefault(round(share * levels), []).append(f"M{j} {i}h1v1h-1z")
    parts = [f'<g transform="translate({left:g} 8) scale({cell:.4g})" shape-rendering="crispEdges">']
    parts += [
        f'<path class="f0" fill-opacity="{level / levels:.3g}" d="{"".join(path)}"/>'
        for level, path in sorted(layers.items())
        if level
    ]
    parts.append("</g>")
    parts.append(f'<rect class="g" x="{left:g}" y="8" width="{cell * wide:g}" height="{cell * tall:g}"/>')
    base = 8 + cell * tall + 14
    middle = svg.WIDTH / 2
    for i in range(8):
        parts.append(svg.rect(middle - 64 + 16 * i, base, 16, 9, "f0", f' fill-opacity="{i / 7:.2f}"'))
    parts.append(f'<rect class="g" x="{middle - 64:g}" y="{base:g}" width="128" height="9"/>')
    parts += [svg.text(middle - 70, base + 9, low, "m s e"), svg.text(middle + 70, base + 9, high, "m s")]
    _, i, j = max((value, -i, -j) for i, row in enumerate(grid) for j, value in enumerate(row) if value is not None)
    description = f"{tall} by {wide} cells; the largest value is in row {1 - i}, column {1 - j}"
    return svg.chart(parts, base + 20, title, description)


def _downsampled(grid: list[list[Any]], limit: int) -> list[list[float | None]]:
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
