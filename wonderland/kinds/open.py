"""The front door of data: a path, a frame, arrays or a bundled name becomes a Dataset."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.bundled import BUNDLED, load_bundled
from wonderland.data.dataset import Dataset, Finding, counted
from wonderland.data.folders import refuse_tables, scan
from wonderland.data.read import check_names, read_file, unknown_file
from wonderland.kinds.table.table import Table
from wonderland.kinds.corpus.corpus import Corpus
from wonderland.kinds.pairs.pairs import Pairs
from wonderland.data.text.recognise import Roles, recognise
from wonderland.kinds.text.texts import Texts, text_column


@dataclass
class Source:
    """What a source turned out to be: a frame, or images with labels, or a folder."""

    name: str
    origin: dict[str, Any]
    frame: pd.DataFrame | None = None
    images: tuple[np.ndarray, Any] | None = None
    folder: Path | None = None
    target: str | None = None
    findings: list[Finding] = field(default_factory=list)


def open(
    source: Any,
    target: str | None = None,
    *,
    task: str | None = None,
    group: str | None = None,
    time: str | None = None,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
    strict: bool = False,
    size: int | None = None,
    test: Any = None,
    kind: str | None = None,
    lines: bool = False,
    column: str | None = None,
) -> Dataset:
    """Open a table or a set of images, infer what its columns and its target are, and say what was repaired.

    `source` is a path (CSV, TSV, Parquet, JSON lines, a folder of images), a pandas or polars frame, a dict of columns,
    arrays `(X, y)`, or the name of a bundled set. `target` and `task` are inferred when they are not given. Rows of one
    `group` never meet in two parts of a split; with `time`, the past is learned from and the future is tested on. Columns
    in `keep` stay although they look like the target in disguise or like identifiers; columns in `drop` go. `strict` stops
    at the first fault instead of repairing it. `size` is the side of images. `test` is a second source with the same
    columns whose rows are kept for the test.

    Plain text (a text file, a folder of text files, a table whose only column is sentences) is a corpus to learn a language
    from; with `lines` each line is a document of its own. Texts with classes are a table of free text and a target, lines that
    begin with a label, or class folders of text files; two columns of sentences are pairs. Identifiers and columns that are
    always the same may stand beside them. `column` names the text. `kind` ("corpus", "text", "pairs", "table") decides where
    the data do not say it.

    >>> data = open("iris")
    >>> len(data), data.task, data.classes
    (150, 'multiclass', ['setosa', 'versicolor', 'virginica'])
    """
    text = _text(source, kind, task, lines, column, strict, test)
    if text is not None:
        _only_text(
            text, {"target": target, "group": group, "time": time, "keep": keep, "drop": drop, "size": size}, test
        )
        return text
    found = look(source)
    keep, drop = _names("keep", keep), _names("drop", drop)
    options = {
        "target": target,
        "task": task,
        "group": group,
        "time": time,
        "keep": keep,
        "drop": drop,
        "strict": strict,
    }
    found.origin["options"] = {key: value for key, value in options.items() if value}
    roles = (
        Roles()
        if found.frame is None or kind == "table"
        else Roles.of(found.frame, drop, {*keep, target or found.target})
    )
    # Nobody has said what the columns are, or how rows belong together: text may be all there is.
    unsaid = kind is None and test is None and not (target or group or time)
    if found.frame is not None and (
        kind == "pairs" or task == "translation" or (unsaid and len(roles.free) == 2 and not roles.others)
    ):
        said = [one for one in found.findings if one.kind != "header"] + (roles.left_out() if unsaid else [])
        return Pairs.from_frame(
            found.frame.drop(columns=list(drop)), column=column, target=target, strict=strict, name=found.name,
            origin=found.origin, findings=said,
        )  # fmt: skip
    if found.frame is not None and unsaid and task is None and "path" in found.origin:
        only = _only_texts(found.frame, drop, roles)
        if only is not None and Path(source).suffix.lower() != ".parquet":
            return Corpus.open(source, column=column or only, strict=strict, findings=roles.left_out())
    if found.frame is not None:
        marked = None if test is None else _join(found, look(test))
        words = None
        if kind != "table" and (group, time) == (None, None) and task != "regression":
            asked = kind == "text"
            words = text_column(found.frame, target or found.target, roles, task=task, column=column, asked=asked)
            found.findings += roles.left_out() if words is not None and not (asked or column) else []
        if words is not None:
            return Texts.from_frame(
                found.frame, *words, task=task, strict=strict, name=found.name, origin=found.origin,
                findings=found.findings, test_rows=marked,
            )  # fmt: skip
        if kind == "text":
            raise WonderlandError(
                f"{found.name} has no text column beside a target: name them with the options column and target."
            )
        options["target"] = target if target is not None or found.target in drop else found.target
        return Table.from_frame(
            found.frame, name=found.name, origin=found.origin, findings=found.findings, test_rows=marked, **options
        )
    if test is not None:
        raise WonderlandError("A test set of its own is for tables; images are split by themselves.")
    return _images(found, options, size)


def _text(
    source: Any, kind: str | None, task: str | None, lines: bool, column: str | None, strict: bool, test: Any
) -> Any:
    """A corpus, or texts that are not in a table; None where the other roads look."""
    if kind not in (None, "table", "text", "corpus", "pairs"):
        kinds = ("table", "text", "corpus", "pairs")
        raise WonderlandError(f"There is no kind {kind!r}.{nearest(str(kind), kinds)} Known are {', '.join(kinds)}.")
    if not isinstance(source, str | Path):
        if kind == "corpus" or lines:
            raise WonderlandError("A corpus is read from a file or a folder: give its path.")
        return None
    path = Path(source).expanduser()
    if kind == "corpus" or lines or task == "language":
        return Corpus.open(path, column=column, lines=lines, strict=strict)
    if kind in ("table", "pairs") or task == "translation" or not _exists(path):
        return None
    found = recognise(path)
    if found == "folders":
        return Texts.from_folder(path, strict=strict)
    if found == "labelled":
        other = Path(test).expanduser() if isinstance(test, str | Path) and _exists(Path(test).expanduser()) else None
        return Texts.from_lines(path, strict=strict, task=task, test=other)
    if found == "corpus" and kind is None and column is None:
        return Corpus.open(path, strict=strict)
    if found == "corpus" and kind == "text":
        raise WonderlandError(f"{path} has no classes: begin each line with a label, or sort texts into class folders.")
    return None


def _only_texts(frame: pd.DataFrame, drop: Collection[str], roles: Roles) -> str | None:
    """The name of the only column that says something, if it holds several words a cell: there is only the language to learn."""
    names = [name for name in frame.columns if name not in drop]
    if len(names) > 1:
        return roles.free[0] if len(roles.free) == 1 and not roles.others else None
    words = [len(cell.split()) if isinstance(cell, str) else 0 for name in names for cell in frame[name]]
    return str(names[0]) if words and float(np.median(words)) > 1 else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _only_text(text: Dataset, options: dict[str, Any], test: Any) -> None:
    for option, value in options.items():
        if value:
            where = "images" if option == "size" else "a table"
            raise WonderlandError(f"{option} is for {where}; {text.name} is text.")
    if test is not None and text.test_rows is None:
        raise WonderlandError(
            "A test set of its own is for tables and labelled lines; texts from files are split by themselves."
        )


def _join(found: Source, test: Source) -> np.ndarray:
    """Add the rows of a test set to those of a source; gives the mask of the added rows."""
    if found.frame is None or test.frame is None:
        raise WonderlandError("The test set is not a table, but the data to learn from is.")
    missing = [name for name in found.frame.columns if name not in test.frame.columns]
    if missing:
        raise WonderlandError(
            f"The test set has no column {missing[0]!r}, which the data to learn from has.{nearest(missing[0], test.frame.columns)}"
        )
    rows = len(found.frame)
    found.frame = both = pd.concat([found.frame, test.frame.loc[:, list(found.frame.columns)]], ignore_index=True)
    found.origin["test"] = test.origin
    return np.arange(len(both)) >= rows


def look(source: Any, as_text: Collection[str] = ()) -> Source:
    """Find out what a source is and read it, without deciding what its columns mean."""
    if isinstance(source, str | Path):
        return _named(source, as_text)
    if isinstance(source, Dataset):
        raise WonderlandError("This is already an open dataset. Give the source it was opened from.")
    if isinstance(source, pd.DataFrame):
        return _framed(source, "frame")
    if hasattr(source, "collect") and hasattr(source, "collect_schema"):
        source = source.collect()
    if type(source).__module__.split(".")[0] == "polars" and hasattr(source, "get_columns"):
        return _framed(pd.DataFrame({column.name: _polars(column) for column in source.get_columns()}), "frame")
    if isinstance(source, Mapping):
        return _framed(_from_dict(source), "columns")
    if isinstance(source, tuple) and len(source) == 2:
        return _from_arrays(*source)
    if isinstance(source, np.ndarray) or hasattr(source, "__array__"):
        return _from_arrays(source, None)
    raise WonderlandError(
        f"A source of type {type(source).__name__} is not known. Give a path, a frame, a dict of columns, "
        "arrays (X, y), or a bundled name."
    )


def _named(source: str | Path, as_text: Collection[str]) -> Source:
    path = Path(source).expanduser()
    try:
        exists = path.exists()
    except (OSError, ValueError):
        exists = False
    if exists:
        origin: dict[str, Any] = {"path": str(path.absolute())}
        if path.is_dir():
            return Source(path.resolve().name, origin, folder=path)
        frame, findings = read_file(path, as_text)
        if len(frame) == 0:
            raise WonderlandError(f"{path} has no rows. Add rows, or give another file.")
        return Source(path.name, origin, frame=frame, findings=findings)
    if str(source) not in BUNDLED:
        raise unknown_file(path, BUNDLED)
    name = str(source)
    found = load_bundled(name)
    if isinstance(found, tuple):
        return Source(name, {"bundled": name}, images=found)
    return Source(name, {"bundled": name}, frame=found, target=BUNDLED[name].target)


def _framed(frame: pd.DataFrame, what: str) -> Source:
    if isinstance(frame.columns, pd.MultiIndex):
        raise WonderlandError("The frame has more than one level of column names. Flatten them first.")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1).reset_index(drop=True)
    check_names(list(frame.columns), f"The {what}")
    if len(frame) == 0:
        raise WonderlandError(f"The {what} has no rows." if what == "frame" else "The columns have no rows.")
    return Source(what, {"memory": what}, frame=frame)


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


def _from_arrays(x: Any, y: Any) -> Source:
    """Arrays (X, y): a table when X has two axes, images when it has three or four and holds bytes."""
    if isinstance(x, pd.DataFrame) or (hasattr(x, "get_columns") and type(x).__module__.startswith("polars")):
        frame = look(x).frame
        assert frame is not None
    else:
        try:
            x = np.asarray(x)
        except ValueError as error:
            raise WonderlandError("The rows of X have different lengths. Give a list of rows of one length.") from error
        if x.ndim in (3, 4):
            return Source("arrays", {"memory": "arrays"}, images=(x, y))
        if x.ndim not in (1, 2):
            raise WonderlandError(
                f"X has {x.ndim} axes. Give (rows, columns) for a table or (n, h, w[, c]) for images."
            )
        x = x[:, None] if x.ndim == 1 else x
        frame = pd.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])])
        frame = frame.infer_objects() if x.dtype == object else frame
    if y is None:
        return _framed(frame, "arrays")
    name = str(getattr(y, "name", None) or "target")
    cells = pd.Series(np.asarray(y).reshape(-1) if not isinstance(y, pd.Series) else y.array)
    if len(cells) != len(frame):
        raise WonderlandError(f"X has {counted(len(frame), 'row', 'rows')} and y has {len(cells)}.")
    if name in frame.columns:
        raise WonderlandError(f"X has a column named {name!r}, the name of y. Rename one of them.")
    found = _framed(frame.assign(**{name: cells.to_numpy()}), "arrays")
    found.target = name
    return found


def _polars(column: Any) -> Any:
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


def _names(option: str, names: Collection[str]) -> list[str]:
    """A list of column names; a single name is a list of one."""
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if not isinstance(name, str):
            raise WonderlandError(f"{option} holds {name!r}, which is not a column name.")
    return names


def _images(found: Source, options: dict[str, Any], size: int | None) -> Dataset:
    from wonderland.kinds.image.images import Images

    for option in ("target", "group", "time", "keep", "drop"):
        if options[option]:
            if found.folder is not None:
                refuse_tables(scan(found.folder))
            raise WonderlandError(f"{option} names a column of a table; {found.name} holds images.")
    passed = {key: options[key] for key in ("task", "strict") if options[key]}
    if found.folder is not None:
        return Images.from_folder(found.folder, size=size, **passed)
    if size is not None:
        raise WonderlandError("Images from arrays keep their size: resize the arrays instead.")
    assert found.images is not None
    data = Images.from_arrays(*found.images, name=found.name, **passed)
    data.origin = found.origin
    return data
