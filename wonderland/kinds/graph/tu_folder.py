"""Folders in the form of the TU collection of graph sets: NAME_A.txt with pairs of node numbers, and a file for each thing known."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, read_bytes
from wonderland.kinds.graph.tables import Tables

ADJACENCY = "_A.txt"


def tu_name(folder: Path) -> str | None:
    """The name of the set that a folder holds, where it is of this form."""
    try:
        names = {path.name for path in folder.iterdir() if path.is_file()}
    except OSError:
        return None
    stems = [name.removesuffix(ADJACENCY) for name in names if name.endswith(ADJACENCY)]
    return stems[0] if len(stems) == 1 and f"{stems[0]}_graph_indicator.txt" in names else None


def read_tu_folder(folder: Path) -> Tables:
    """Nodes, edges and graphs; labels become categories, attributes numbers."""
    name = tu_name(folder)
    assert name is not None

    def lines(ending: str) -> np.ndarray | None:
        path = folder / f"{name}_{ending}.txt"
        return _numbers(path) if path.is_file() else None

    pairs, indicator = lines("A"), lines("graph_indicator")
    assert pairs is not None
    assert indicator is not None
    if pairs.shape[1] != 2:
        raise WonderlandError(f"{name}{ADJACENCY} has {pairs.shape[1]} numbers in a line, where an edge has two ends.")
    count = len(indicator)
    if len(pairs) and not (pairs.min() >= 1 and pairs.max() <= count):
        wrong = int(pairs[(pairs < 1) | (pairs > count)][0])
        raise WonderlandError(
            f"{name}{ADJACENCY} names node {wrong}, but {name}_graph_indicator.txt has {count:,} nodes, numbered from 1."
        )
    nodes = pd.DataFrame({"id": _text(np.arange(1, count + 1)), "graph": _text(indicator[:, 0])})
    edges = pd.DataFrame({"source": _text(pairs[:, 0]), "target": _text(pairs[:, 1])})
    graphs = pd.DataFrame({"id": _text(np.unique(indicator[:, 0]))})
    for frame, of in ((nodes, "node"), (edges, "edge"), (graphs, "graph")):
        _add(frame, lines(f"{of}_labels"), lines(f"{of}_attributes"), of, name)
    return Tables(nodes, edges, graphs, name, {"path": str(folder.absolute())}, directed=False)


def _add(frame: pd.DataFrame, labels: np.ndarray | None, attributes: np.ndarray | None, of: str, name: str) -> None:
    for ending, values in (("labels", labels), ("attributes", attributes)):
        if values is not None and len(values) != len(frame):
            raise WonderlandError(f"{name}_{of}_{ending}.txt has {len(values):,} lines for {len(frame):,} {of}s.")
    if of == "graph":
        if labels is not None:
            frame["label"] = _text(labels[:, 0])
        elif attributes is not None:
            frame["target"] = attributes[:, 0]
        return
    for values, noun in ((labels, "label"), (attributes, "attribute")):
        for k in range(0 if values is None else values.shape[1]):
            column = values[:, k]  # pyright: ignore[reportOptionalSubscript]
            frame[f"{noun} {k + 1}"] = (
                column if noun == "attribute" else [f"{of} label {each:g}" for each in column.tolist()]
            )


def _numbers(path: Path) -> np.ndarray:
    text = read_bytes(path, "graph_bytes").decode("utf-8", errors="replace")
    try:
        rows: Any = pd.read_csv(_buffer(text), header=None, dtype=np.float64, skip_blank_lines=True).to_numpy()
    except pd.errors.EmptyDataError:
        return np.zeros((0, 2))
    except ValueError as error:
        raise WonderlandError(f"{path.name} holds something other than numbers set apart by commas.") from error
    if not np.isfinite(rows).all():
        line = int(np.flatnonzero(~np.isfinite(rows).all(1))[0]) + 1
        raise WonderlandError(f"{path.name}: line {line} has no number where one belongs.")
    return rows


def _buffer(text: str) -> Any:
    import io

    return io.StringIO(text)


def _text(numbers: np.ndarray) -> list[str]:
    return [str(each) for each in numbers.astype(np.int64).tolist()]
