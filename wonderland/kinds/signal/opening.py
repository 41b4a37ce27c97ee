"""Open signals: .ts files, long and wide tables, class folders of tables, tables of paths, arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.bundle import Bundle, Member, read_bundle
from wonderland.data.columns import read_column
from wonderland.data.dataset import Finding, counted
from wonderland.data.read import read_file
from wonderland.data.source import Glimpse
from wonderland.data.target import choose_target
from wonderland.data.ts_file import is_ts, read_ts
from wonderland.kinds.signal.options import Options

TABLES = frozenset({".csv", ".tsv"})
TIMES = ("time", "timestamp", "date", "datetime", "t", "step", "seconds", "index", "frame")
LOOKED_AT = 50


@dataclass
class Read:
    """What a source holds: values (t, channels) of each series, names, channels, and answers as a column (None for none)."""

    values: list[np.ndarray]
    names: list[str]
    channels: list[str] | None = None
    answers: pd.Series | None = None
    task: str | None = None
    frame: pd.DataFrame | None = None
    test: np.ndarray | None = None
    findings: list[Finding] = field(default_factory=list)


def read_signals(glimpse: Glimpse, options: Options, *, need_target: bool = True) -> Read:
    """The series of a source of any form."""
    path, source = glimpse.path, glimpse.source
    if path is None and not isinstance(source, pd.DataFrame):
        return _from_arrays(source, need_target)
    if path is not None and path.is_dir():
        return _from_folder(path, options, need_target)
    if path is not None and path.name.lower().removesuffix(".gz").endswith(".ts"):
        return _from_ts(path, need_target)
    contents = glimpse.contents
    if contents.frame is None:
        raise WonderlandError(f"{contents.name} is neither a .ts file nor a table of series.")
    frame = contents.frame.reset_index(drop=True)
    folder = Path() if path is None else path.parent
    column = None if path is None else csv_column(frame, folder)
    if column is not None:
        read = _from_paths(frame, column, folder, options, need_target)
    elif options.series is not None:
        read = _from_long(frame, options, need_target)
    else:
        read = _from_wide(frame, options, need_target)
    read.findings = [*contents.findings, *read.findings]
    return read


def ts_files(folder: Path) -> tuple[Path | None, Path | None]:
    """The .ts files of a folder: the training one, or the only one; and that of the test, where there is one."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".ts" and path.is_file())
    train = [path for path in files if path.stem.upper().endswith("_TRAIN")]
    test = [path for path in files if path.stem.upper().endswith("_TEST")]
    if len(train) == 1:
        own = train[0].stem[: -len("_TRAIN")]
        return train[0], next((path for path in test if path.stem[: -len("_TEST")] == own), None)
    return (files[0] if len(files) == 1 else None), None


def _from_ts(path: Path, need_target: bool) -> Read:
    series = read_ts(path)
    if need_target and series.answers is None:
        raise WonderlandError(
            f"{path} has no classes and no values to learn: its header has neither @classLabel true nor @targetLabel true."
        )
    answers = None if series.answers is None else pd.Series(series.answers, name="target")
    names = [str(place + 1) for place in range(len(series.values))]
    return Read(series.values, names, answers=answers, task="regression" if series.numbers else None)


def _from_folder(folder: Path, options: Options, need_target: bool) -> Read:
    train, test = ts_files(folder)
    if train is not None:
        read = _from_ts(train, need_target)
        if test is None or not need_target:
            return read
        more = _from_ts(test, True)
        assert read.answers is not None
        assert more.answers is not None
        marked = np.repeat([False, True], [len(read.values), len(more.values)])
        note = Finding("files", str(folder), 2, f"{test.name} holds the test series: {len(more.values):,}.")
        names = [*(f"train {name}" for name in read.names), *(f"test {name}" for name in more.names)]
        answers = pd.concat([read.answers, more.answers], ignore_index=True)
        return Read(read.values + more.values, names, answers=answers, task=read.task, test=marked, findings=[note])
    bundle = read_bundle(folder, TABLES)
    if not bundle.members:
        raise WonderlandError(f"{folder} holds neither one .ts file nor tables of series (CSV).")
    labelled = [member for member in bundle.members if member.label]
    if need_target and not labelled:
        raise WonderlandError(
            f"{folder} has {counted(len(bundle.members), 'table', 'tables')} but no class folders. Make one folder for each class, or give "
            "a table that names the files."
        )
    members = labelled if need_target else bundle.members
    answers = pd.Series([member.label for member in members], name="class") if len(labelled) == len(members) else None
    return _from_members(members, bundle, answers, options)


