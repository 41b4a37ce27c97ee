"""Attention weights of one head as a matrix of tokens."""

from collections.abc import Sequence

from wonderland.understand import svg
from wonderland.understand.format import Number, percent, real


def attention(
    tokens: Sequence[str], weights: Sequence[Sequence[Number]], *, title: str = "Attention", most: int = 32
) -> str:
    """Rows are queries, columns are keys; the stronger the colour, the larger the weight.

    >>> attention(["a", "b"], [[1.0, 0.0], [0.3, 0.7]]).startswith("<svg")
    True
    """
    names = [str(token) for token in tokens][:most]
    grid = [[real(value) or 0.0 for value in list(row)[: len(names)]] for row in list(weights)[: len(names)]]
    if not names or not any(map(any, grid)):
        return svg.empty_chart(title)
    room = min(70.0, max(16.0, 8 + max(svg.text_width(svg.fit_text(name, 56, 9.5), 9.5) for name in names)))
    cell = min(20.0, (svg.WIDTH - room - 10) / len(names))
    left, top = room, room
    parts = []
    for i, name in enumerate(names):
        label = svg.fit_text(name, room - 6, 9.5)
        parts.append(svg.text(left - 5, top + cell * (i + 0.5) + 3.5, label, "t e m"))
        x, y = left + cell * (i + 0.5) + 3.5, top - 5
        parts.append(svg.text(x, y, label, "t m", f' transform="rotate(-90 {x:g} {y:g})"'))
    for i, row in enumerate(grid):
        for j, value in enumerate(row):
            if value > 0.004:
                tooltip = svg.tooltip(f"{names[i]} attends to {names[j]}: {percent(value)}")
                shade = f' fill-opacity="{min(1.0, value) ** 0.7:.3g}"'
                parts.append(svg.rect(left + cell * j, top + cell * i, cell, cell, "f0", shade, tooltip))
    side = cell * len(names)
    parts.append(f'<rect class="g" x="{left:g}" y="{top:g}" width="{side:g}" height="{side:g}"/>')
    largest = (
        max((value, -i, -j) for i, row in enumerate(grid) for j, value in enumerate(row) if i)
        if len(grid) > 1
        else (grid[0][0], 0, 0)
    )
    description = f"{len(names)} tokens; the largest weight is from {names[-largest[1]]} to {names[-largest[2]]}, {percent(largest[0])}"
    return svg.chart(parts, top + side + 8, title, description, width=left + side + 10)
