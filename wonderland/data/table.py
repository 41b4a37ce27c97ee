"""A table: columns of known kinds, a target, and what was repaired."""

import hashlib
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.columns import Column, label, read_column
from wonderland.data.dataset import TASKS, Dataset, Finding, stop_if_strict

if TYPE_CHECKING:
    from wonderland.data.encode import TableEncoder

RARE = 4  # a category with fewer rows than this is pooled with the unknown ones
TARGET_NAMES = ("target", "label", "class", "y", "outcome")
MAX_CLASSES = 1000
SMALLEST = 20  # rows; below, chance alone makes perfect columns
ROWS_PER_VALUE = 5


class Table(Dataset):
    """Rows of a table. `features` are the columns a model sees; `left_out` says why each other column is not among them."""

    kind = "table"

    def __init__(
        self,
        name: str,
        features: list[Column],
        *,
        target: str | None = None,
        task: str | None = None,
        classes: list[str] | None = None,
        y: np.ndarray | None = None,
        rows: int | None = None,
        left_out: dict[str, str] | None = None,
        findings: list[Finding] | None = None,
        fingerprint: str = "",
        origin: dict[str, Any] | None = None,
        groups: np.ndarray | None = None,
        times: np.ndarray | None = None,
        time: str | None = None,
    ) -> None:
        self.name, self.features, self.target, self.task, self.classes, self.y = (
            name,
            features,
            target,
            task,
            classes,
            y,
        )
        self.left_out, self.findings = left_out or {}, findings or []
        self.fingerprint = fingerprint or fingerprint_of(features)
        self.origin, self.groups, self.times, self.time = origin or {}, groups, times, time
        self._rows = len(features[0]) if rows is None else rows

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        target: str | None = None,
        task: str | None = None,
        group: str | None = None,
        time: str | None = None,
        keep: Collection[str] = (),
        drop: Collection[str] = (),
        strict: bool = False,
        name: str = "frame",
        origin: dict[str, Any] | None = None,
        findings: list[Finding] | None = None,
    ) -> "Table":
        """Read every column, settle the target, and leave out what would teach nothing or give the answer away."""
        findings = list(findings or [])
        names = list(frame.columns)
        for option, chosen in {
            "target": [target],
            "group": [group],
            "time": [time],
            "keep": keep,
            "drop": drop,
        }.items():
            for column in chosen:
                if column is not None and column not in names:
                    raise unknown_column(option, column, names)
        target = choose_target(names, target, {*drop, group, time}, findings)
        columns = {column: read_column(column, pd.Series(frame[column])) for column in names}
        fingerprint = fingerprint_of(list(columns.values()))
        y, task, classes, rows = read_target(columns[target], task, findings)
        check_finite(columns.values())
        if len(rows) < len(frame):
            columns = {column: read.take(rows) for column, read in columns.items()}
            y = y[rows]
        note_duplicates(columns, findings)
        reasons = leave_out(columns, target, group, time, keep, drop, findings)
        features = [column for column in columns.values() if column.name not in reasons]
        hidden = find_disguises(features, y, task, target, keep, findings)
        reasons |= dict.fromkeys(hidden, "the target in disguise")
        features = [column for column in features if column.name not in hidden]
        if not features:
            raise no_usable_column(name, target, reasons, hidden)
        note_repairs(features, findings)
        stop_if_strict(findings, strict)
        return cls(
            name,
            features,
            target=target,
            task=task,
            classes=classes,
            y=y,
            left_out=reasons,
            findings=findings,
            fingerprint=fingerprint,
            origin=origin,
            groups=None if group is None else read_groups(columns[group]),
            times=None if time is None else read_times(columns[time]),
            time=time,
        )

    def __len__(self) -> int:
        return self._rows

    def column(self, name: str) -> Column:
        """A feature column by name."""
        for column in self.features:
            if column.name == name:
                return column
        raise unknown_column("column", name, [column.name for column in self.features])

    def summary(self) -> list[dict[str, Any]]:
        """Each feature column: its kind, how many different and missing values, and a few examples."""
        return [
            {
                "column": column.name,
                "kind": column.kind,
                "distinct": column.distinct,
                "missing": column.missing,
                "examples": ", ".join(_short(value) for value in column.examples()),
            }
            for column in self.features
        ]

    def example(self, i: int) -> dict[str, Any]:
        """One row: its feature values, and its target when there is one."""
        row = {column.name: column.cell(i) for column in self.features}
        if self.y is not None and self.target is not None:
            row[self.target] = self.classes[self.y[i]] if self.classes else float(self.y[i])
        return row

    def encoder(self, rows: np.ndarray) -> "TableEncoder":
        """Preprocessing fitted on these rows only."""
        from wonderland.data.encode import TableEncoder

        return TableEncoder.fit(self, rows)


