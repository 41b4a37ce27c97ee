"""The confusion matrix."""

import math
from collections.abc import Sequence
from typing import Any

from wonderland.understand import svg
from wonderland.understand.format import MISSING, Number, number, percent, real


def confusion(
    matrix: Sequence[Sequence[Number]],
    classes: Sequence[Any] | None = None,
    *,
    title: str = "Confusion matrix",
    most: int = 20,
) -> str:
    """Counts of true (rows) against predicted class (columns), with percentages of each row.

    With more than `most` classes, those with the most errors are drawn.
    """
    counts = [[real(v) or 0.0 for v in row] for row in matrix or ()]
    side = max([len(counts), *map(len, counts)], default=0)
    if not side:
        return svg.empty_chart(title, "Nothing to draw: no predictions.")
    counts = [row + [0.0] * (side - len(row)) for row in counts] + [[0.0] * side for _ in range(side - len(counts))]
    names = [str(c) for c in classes or ()][:side]
    names += [str(i) for i in range(len(names), side)]
    totals = [sum(row) for row in counts]
    kept = _worst(counts, most)
    cell = 62 if len(kept) <= 4 else 48 if len(kept) <= 6 else 34 if len(kept) <= 10 else 27
    gutter = 28 + min(118.0, max(svg.text_width(names[i]) for i in kept))
    flat = max(svg.text_width(names[i]) for i in kept) <= cell - 4
    head = 46.0 if flat else 34 + min(84.0, 0.72 * max(svg.text_width(names[i]) for i in kept) + 10)
    edge = gutter + cell * len(kept)
    parts = [
        svg.text(gutter, 14, "predicted class", "m s"),
        svg.text(edge + 27, head - 8, "recall", "m s c"),
        svg.text(
            0, 0, "true class", "m s c", f' transform="translate(13 {head + cell * len(kept) / 2:g}) rotate(-90)"'
        ),
    ]
    for place, i in enumerate(kept):
        middle = gutter + cell * (place + 0.5)
        if flat:
            parts.append(svg.text(middle, head - 8, names[i], "c"))
        else:
            turn = f' transform="translate({middle + 3:g} {head - 7:g}) rotate(-45)"'
            parts.append(f"<g{turn}>{svg.text(0, 0, svg.fit_text(names[i], 112))}{svg.tooltip(names[i])}</g>")
        row_y = head + cell * (place + 0.5) + 4
        parts.append(f"<g>{svg.text(gutter - 7, row_y, svg.fit_text(names[i], 118), 'e')}{svg.tooltip(names[i])}</g>")
        parts.append(
            svg.text(edge + 27, row_y, percent(counts[i][i] / totals[i], 0) if totals[i] else MISSING, "m s c")
        )
        for column, j in enumerate(kept):
            hint = f"true {names[i]}, predicted {names[j]}: "
            parts.append(
                _cell(gutter + cell * column, head + cell * place, cell, counts[i][j], totals[i], i == j, hint)
            )
    for i in range(len(kept) + 1):
        at = cell * i
        parts += [
            svg.line(gutter, head + at, edge, head + at, "g"),
            svg.line(gutter + at, head, gutter + at, head + cell * len(kept), "g"),
        ]
    correct = sum(counts[i][i] for i in range(side))
    description = f"{number(correct)} of {number(sum(totals))} correct over {side} classes"
    if len(kept) < side:
        description += f"; drawn are the {len(kept)} classes with the most errors"
    width = max(edge + 54, 200)
    return svg.chart(parts, head + cell * len(kept) + 12, title, description, width)


def _worst(counts: list[list[float]], most: int) -> list[int]:
    """The classes with the most false negatives and false positives, in their original order."""
    side = len(counts)
    if side <= most:
        return list(range(side))
    wrong = [sum(counts[i]) + sum(row[i] for row in counts) - 2 * counts[i][i] for i in range(side)]
    return sorted(sorted(range(side), key=lambda i: (-wrong[i], i))[:most])


def _cell(x: float, y: float, cell: float, count: float, total: float, diagonal: bool, hint: str) -> str:
    if not count:
        return ""
    share = count / total if total else 0.0
    strength = share if diagonal else min(1.0, math.sqrt(max(share, 0.0)) * 1.1)
    strength = 0.08 + 0.84 * min(max(strength, 0.0), 1.0)
    on = " on" if strength > 0.55 else ""
    text = number(count) if count < 100_000 else f"{count / 1000:,.0f}k"
    small = svg.text_width(text) > cell - 4
    middle = y + cell / 2
    fill = f' fill-opacity="{strength:.2f}"'
    parts = [svg.rect(x, y, cell, cell, f"f{0 if diagonal else 1}", fill)]
    if cell >= 34:
        parts.append(svg.text(x + cell / 2, middle, text, ("t c" if small else "c") + on))
        parts.append(svg.text(x + cell / 2, middle + 12, percent(share, 0).replace("\xa0", ""), "t c" + on))
    else:
        parts.append(svg.text(x + cell / 2, middle + 4, text, ("t c" if small else "s c") + on))
    return f"<g>{''.join(parts)}{svg.tooltip(f'{hint}{number(count)} ({percent(share)} of the row)')}</g>"
