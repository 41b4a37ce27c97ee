"""Glimpse: a bounded look at a source, shared by all kinds of data, and its contents, read once and on demand."""

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.bundled import BUNDLED, load_bundled
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.data.read import check_names, read_file
from wonderland.data.reading import Reading, Written
from wonderland.data.sql import is_url, read_url, recorded_url
from wonderland.data.text.layouts import TextTable, read_text_table
from wonderland.data.text.recognise import ColumnRoles, recognise


@dataclass
class Contents:
    """What a source holds: a frame, or images with labels, or a folder; `target` is the target column where it is known."""

    name: str
    origin: dict[str, Any]
    frame: pd.DataFrame | None = None
    images: tuple[np.ndarray, Any] | None = None
    folder: Path | None = None
    target: str | None = None
    findings: list[Finding] = field(default_factory=list)


class Glimpse:
    """A bounded look at a source, from which each kind of data decides whether it can open it. Everything is read at most once.

    `path` is the file or folder, None for data in memory and bundled sets; `suffix` its ending in small letters.
    """

    SAMPLE = 1 << 16

    def __init__(self, source: Any, *, recorded: bool = False, reading: Reading | None = None):
        self.source = source
        self.reading = reading or Reading()  # what the user says about how the file is written
        self.recorded = (
            recorded  # read from a run's config.json, not given by the user: nothing is imported by its name
        )
        self.path = existing_path(source) if isinstance(source, str | Path) and not is_url(source) else None
        self.suffix = "" if self.path is None else self.path.suffix.lower()
        self._roles: dict[Any, ColumnRoles] = {}
        self._text_tables: dict[Any, TextTable | None] = {}

    @property
    def name(self) -> str:
        """What the source is called."""
        return (
            self.path.name
            if self.path is not None
            else recorded_url(self.source)[:80]
            if is_url(self.source)
            else str(self.source)[:80]
            if isinstance(self.source, str | Path)
            else self._named()
        )

    def _named(self) -> str:
        try:
            return self.contents.name
        except WonderlandError:  # an object that only its kind can read
            return type(self.source).__name__

    @functools.cached_property
    def samples(self) -> tuple[bytes, bytes, bytes]:
        """Bytes from the start, the middle and the end of a file; empty for anything else."""
        if self.path is None or not self.path.is_file():
            return b"", b"", b""
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            start = file.read(self.SAMPLE)
            file.seek(max(0, size // 2 - self.SAMPLE // 2))
            middle = file.read(self.SAMPLE)
            file.seek(max(0, size - self.SAMPLE))
            return start, middle, file.read(self.SAMPLE)

    @functools.cached_property
    def plain_text(self) -> str | None:
        """How a path holds text: "plain", "labelled" (lines) or "folders" (of classes); None for tables and all else."""
        if self.path is None:
            return None
        layout = recognise(self.path)
        if layout == "plain" and self.reading.delimiter is not None and self.frame is not None:
            return None  # prose has no delimiter
        return layout

    def text_table(self, target: str | None = None, *, any_label: bool = False) -> TextTable | None:
        """A file of texts and an answer for each, in whatever layout; None for anything else."""
        key = (target, any_label)
        if key not in self._text_tables:
            known = self.path is not None and self.path.is_file()
            table = read_text_table(self.path, self.reading, target=target, any_label=any_label) if known else None  # pyright: ignore
            self._text_tables[key] = table
        return self._text_tables[key]

    @functools.cached_property
    def contents(self) -> Contents:
        """The contents, read once."""
        return read_source(self.source, reading=self.reading)

    @functools.cached_property
    def frame(self) -> pd.DataFrame | None:
        """The rows of a table; None where the source holds none, or cannot be read as one (`contents` says why)."""
        if self.path is not None and self.path.is_dir():
            return None
        try:
            return self.contents.frame
        except WonderlandError:
            return None

    @functools.cached_property
    def images(self) -> tuple[np.ndarray, Any] | None:
        """Arrays of pixels and their labels, for data in memory and bundled sets; None for anything else."""
        try:
            return None if self.path is not None else self.contents.images
        except WonderlandError:
            return None

    def roles(self, drop: Collection[str] = (), keep: Collection[str | None] = ()) -> ColumnRoles:
        """Which columns of the table are free text, which are other features, and which carry no information."""
        key = (frozenset(drop), frozenset(keep))
        if key not in self._roles:
            assert self.frame is not None
            self._roles[key] = ColumnRoles.of(self.frame, drop, keep)
        return self._roles[key]


def existing_path(source: str | Path) -> Path | None:
    """The file or folder of this name, if there is one. A folder without data, such as the run folder of `fit iris --out iris`,
    does not hide the bundled set of its name."""
    path = Path(source).expanduser()
    try:
        if not path.exists():
            return None
        if str(source) in BUNDLED and path.is_dir():
            names = [entry.name for entry in path.iterdir() if not entry.name.startswith(".")]
            return path if names and "config.json" not in names else None
    except (OSError, ValueError):
        return None
    return path


def read_source(source: Any, as_text: Collection[str] = (), reading: Reading | None = None) -> Contents:
    """Read a source of any type, without deciding what its columns mean."""
    if isinstance(source, Written):
        if source.contents is None:
            source.contents = read_source(source.source, {*as_text, *source.as_text}, source.reading)
        return source.contents
    if isinstance(source, str) and is_url(source):
        frame, name = read_url(source, None if reading is None else reading.sheet)
        return Contents(name, {"url": recorded_url(source)}, frame=frame)
    if isinstance(source, str | Path):
        return _from_path_or_name(source, as_text, reading)
    if isinstance(source, Dataset):
        raise WonderlandError("This is already an open dataset. Give the source it was opened from.")
    if isinstance(source, pd.DataFrame):
        return _from_frame(source, "frame")
    if hasattr(source, "collect") and hasattr(source, "collect_schema"):
        source = source.collect()
    if type(source).__module__.split(".")[0] == "polars" and hasattr(source, "get_columns"):
        return _from_frame(
            pd.DataFrame({column.name: _from_polars(column) for column in source.get_columns()}), "frame"
        )
    if isinstance(source, Mapping):
        return _from_frame(_from_dict(source), "columns")
    if isinstance(source, tuple) and len(source) == 2:
        return _from_arrays(*source)
    if isinstance(source, np.ndarray) or hasattr(source, "__array__"):
        return _from_arrays(source, None)
    raise WonderlandError(
        f"A source of type {type(source).__name__} is not known. Give a path, a frame, a dict of columns, "
        "arrays (X, y), or a bundled name."
    )


def _from_path_or_name(source: str | Path, as_text: Collection[str], reading: Reading | None) -> Contents:
    path = existing_path(source)
    if path is not None:
        origin: dict[str, Any] = {"path": str(path.absolute())}
        if path.is_dir():
            return Contents(path.resolve().name, origin, folder=path)
        frame, findings = read_file(path, as_text, reading)
        if len(frame) == 0:
            raise WonderlandError(f"{path} has no rows. Add rows, or give another file.")
        return Contents(path.name, origin, frame=frame, findings=findings)
    if str(source) not in BUNDLED:
        raise unknown_file(Path(source).expanduser(), BUNDLED)
    name = str(source)
    data = load_bundled(name)
    if isinstance(data, tuple):
        return Contents(name, {"bundled": name}, images=data)
    return Contents(name, {"bundled": name}, frame=data, target=BUNDLED[name].target)


def unknown_file(path: Path, names: Collection[str]) -> WonderlandError:
    """The error for a source that is neither a file nor a bundled name."""
    known = ", ".join(sorted(names))
    try:
        neighbours = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        neighbours = []
    hint = nearest(str(path), names) or nearest(path.name, neighbours)
    return WonderlandError(
        f"There is no file or folder {path}, and no bundled set of that name.{hint} Bundled are {known}."
    )


def _from_frame(frame: pd.DataFrame, name: str) -> Contents:
    if isinstance(frame.columns, pd.MultiIndex):
        raise WonderlandError("The frame has more than one level of column names. Flatten them first.")
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    frame.index = pd.RangeIndex(len(frame))
    check_names(list(frame.columns), f"The {name}")
    if len(frame) == 0:
        raise WonderlandError(f"The {name} has no rows." if name == "frame" else "The columns have no rows.")
    return Contents(name, {"memory": name}, frame=frame)


def _from_dict(source: Mapping[Any, Any]) -> pd.DataFrame:
    columns = {str(name): cells if isinstance(cells, pd.Series) else pd.Series(cells) for name, cells in source.items()}
    sizes = {name: len(cells) for name, cells in columns.items()}
    for name, size in sizes.items():
        first = next(iter(sizes))
        if size != sizes[first]:
            raise WonderlandError(
                f"Column {name!r} has {counted(size, 'row', 'rows')}, but column {first!r} has {sizes[first]}."
            )
    return pd.DataFrame({name: cells.reset_index(drop=True) for name, cells in columns.items()})


def _from_arrays(x: Any, y: Any) -> Contents:
    """Arrays (X, y): a table when X has two axes, images when it has three or four and holds bytes."""
    if isinstance(x, pd.DataFrame) or (hasattr(x, "get_columns") and type(x).__module__.startswith("polars")):
        frame = read_source(x).frame
        assert frame is not None
    else:
        try:
            x = np.asarray(x)
        except ValueError as error:
            raise WonderlandError("The rows of X have different lengths. Give a list of rows of one length.") from error
        if x.ndim in (3, 4):
            return Contents("arrays", {"memory": "arrays"}, images=(x, y))
        if x.ndim not in (1, 2):
            raise WonderlandError(
                f"X has {x.ndim} axes. Give (rows, columns) for a table or (n, h, w[, c]) for images."
            )
        x = x[:, None] if x.ndim == 1 else x
        frame = pd.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])])
        frame = frame.infer_objects() if x.dtype == object else frame
    if y is None:
        return _from_frame(frame, "arrays")
    name = str(getattr(y, "name", None) or "target")
    cells = pd.Series(np.asarray(y).reshape(-1) if not isinstance(y, pd.Series) else y.array)
    if len(cells) != len(frame):
        raise WonderlandError(f"X has {counted(len(frame), 'row', 'rows')} and y has {len(cells)}.")
    if name in frame.columns:
        raise WonderlandError(f"X has a column named {name!r}, the name of y. Rename one of them.")
    contents = _from_frame(frame.assign(**{name: cells.to_numpy()}), "arrays")
    contents.target = name
    return contents


def _from_polars(column: Any) -> Any:
    """A polars column as an array, without pyarrow."""
    if "List" in str(column.dtype) or "Struct" in str(column.dtype):
        raise WonderlandError(
            f"Column {column.name!r} holds nested values (lists or objects). Unpack it into plain columns."
        )
    if "Categorical" in str(column.dtype) or "Enum" in str(column.dtype):
        return pd.Categorical(column.to_list())
    if str(column.dtype) == "Boolean":
        return pd.array(column.to_list(), dtype="boolean")
    return column.to_numpy()