def _from_members(members: Sequence[Member], bundle: Bundle, answers: pd.Series | None, options: Options) -> Read:
    """One table for each series: its columns of numbers are the channels, in the order of its column of times."""
    values, channels = [], None
    for member in members:
        frame, _ = read_file(member.path, (), None)
        array, own = _channels(frame, options, str(member))
        if channels is not None and own != channels:
            raise WonderlandError(
                f"{member} has the columns {', '.join(own)[:80]}, and the series before have {', '.join(channels)[:80]}: all need the same."
            )
        channels = own
        values.append(array)
    return Read(values, [member.name for member in members], channels, answers, findings=bundle.findings("table"))


def _channels(
    frame: pd.DataFrame, options: Options, where: str, drop: Sequence[str] = ()
) -> tuple[np.ndarray, list[str]]:
    """The numbers of a table in the order of its times (t, channels), and the names of its channels."""
    frame = frame.rename(columns=str)
    time = options.time or next((name for name in frame.columns if name.casefold() in TIMES and name not in drop), None)
    if options.time is not None and options.time not in frame.columns:
        raise WonderlandError(f"{where} has no column {options.time!r} of times.{nearest(options.time, frame.columns)}")
    if time is not None:
        column = read_column(time, pd.Series(frame[time]))
        if column.levels is None and column.kind in ("number", "date", "identifier", "constant", "boolean"):
            frame = frame.iloc[np.argsort(column.values, kind="stable")]
    names = [name for name in frame.columns if name != time and name not in drop]
    kept = [
        name
        for name in names
        if pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name])
    ]
    if not kept:
        raise WonderlandError(f"{where} has no column of numbers, which a series would be made of.")
    return frame[kept].to_numpy(np.float32, na_value=np.nan), kept


def csv_column(frame: pd.DataFrame, folder: Path) -> str | None:
    """The column of a table that names other tables, one for each series."""
    for name in frame.columns:
        cells = frame[name].dropna().head(LOOKED_AT)
        named = len(cells) and all(
            isinstance(cell, str) and Path(cell.strip()).suffix.casefold() in TABLES for cell in cells
        )
        if named and any((folder / cell.strip()).is_file() for cell in cells):
            return str(name)
    return None


def _from_paths(frame: pd.DataFrame, column: str, folder: Path, options: Options, need_target: bool) -> Read:
    members = []
    for row, cell in enumerate(frame[column]):
        path = folder / str(cell).strip()
        if not path.is_file():
            raise WonderlandError(
                f"Row {row + 1} names {cell}, and there is no such file. Correct the path, or remove the row."
            )
        members.append(Member(str(cell).strip(), path))
    read = _from_members(members, Bundle(folder, folder.name), None, options)
    read.frame = frame
    read.answers = _answers(frame, options, (column,), read.findings) if need_target or _has(frame, options) else None
    return read


def _has(frame: pd.DataFrame, options: Options) -> bool:
    return options.target is not None and options.target in frame.columns


def _answers(frame: pd.DataFrame, options: Options, taken: Sequence[str | None], findings: list[Finding]) -> pd.Series:
    names = [str(name) for name in frame.columns]
    target = choose_target(names, options.target, (*taken, options.group), findings)
    if target not in names:
        raise WonderlandError(f"There is no column {target!r}.{nearest(target, names)} Columns are {', '.join(names)}.")
    return pd.Series(frame[target]).reset_index(drop=True)


