"""Tables for a terminal and for Markdown alike."""

from collections.abc import Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """Aligned columns: the first `left` of them as text, the others as numbers.

    >>> print(table(("way", "error"), [("central", 1e-10), ("reverse", 0)]))
    | way     | error |
    |---------|------:|
    | central | 1e-10 |
    | reverse |     0 |
    """
    cells = [[_cell(entry) for entry in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "| "
        + " | ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        + " |"
        for row in cells
    ]
    rule = "|" + "|".join("-" * (w + 1) + ("-" if i < left else ":") for i, w in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _cell(entry: Any) -> str:
    if isinstance(entry, float):
        return f"{entry:.3g}"
    return f"{entry:,}" if isinstance(entry, int) else str(entry)
