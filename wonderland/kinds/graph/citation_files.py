"""Citation graphs as they are published: NAME.content with a line for each paper, NAME.cites with a line for each citation."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, read_bytes
from wonderland.kinds.graph.edge_lists import read_edge_list
from wonderland.kinds.graph.tables import Tables

CONTENT, CITES = ".content", ".cites"


def citation_files(path: Path) -> tuple[Path, Path] | None:
    """Both files of a folder that holds one pair of them, or of the file that is one of the two."""
    if path.is_dir():
        try:
            every = [each for each in path.iterdir() if each.suffix == CONTENT and each.with_suffix(CITES).is_file()]
        except OSError:
            return None
        return (every[0], every[0].with_suffix(CITES)) if len(every) == 1 else None
    pair = path.with_suffix(CONTENT), path.with_suffix(CITES)
    return pair if path.suffix in (CONTENT, CITES) and all(each.is_file() for each in pair) else None


def read_citations(path: Path) -> Tables:
    """Papers with their words and their class, and who cites whom.

    A line of NAME.content is an id, a number for each word, and the class; a line of NAME.cites is the cited paper and the citing one.
    """
    pair = citation_files(path)
    if pair is None:
        raise WonderlandError(f"{path} needs its companion: NAME.content and NAME.cites stand side by side.")
    content, cites = pair
    try:
        text = read_bytes(content, "graph_bytes").decode("utf-8", errors="replace")
        frame: Any = pd.read_csv(io.StringIO(text), sep=r"\s+", header=None, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise WonderlandError(
            f"{content} has lines of different lengths: each is an id, a number for each word, and the class."
        ) from error
    try:
        words = frame.iloc[:, 1:-1].to_numpy(np.float32)
    except ValueError as error:
        raise WonderlandError(
            f"{content} holds something other than numbers between the id and the class of a line."
        ) from error
    nodes = pd.DataFrame({"id": frame[0], "label": frame.iloc[:, -1]})
    edges, findings = read_edge_list(cites)
    return Tables(nodes, edges, None, content.stem, {"path": str(path.absolute())}, features=words, findings=findings)
