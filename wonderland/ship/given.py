"""New data as they are given to a run: with what is said about their file, and the column that names their rows."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.core.threads import on_threads
from wonderland.data.encoder import Encoder
from wonderland.data.reading import READING, Reading, Written

FEW_ROWS = 256
SAME_DATA = (
    "This is the data that the run was fitted to: rows it was trained on are among these, so the figures are too good. "
    "The report has the figures of rows that were kept for the test."
)


def written(encoder: Encoder, source: Any, options: dict[str, Any], id: str | None) -> tuple[Any, dict[str, Any]]:
    """The source together with the options of a table file and the column to keep, and the other options."""
    reading = Reading.of(options)
    rest = {name: value for name, value in options.items() if name not in READING}
    if reading == Reading() and id is None:
        return source, rest
    if not encoder.reads_tables or source is None:
        named = "id" if id is not None else next(name for name in options if name in READING)
        raise WonderlandError(f"{named} is for tables, and this run reads none: leave it out.")
    return Written(source, reading, () if id is None else (id,)), rest


def with_id(table: pd.DataFrame, given: Written, name: str) -> None:
    """Put a column of the new data first in a table of predictions."""
    contents = given.contents
    frame = None if contents is None else contents.frame
    if frame is None or name not in frame.columns:
        known = [] if frame is None else [str(column) for column in frame.columns]
        raise WonderlandError(f"There is no column {name!r} in the new data (given as id).{nearest(name, known)}")
    if len(frame) != len(table):
        raise WonderlandError(f"Some rows have no prediction, so column {name!r} cannot name the others: leave id out.")
    if name in table:
        raise WonderlandError(f"The predictions have a column {name!r} of their own: rename it in the new data.")
    table.insert(0, name, frame[name].to_numpy())


@contextmanager
def one_thread(rows: int | None) -> Iterator[None]:
    """Compute on one thread for few rows: on a busy machine, handing small pieces to other threads takes much longer than they do."""
    few = rows is not None and rows <= FEW_ROWS
    with on_threads(1) if few else nullcontext():
        yield


def is_recorded(source: Any, origin: dict[str, Any]) -> bool:
    """Whether a source is the file that a run was fitted to."""
    if not isinstance(source, str | Path):
        return False
    if "path" in origin:
        return str(Path(source).expanduser().absolute()) == origin["path"]
    return str(source) == origin.get("bundled", origin.get("url"))