def _from_long(frame: pd.DataFrame, options: Options, need_target: bool) -> Read:
    """A row for each step: the columns of numbers are the channels, and a series has one answer."""
    names = [str(name) for name in frame.columns]
    if options.series not in names:
        raise WonderlandError(f"There is no column {options.series!r} of series.{nearest(str(options.series), names)}")
    findings: list[Finding] = []
    answer = None
    if need_target or _has(frame, options):
        answer = _answers(frame, options, (options.series, options.time), findings)
    target = None if answer is None else str(answer.name)
    drop = tuple(filter(None, (options.series, target, options.group)))
    values, kept, rows, channels = [], [], [], None
    for name, part in frame.groupby(frame[options.series].astype(str), sort=True):
        if answer is not None and pd.Series(answer[part.index]).nunique(dropna=False) > 1:
            raise WonderlandError(
                f"Series {name!r} has several values of {target!r}: a series has one class or number. For a forecast of {target!r} give "
                "horizon (--horizon)."
            )
        array, channels = _channels(part, options, f"Series {name!r}", drop)
        values.append(array)
        kept.append(str(name))
        rows.append(part.index[0])
    read = Read(values, kept, channels, frame=frame.loc[rows].reset_index(drop=True), findings=findings)
    read.answers = None if answer is None else pd.Series(answer[rows]).reset_index(drop=True)
    return read


def _from_wide(frame: pd.DataFrame, options: Options, need_target: bool) -> Read:
    """A row for each series: its columns of numbers are the steps."""
    findings: list[Finding] = []
    answer = _answers(frame, options, (), findings) if need_target or _has(frame, options) else None
    drop = tuple(filter(None, (None if answer is None else str(answer.name), options.group)))
    steps = [name for name in frame.columns if str(name) not in drop and pd.api.types.is_numeric_dtype(frame[name])]
    if not steps:
        raise WonderlandError("The table has no columns of numbers, which would be the steps of each series.")
    values = [row[:, None] for row in frame[steps].to_numpy(np.float32, na_value=np.nan)]
    return Read(values, [str(row + 1) for row in range(len(frame))], None, answer, frame=frame, findings=findings)


def _from_arrays(source: Any, need_target: bool) -> Read:
    """(X, y), or X alone: arrays (n, t, channels) or (n, t), or a list of arrays (t, channels) or (t,)."""
    x, y = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
    if not (hasattr(x, "__array__") or isinstance(x, list | tuple)):
        raise WonderlandError(
            "Signals come as a .ts file, a table, a folder of tables, or arrays (X, y) with X of shape (n, t, channels)."
        )
    values = [np.asarray(each, np.float32) for each in x]
    values = [each[:, None] if each.ndim == 1 else each for each in values]
    if not values or any(each.ndim != 2 or each.shape[1] != values[0].shape[1] for each in values):
        raise WonderlandError(
            "Arrays of signals are (n, t, channels), or a list of (t, channels) with the same channels."
        )
    if y is None and need_target:
        raise WonderlandError("Signals to learn from need an answer each: give (X, y).")
    if y is not None and len(y) != len(values):
        raise WonderlandError(f"X has {len(values)} signals and y has {len(y)}: give one for each.")
    answers = None if y is None else pd.Series(np.asarray(y), name="target")
    return Read(values, [str(place + 1) for place in range(len(values))], answers=answers)


def is_ts_source(glimpse: Glimpse) -> bool:
    """Whether a file or folder holds series in .ts files."""
    path = glimpse.path
    if path is None:
        return False
    if path.is_dir():
        return ts_files(path)[0] is not None
    return path.name.lower().removesuffix(".gz").endswith(".ts") and (
        path.suffix.lower() == ".gz" or is_ts(glimpse.samples[0])
    )