def unknown_column(option: str, column: str, names: Collection[str]) -> WonderlandError:
    """The error for a column that is not there: the nearest names, or the first few."""
    names = list(names)
    known = ", ".join(repr(name) for name in names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    hint = nearest(column, names) or f" The columns are {known}."
    return WonderlandError(f"There is no column {column!r} (given as {option}).{hint}")


def no_usable_column(name: str, target: str, reasons: dict[str, str], hidden: list[str]) -> WonderlandError:
    """The error for a table of which nothing is left to learn from, with the reasons."""
    others = [f"{column!r} is {why}" for column, why in reasons.items() if column != target]
    because = (
        (": " if others else "") + "; ".join(others[:5]) + (f"; and {len(others) - 5} more" if len(others) > 5 else "")
    )
    hint = f" keep={hidden[0]!r} keeps it." if hidden else ""
    return WonderlandError(f"{name} has no usable column besides the target {target!r}{because}.{hint}")


def fingerprint_of(columns: list[Column]) -> str:
    """SHA-256 over names, kinds and values; the same for a file and for the frame that was read from it."""
    total = hashlib.sha256()
    for column in columns:
        total.update(f"{len(column.name)}:{column.name}:{column.kind}:{len(column)};".encode())
        values = column.values if column.levels is not None else np.where(column.absent, np.nan, column.values)
        total.update(np.ascontiguousarray(values).tobytes())
        if column.levels is not None:
            total.update("\0".join(column.levels).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def check_finite(columns: Collection[Column]) -> None:
    """Stop at an infinite value: no repair of it would be honest."""
    for column in columns:
        if column.levels is None and np.isinf(column.values).any():
            row = int(np.flatnonzero(np.isinf(column.values))[0]) + 1
            count = int(np.isinf(column.values).sum())
            raise WonderlandError(
                f"Column {column.name!r} holds an infinite value in row {row}{f' ({count} in all)' if count > 1 else ''}. "
                "Correct it, or leave the cell empty."
            )


def leave_out(
    columns: dict[str, Column],
    target: str,
    group: str | None,
    time: str | None,
    keep: Collection[str],
    drop: Collection[str],
    findings: list[Finding],
) -> dict[str, str]:
    """The columns a model should not see, each with its reason."""
    reasons = {target: "the target"}
    reasons |= {column: "dropped as asked" for column in drop if column != target}
    if group is not None:
        reasons[group] = "the group"
    if time is not None and columns[time].kind != "date":
        reasons[time] = "the time"
    for column in columns.values():
        name = column.name
        if name in reasons:
            continue
        if column.distinct == 0:
            reasons[name] = "empty"
            findings.append(Finding("empty", name, len(column), f"Column {name!r} has no values and is left out."))
        elif column.kind == "constant" or (column.distinct == 1 and column.missing == 0):
            reasons[name] = "constant"
            value = _short(column.cell(int(np.argmin(column.absent))))
            findings.append(
                Finding("constant", name, len(column), f"Column {name!r} is always {value} and is left out.")
            )
        elif column.kind == "identifier" and name not in keep:
            reasons[name] = "an identifier"
            text = f"Column {name!r} looks like an identifier ({column.distinct:,} different values) and is left out."
            findings.append(Finding("identifier", name, column.distinct, text))
    for name in keep:
        if columns[name].kind == "identifier":
            kind = "text" if columns[name].levels is not None else "number"
            columns[name] = replace(columns[name], kind=kind)
    return reasons


def note_duplicates(columns: dict[str, Column], findings: list[Finding]) -> None:
    """Count rows that say exactly what an earlier row says."""
    if len(columns) > 2000:
        return
    mixed = np.zeros(len(next(iter(columns.values()))), np.uint64)
    for column in columns.values():
        bits = np.where(column.absent, np.nan, column.values.astype(np.float64) + 0.0).view(np.uint64)
        mixed = (mixed ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    count = int(pd.Series(mixed).duplicated().sum())
    if count:
        rows = "row repeats" if count == 1 else "rows repeat"
        findings.append(Finding("duplicates", "rows", count, f"{count:,} {rows} an earlier row exactly; kept."))


def note_repairs(features: list[Column], findings: list[Finding]) -> None:
    """What the encoder will have to repair in each column."""
    for column in features:
        name, rows = column.name, len(column)
        if column.unread:
            text = (
                f"Column {name!r} is read as {column.kind}; cells that are not, counted as missing: {column.unread:,}."
            )
            findings.append(Finding("unread", name, column.unread, text))
        if column.missing:
            text = f"Column {name!r} misses {column.missing:,} of {rows:,} values."
            findings.append(Finding("missing", name, column.missing, text))
        if column.note:
            findings.append(Finding("date order", name, rows, f"Column {name!r}: {column.note}."))
        if column.kind == "category":
            assert column.levels is not None
            seen = np.bincount(column.values[~column.absent], minlength=len(column.levels))
            rare = int(((seen > 0) & (seen < RARE)).sum())
            if rare:
                noun = "category has" if rare == 1 else "categories have"
                text = f"Column {name!r}: {rare:,} {noun} fewer than {RARE} rows; pooled."
                findings.append(Finding("rare", name, rare, text))


def read_groups(column: Column) -> np.ndarray:
    """Group codes; rows without a group form one group together."""
    return column.codes()[0].astype(np.int64)


def read_times(column: Column) -> np.ndarray:
    """Sortable times; none may be missing."""
    if column.levels is not None:
        raise WonderlandError(f"The time column {column.name!r} holds neither dates nor numbers (it is {column.kind}).")
    if column.missing:
        row = int(np.flatnonzero(column.absent)[0]) + 1
        raise WonderlandError(
            f"The time column {column.name!r} has no time in {column.missing:,} of {len(column):,} rows (first in row {row})."
        )
    return column.values


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else text[:23] + "…"


def choose_target(names: list[str], target: str | None, taken: Collection[str | None], findings: list[Finding]) -> str:
    """The target as given; else a column called so; else the last one."""
    if target is not None:
        if target in taken:
            raise WonderlandError(
                f"Column {target!r} is the target, so it cannot be dropped, the group or the time as well."
            )
        return target
    free = [name for name in names if name not in taken]
    if not free:
        raise WonderlandError("No column is left to be the target.")
    folded = {name.strip().casefold(): name for name in reversed(free)}
    named = next((folded[name] for name in TARGET_NAMES if name in folded), None)
    chosen = named or free[-1]
    why = "by its name" if named else "because it is the last column"
    findings.append(Finding("target", chosen, 1, f"Column {chosen!r} is taken as the target {why}."))
    return chosen


def read_target(
    column: Column, task: str | None, findings: list[Finding]
) -> tuple[np.ndarray, str, list[str] | None, np.ndarray]:
    """Target values or class codes for all rows, the task, the classes, and the rows that have a target."""
    name = column.name
    if task is not None and task not in (*TASKS, "classification"):
        raise WonderlandError(f"There is no task {task!r}.{nearest(task, TASKS)} Tasks are {', '.join(TASKS)}.")
    rows = np.flatnonzero(~column.absent)
    if len(rows) == 0:
        raise WonderlandError(f"The target {name!r} has no values.")
    if column.missing:
        text = f"{column.missing:,} of {len(column):,} rows have no target {name!r} and are left out."
        findings.append(Finding("target missing", name, column.missing, text))
    if column.levels is None and np.isinf(column.values).any():
        row = int(np.flatnonzero(np.isinf(column.values))[0]) + 1
        raise WonderlandError(f"The target {name!r} is infinite in row {row}. Correct it, or leave the cell empty.")
    inferred = infer_task(column, len(rows)) if task is None else task
    if inferred == "regression":
        _check_numeric(column, task)
        if column.distinct < 2:
            value = column.cell(int(rows[0]))
            raise WonderlandError(
                f"The target {name!r} is always {value}, so there is nothing to learn. Choose another target."
            )
        if task is None:
            _say(findings, name, column.distinct, f"{column.distinct:,} different numbers", "regression", "multiclass")
        return column.values.astype(np.float64), "regression", None, rows
    codes, classes = class_codes(column)
    _check_classes(column, classes, inferred, len(rows))
    counts = np.bincount(codes[rows], minlength=len(classes))
    for single in np.flatnonzero(counts == 1)[:5]:
        text = f"Class {classes[single]!r} has a single row: it can be learned from or tested on, not both."
        findings.append(Finding("single row", classes[single], 1, text))
    found = "binary" if len(classes) == 2 else "multiclass"
    if task is None:
        other = "regression" if column.kind == "number" else ""
        _say(findings, name, len(classes), f"{len(classes)} classes", found, other)
    return codes, found, classes, rows


def infer_task(column: Column, rows: int) -> str:
    """Regression for numbers with many values, else classes.

    Whole numbers are classes when there are at most 20 of them, or few for the number of rows and none of them rare (26
    letters in 20,000 rows); other numbers when there are at most 10 in at least 10 times as many rows.
    """
    if column.kind not in ("number", "identifier", "constant", "boolean") or column.levels is not None:
        return "classification"
    distinct = column.distinct
    if distinct <= 2:
        return "classification"
    if not column.whole:
        return "classification" if distinct <= 10 and rows >= 10 * distinct else "regression"
    if distinct > max(5, rows // 4) or distinct > 200:
        return "regression"
    if distinct <= 20:
        return "classification"
    counts = np.unique(column.values[~column.absent], return_counts=True)[1]
    return "regression" if distinct > rows // 200 or (counts < 5).mean() > 0.1 else "classification"


def class_codes(column: Column) -> tuple[np.ndarray, list[str]]:
    """Class codes (-1 where missing) and class names: numbers in order of size, words in order of the alphabet."""
    if column.levels is None:
        found, first = np.unique(column.values[~column.absent], return_index=True)
        names = [label(column.cell(int(row))) for row in np.flatnonzero(~column.absent)[first]]
        return np.where(column.absent, -1, np.searchsorted(found, np.nan_to_num(column.values))).astype(np.int64), names
    levels = [str(level) for level in column.levels]
    order = sorted(np.unique(column.values[~column.absent]).tolist(), key=lambda code: natural(levels[code]))
    place = np.full(len(levels) + 1, -1, np.int64)
    place[order] = np.arange(len(order))
    return place[column.values], [levels[code] for code in order]


def natural(name: str) -> tuple[int, float, str]:
    """A key that sorts numbers by size before words by alphabet.

    >>> sorted(["10", "9", "b", "a"], key=natural)
    ['9', '10', 'a', 'b']
    """
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def _check_numeric(column: Column, task: str | None) -> None:
    if column.levels is not None or column.kind == "date":
        value = column.cell(int(np.flatnonzero(~column.absent)[0]))
        raise WonderlandError(
            f"The target {column.name!r} is {column.kind}, not a number (for instance {value!r}), so {task} is not possible. "
            "Leave task out, or choose another target."
        )


def _check_classes(column: Column, classes: list[str], task: str, rows: int) -> None:
    name = column.name
    if len(classes) < 2:
        raise WonderlandError(
            f"The target {name!r} has one class only ({classes[0]!r}), so there is nothing to learn. Choose another target."
        )
    if len(classes) > MAX_CLASSES or (len(classes) > 5 and len(classes) > rows / 2):
        advice = (
            "Choose another target" if column.levels is not None else "Use task='regression', or choose another target"
        )
        why = "; is it an identifier?" if column.levels is not None else "."
        raise WonderlandError(f"The target {name!r} has {len(classes):,} classes in {rows:,} rows{why} {advice}.")
    if task == "binary" and len(classes) != 2:
        raise WonderlandError(
            f"The target {name!r} has {len(classes)} classes, so the task is not binary. Use task='multiclass'."
        )


def _say(findings: list[Finding], name: str, count: int, what: str, task: str, other: str) -> None:
    override = f" Say task={other!r} if it is not." if other else ""
    findings.append(Finding("task", name, count, f"The target {name!r} holds {what}: the task is {task}.{override}"))


def find_disguises(
    features: list[Column], y: np.ndarray, task: str, target: str, keep: Collection[str], findings: list[Finding]
) -> list[str]:
    """Columns that determine the target and are left out, unless they are in `keep`; each is said in a finding."""
    if len(y) < SMALLEST:
        return []
    hidden = []
    for column in features:
        how = determines_value(column, y) if task == "regression" else determines_class(column, y)
        if not how:
            if task == "binary" and len(y) >= 100 and separates(column, y):
                text = f"Column {column.name!r} alone separates the classes of {target!r} by one threshold; kept. Is it known beforehand?"
                findings.append(Finding("separates", column.name, len(y), text))
            continue
        if column.name in keep:
            continue
        hidden.append(column.name)
        text = (
            f"Column {column.name!r} is the target {target!r} in disguise ({how}) and is left out; "
            f"keep={column.name!r} keeps it."
        )
        findings.append(Finding("disguise", column.name, len(y), text))
    return hidden


def determines_class(column: Column, y: np.ndarray) -> str:
    """Says how when a column of few values, missing among them, leaves at most 0.5 % of the majority rule's errors."""
    codes, distinct = column.codes()
    if distinct * ROWS_PER_VALUE > len(y):
        return ""
    classes = int(y.max()) + 1
    pairs, counts = np.unique(codes * classes + y, return_counts=True)
    best = np.zeros(distinct, np.int64)
    np.maximum.at(best, pairs // classes, counts)
    errors = len(y) - int(best.sum())
    majority = len(y) - int(np.bincount(y).max())
    if majority == 0 or errors > 0.005 * majority:
        return ""
    return "each of its values goes with one class" if errors == 0 else "nearly all its values go with one class"


def determines_value(column: Column, y: np.ndarray) -> str:
    """Says how when ranks agree (Spearman at least 0.9999), or when few values explain the target entirely."""
    if column.levels is None and column.distinct > 2:
        here = ~column.absent
        if here.sum() >= max(SMALLEST, 0.9 * len(y)) and _spearman(column.values[here], y[here]) >= 0.9999:
            return "it puts the rows in the same order"
    codes, distinct = column.codes()
    if distinct * ROWS_PER_VALUE > len(y):
        return ""
    rows = np.bincount(codes, minlength=distinct)
    centred = y - y.mean()
    means = np.bincount(codes, weights=centred, minlength=distinct) / rows
    total = float((centred**2).sum())
    if total > 0 and float(((centred - means[codes]) ** 2).sum()) <= 1e-4 * total:
        return "each of its values goes with one target value"
    return ""


def separates(column: Column, y: np.ndarray) -> bool:
    """Whether one threshold on a numeric column tells the two classes apart."""
    if column.levels is not None or column.missing or column.distinct <= 2:
        return False
    low, high = column.values[y == 0], column.values[y == 1]
    return bool(low.max() < high.min() or high.max() < low.min())


def _spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Absolute rank correlation; a sample of the rows decides first, so that most columns cost nothing."""
    step = len(x) // 2000
    if step > 1 and _spearman(x[::step][:2000], y[::step][:2000]) < 0.99:
        return 0.0
    ranks = [pd.Series(values).rank().to_numpy() for values in (x, y)]
    if ranks[0].std() == 0 or ranks[1].std() == 0:
        return 0.0
    return abs(float(np.corrcoef(ranks[0], ranks[1])[0, 1]))
