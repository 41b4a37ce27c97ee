"""Table: columns of known kinds, a target, and findings about repairs."""

import functools
import hashlib
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.columns import Column, read_column
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.split import read_assigned
from wonderland.data.target import choose_target, read_target
from wonderland.kinds.table.hints import similar_labels, split_hints
from wonderland.kinds.table.leakage import find_leaks

RARE = 2  # rows; of a category with fewer little can be learned
MANY_SINGLE = 0.25  # of the rows; where more have a category of their own, it tells nothing that holds for others
MOSTLY_RARE = 0.8  # of the rows; a column with more rows in such categories is left out


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
        if fingerprint:
            self.fingerprint = fingerprint  # pyright: ignore[reportIncompatibleVariableOverride]
        self.origin, self.groups, self.times, self.time = origin or {}, groups, times, time
        self._rows = len(features[0]) if rows is None else rows

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the features, computed when it is asked for."""
        return fingerprint_of(self.features)

    @functools.cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.features}

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
        split: str | None = None,
        strict: bool = False,
        name: str = "frame",
        origin: dict[str, Any] | None = None,
        findings: list[Finding] | None = None,
    ) -> "Table":
        """Read every column, choose the target, and leave out uninformative columns and those that leak the target."""
        findings = list(findings or [])
        names = list(frame.columns)
        for option, chosen in {
            "target": [target],
            "group": [group],
            "time": [time],
            "split": [split],
            "keep": keep,
            "drop": drop,
        }.items():
            for column in chosen:
                if column is not None and column not in names:
                    raise unknown_column(option, column, names, findings)
        target = choose_target(names, target, {*drop, group, time, split}, findings)
        columns = {column: read_column(column, pd.Series(frame[column])) for column in names}
        fingerprint = fingerprint_of(list(columns.values()))
        y, task, classes, rows = read_target(columns[target], task, findings)
        check_finite(columns.values())
        if len(rows) < len(frame):
            columns = {column: content.take(rows) for column, content in columns.items()}
            y = y[rows]
        note_duplicates(columns, findings)
        drop = (*drop, *([] if split is None else [split]))
        reasons = leave_out(columns, target, group, time, keep, drop, findings)
        features = [column for column in columns.values() if column.name not in reasons]
        leaks = find_leaks(features, y, task, target, keep, findings)
        reasons |= dict.fromkeys(leaks, "a leak of the target")
        features = [column for column in features if column.name not in leaks]
        if not features:
            raise no_usable_column(name, target, reasons, leaks)
        note_repairs(features, findings)
        findings += split_hints([column for column in columns.values() if column.name != target], group, time)
        findings += [] if classes is None else similar_labels(classes, np.bincount(y, minlength=len(classes)))
        stop_if_strict(findings, strict)
        table = cls(
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
        if group is not None:
            table.group, table.group_names = group, names_of_groups(columns[group])
        if split is not None:
            cells = pd.Series(frame[split]).iloc[rows] if len(rows) < len(frame) else pd.Series(frame[split])
            table.assigned = read_assigned(cells, split)
        return table

    def __len__(self) -> int:
        return self._rows

    def column(self, name: str) -> Column:
        """A feature column by name."""
        if name not in self._by_name:
            raise unknown_column("column", name, list(self._by_name))
        return self._by_name[name]

    def columns(self) -> dict[str, np.ndarray]:
        return {column.name: column.values if column.levels is None else self.texts_of(column.name)
                for column in self.features}  # fmt: skip

    def texts_of(self, name: str) -> np.ndarray:
        column = self.column(name)
        if column.levels is None:
            return np.array([f"{value:g}" for value in column.values])
        levels = np.append(np.asarray(column.levels).astype(str).astype(object), "missing")
        return levels[column.values].astype(str)

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


def unknown_column(
    option: str, column: str, names: Collection[str], findings: Collection[Finding] = ()
) -> WonderlandError:
    """The error for an unknown column, with the nearest name or the first few, and which sheet of several was read."""
    names = list(names)
    known = ", ".join(repr(name) for name in names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    hint = nearest(column, names) or f" The columns are {known}."
    sheets = "".join(f" {finding.text}" for finding in findings if finding.kind == "sheet")
    return WonderlandError(f"There is no column {column!r} (given as {option}).{hint}{sheets}")


def no_usable_column(name: str, target: str, reasons: dict[str, str], leaks: list[str]) -> WonderlandError:
    """The error for a table without usable columns, with the reason for each."""
    others = [f"{column!r} is {why}" for column, why in reasons.items() if column != target]
    explanation = (
        (": " if others else "") + "; ".join(others[:5]) + (f"; and {len(others) - 5} more" if len(others) > 5 else "")
    )
    hint = f" The option keep keeps {leaks[0]!r}." if leaks else ""
    return WonderlandError(f"{name} has no usable column besides the target {target!r}{explanation}.{hint}")


def fingerprint_of(columns: list[Column]) -> str:
    """SHA-256 over names, kinds and values; the same for a file and for the frame that was read from it."""
    total = hashlib.sha256()
    for column in columns:
        total.update(f"{len(column.name)}:{column.name}:{column.kind}:{len(column)};".encode())
        values = column.values if column.levels is not None else np.where(column.is_missing, np.nan, column.values)
        total.update(np.ascontiguousarray(values).tobytes())
        if column.levels is not None:
            total.update("\0".join(column.levels).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def check_finite(columns: Collection[Column]) -> None:
    """Refuse infinite values: there is no sensible repair."""
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
            value = _short(column.cell(int(np.argmin(column.is_missing))))
            findings.append(
                Finding("constant", name, len(column), f"Column {name!r} is always {value} and is left out.")
            )
        elif (rare := rows_of_rare_categories(column)) > MOSTLY_RARE * len(column) and name not in keep:
            reasons[name] = "made of rare categories"
            text = (
                f"Column {name!r} holds a category of its own in {rare:,} of {len(column):,} rows, too few to learn from, "
                "and is left out; the option keep keeps it as text."
            )
            findings.append(Finding("rare", name, rare, text))
        elif column.kind == "identifier" and name not in keep:
            reasons[name] = "an identifier"
            text = f"Column {name!r} looks like an identifier ({column.distinct:,} different values) and is left out."
            findings.append(Finding("identifier", name, column.distinct, text))
    for name in keep:
        rare = rows_of_rare_categories(columns[name])
        if columns[name].kind == "identifier" or rare > MOSTLY_RARE * len(columns[name]):
            kind = "text" if columns[name].levels is not None else "number"
            columns[name] = replace(columns[name], kind=kind)
    return reasons


def rows_of_rare_categories(column: Column) -> int:
    """How many rows hold a category that is too rare to learn much about."""
    if column.kind != "category" or column.levels is None:
        return 0
    counts = np.bincount(column.values[~column.is_missing], minlength=len(column.levels))
    return int(counts[counts < RARE].sum())


def least_rows(counts: np.ndarray) -> int:
    """How many rows a category needs to be kept: one, or two where many rows have a category of their own, such as names."""
    return RARE if counts[counts < RARE].sum() > MANY_SINGLE * counts.sum() else 1


def note_duplicates(columns: dict[str, Column], findings: list[Finding]) -> None:
    """Count rows that are equal to an earlier row."""
    if len(columns) > 2000:
        return
    hashes = np.zeros(len(next(iter(columns.values()))), np.uint64)
    for column in columns.values():
        bits = np.where(column.is_missing, np.nan, column.values.astype(np.float64) + 0.0).view(np.uint64)
        hashes = (hashes ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    count = int(pd.Series(hashes).duplicated().sum())
    if count:
        rows, they_are = counted(count, "row repeats", "rows repeat"), "it is" if count == 1 else "they are"
        findings.append(Finding("duplicates", "rows", count, f"{rows} an earlier row exactly; {they_are} kept."))


def note_repairs(features: list[Column], findings: list[Finding]) -> None:
    """Add findings about what the encoder will repair in each column."""
    for column in features:
        name, rows = column.name, len(column)
        if column.unread:
            findings.append(unread_finding(column, "is read as"))
        if column.missing:
            text = f"Column {name!r} has no value in {column.missing:,} of {rows:,} rows."
            findings.append(Finding("missing", name, column.missing, text))
        if column.note:
            doubt = "date order" if column.kind == "date" else "large integers"
            findings.append(Finding(doubt, name, rows, f"Column {name!r} {column.note}."))
        if column.kind == "category":
            assert column.levels is not None
            counts = np.bincount(column.values[~column.is_missing], minlength=len(column.levels))
            rare = int(((counts > 0) & (counts < RARE)).sum())
            if rare:
                pooled = least_rows(counts) > 1
                outcome = (
                    f"{'it counts' if rare == 1 else 'they count'} as unknown"
                    if pooled
                    else "little is learned about them"
                )
                categories = counted(rare, "category", "categories")
                text = f"Column {name!r} has {categories} with a single row; {outcome}."
                findings.append(Finding("rare", name, rare, text))


def unread_finding(column: Column, verb: str) -> Finding:
    """The finding about cells that do not fit the kind of their column."""
    cells = counted(column.unread, "cell says something else", "cells say something else")
    shown = f" (for instance {_short(column.unread_example)!r})" if column.unread_example else ""
    count = "counts" if column.unread == 1 else "count"
    text = f"Column {column.name!r} {verb} {column.kind}s; {cells}{shown} and {count} as missing."
    return Finding("unread", column.name, column.unread, text)


def read_groups(column: Column) -> np.ndarray:
    """Group codes; rows without a group form one group together."""
    return column.codes()[0].astype(np.int64)


def names_of_groups(column: Column) -> list[str]:
    """The name of each code of `read_groups`."""
    first = np.unique(column.codes()[0], return_index=True)[1]
    return ["missing" if (cell := column.cell(int(i))) is None else str(cell) for i in first]


def read_times(column: Column) -> np.ndarray:
    """Sortable times; none may be missing."""
    if column.levels is not None:
        raise WonderlandError(f"The time column {column.name!r} holds neither dates nor numbers (it is {column.kind}).")
    if column.missing:
        row = int(np.flatnonzero(column.is_missing)[0]) + 1
        raise WonderlandError(
            f"The time column {column.name!r} has no time in {column.missing:,} of {len(column):,} rows (first in row {row})."
        )
    return column.values


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else text[:23] + "…"
