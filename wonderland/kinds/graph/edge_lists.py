"""Lists of edges as text: two ids in a line, and a weight; large ones say what memory they take before they are read."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.memory import available_bytes
from wonderland.core.unpack import read_unpacked
from wonderland.data.dataset import Finding
from wonderland.ops.kernel_cache import say

BYTES_OF_EDGE = 400  # what an edge of a file takes at most while it is read, both directions, text and numbers
LARGE_FILE = 50 << 20  # bytes, from where the memory is said before a file is read


def memory_needed(path: Path) -> list[Finding]:
    """Of a large file of edges: about how many there are, and how much memory reading them takes. Said at once, before it is read."""
    size = path.stat().st_size
    if size < LARGE_FILE or path.suffix.lower() not in (".csv", ".tsv", ".edgelist", ".edges", ".txt"):
        return []
    with path.open("rb") as file:
        sample = file.read(1 << 20)
    edges = max(1, size * sample.count(b"\n") // len(sample))
    gib, free = edges * BYTES_OF_EDGE / 2**30, available_bytes() / 2**30
    text = f"{path.name} holds about {edges:,} edges: reading them takes up to {gib:.1f} GiB of memory, and {free:.1f} GiB are free."
    say(text, once=f"size of {path}")
    return [Finding("size", path.name, edges, text)]


def read_edge_list(path: Path) -> tuple[Any, list[Finding]]:
    """Lines of two ids, and a weight if there is one; what follows # or % is left out."""
    findings = memory_needed(path)
    try:
        text = read_unpacked(path, "graph_bytes").decode("utf-8")
    except UnicodeDecodeError as error:
        raise WonderlandError(f"{path} is not UTF-8 text.") from error
    if "{" in text[:4096]:
        text = ATTRIBUTES.sub(_weight_of, text)
    frame = _regular(text)
    return _line_by_line(path, text) if frame is None else frame, findings


ATTRIBUTES = re.compile(r"\{[^{}\n]*\}[ \t]*$", re.MULTILINE)
WEIGHT = re.compile(r"""['"]weight['"]\s*:\s*([-+.\w]+)""")


def _weight_of(attributes: re.Match[str]) -> str:
    """What networkx writes after the two ids, {'weight': 2.0}, as the weight alone; nothing where there is none."""
    weight = WEIGHT.search(attributes.group())
    return weight.group(1) if weight else ""


def _regular(text: str) -> Any:
    """The edges of a text whose lines have two cells, or three with a number, set apart alike; None for any other."""
    start = text[:4096]
    separator = "," if "," in start else ";" if ";" in start else r"\s+"
    try:
        frame = pd.read_csv(
            io.StringIO(text), sep=separator, header=None, comment="#", dtype=str, keep_default_na=False, quoting=3
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError):
        return None
    if frame.shape[1] not in (2, 3) or bool(frame.isna().to_numpy().any()) or "%" in start:
        return None
    frame = frame.apply(lambda cells: cells.str.strip())
    if (
        bool((frame == "").to_numpy().any())
        or frame.iloc[:, :2].apply(lambda cells: cells.str.contains(r"[\s,;]", regex=True)).any().any()
    ):
        return None
    edges = pd.DataFrame({"source": frame[0], "target": frame[1]})
    if frame.shape[1] == 3:
        edges["weight"] = pd.to_numeric(frame[2], errors="coerce")
        if not np.isfinite(edges["weight"]).all():
            return None
    return edges


def _line_by_line(path: Path, text: str) -> Any:
    """The edges of a text of any form; the first line that is none is named."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = re.split(r"[\s,;]+", line.split("#", 1)[0].split("%", 1)[0].strip())
        if cells == [""]:
            continue
        if len(cells) < 2:
            raise WonderlandError(f"{path}: line {number} names one node, where an edge has two.")
        rows.append((number, cells))
    widths = {len(cells) for _, cells in rows}
    weighted = widths == {3} and all(_number(cells[2]) for _, cells in rows)
    for number, cells in rows:
        if len(cells) > 2 and not weighted:
            raise WonderlandError(
                f"{path}: line {number} has {len(cells)} cells. A list of edges has two ids in each line, and a weight if "
                "every line has one."
            )
    frame = pd.DataFrame({"source": [c[0] for _, c in rows], "target": [c[1] for _, c in rows]}, dtype=object)
    if weighted:
        frame["weight"] = [float(cells[2]) for _, cells in rows]
    return frame


def _number(cell: str) -> bool:
    try:
        return np.isfinite(float(cell)).item()
    except ValueError:
        return False
