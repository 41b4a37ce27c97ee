"""The target of a table: which column it is, which task follows from it, and its values or class codes."""

from collections.abc import Collection

import numpy as np

from wonderland.core import WonderlandError, nearest
from wonderland.data.cells import label
from wonderland.data.columns import Column
from wonderland.data.dataset import TASKS, Finding

MANY_MISSING_SHARE = 0.1  # of the rows; above it, the message mentions that a class may be spelt like a missing value
MISSING_HINT = "Empty cells and words such as NA, None and ? count as missing: give a class of that name another one."
TARGET_NAMES = ("target", "label", "class", "y", "outcome")
MAX_CLASSES = 1000


def choose_target(names: list[str], target: str | None, taken: Collection[str | None], findings: list[Finding]) -> str:
    """The name of the target column: the one given, else one with a usual name, else the last column."""
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
    by_name = next((folded[name] for name in TARGET_NAMES if name in folded), None)
    chosen = by_name or free[-1]
    reason = "by its name" if by_name else "because it is the last column"
    findings.append(Finding("target", chosen, 1, f"Column {chosen!r} is taken as the target {reason}."))
    return chosen


def read_target(
    column: Column, task: str | None, findings: list[Finding]
) -> tuple[np.ndarray, str, list[str] | None, np.ndarray]:
    """Target values or class codes for all rows, the task, the classes, and the rows that have a target."""
    name = column.name
    if task is not None and task not in (*TASKS, "classification"):
        raise WonderlandError(f"There is no task {task!r}.{nearest(task, TASKS)} Tasks are {', '.join(TASKS)}.")
    rows = np.flatnonzero(~column.is_missing)
    if len(rows) == 0:
        raise WonderlandError(f"The target {name!r} has no values. Fill it in, or choose another target.")
    if column.missing:
        findings.append(missing_target(name, column.missing, len(column)))
    if column.levels is None and np.isinf(column.values).any():
        row = int(np.flatnonzero(np.isinf(column.values))[0]) + 1
        raise WonderlandError(f"The target {name!r} is infinite in row {row}. Correct it, or leave the cell empty.")
    wanted_task = infer_task(column, len(rows)) if task is None else task
    if wanted_task == "regression":
        _check_numeric(column, task)
        if column.distinct < 2:
            value = column.cell(int(rows[0]))
            raise WonderlandError(
                f"The target {name!r} is always {value}, so there is nothing to learn. Choose another target."
            )
        if task is not None and column.distinct == 2:
            words = column.boolean_words
            text = (
                f"The target {name!r} has two values only, and regression was asked for: a number between them is predicted"
                + (f" ({words[0]!r} is 0, {words[1]!r} is 1). " if words not in (None, ("0", "1")) else ". ")
                + "For classes with probabilities leave task out."
            )
            findings.append(Finding("task", name, 2, text))
        if task is None:
            _note_task(
                findings, name, column.distinct, f"{column.distinct:,} different numbers", "regression", "multiclass"
            )
        return column.values.astype(np.float64), "regression", None, rows
    codes, classes = class_codes(column)
    _check_classes(column, classes, wanted_task, len(rows))
    counts = np.bincount(codes[rows], minlength=len(classes))
    for single in np.flatnonzero(counts == 1)[:5]:
        text = f"Class {classes[single]!r} has a single row: it can be in the training or the test part, not both."
        findings.append(Finding("single row", classes[single], 1, text))
    task_name = "binary" if len(classes) == 2 else "multiclass"
    if task is None:
        other = "regression" if column.kind == "number" else ""
        _note_task(findings, name, len(classes), f"{len(classes)} classes", task_name, other)
    return codes, task_name, classes, rows


def missing_target(name: str, count: int, rows: int) -> Finding:
    """The finding that some rows have no target."""
    has, are = ("has", "is") if count == 1 else ("have", "are")
    text = f"{count:,} of {rows:,} rows {has} no target {name!r} and {are} left out."
    if count > MANY_MISSING_SHARE * rows:
        text += f" {MISSING_HINT}"
    return Finding("target missing", name, count, text)


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
    counts = np.unique(column.values[~column.is_missing], return_counts=True)[1]
    return "regression" if distinct > rows // 200 or (counts < 5).mean() > 0.1 else "classification"


def class_codes(column: Column) -> tuple[np.ndarray, list[str]]:
    """Class codes (-1 where missing) and class names: numbers sorted by size, words alphabetically."""
    if column.levels is None:
        values, first = np.unique(column.values[~column.is_missing], return_index=True)
        names = [label(column.cell(int(row))) for row in np.flatnonzero(~column.is_missing)[first]]
        return np.where(column.is_missing, -1, np.searchsorted(values, np.nan_to_num(column.values))).astype(
            np.int64
        ), names
    levels = [str(level) for level in column.levels]
    order = sorted(np.unique(column.values[~column.is_missing]).tolist(), key=lambda code: numbers_first(levels[code]))
    place = np.full(len(levels) + 1, -1, np.int64)
    place[order] = np.arange(len(order))
    return place[column.values], [levels[code] for code in order]


def numbers_first(name: str) -> tuple[int, float, str]:
    """A key that sorts numbers by size before words by alphabet.

    >>> sorted(["10", "9", "b", "a"], key=numbers_first)
    ['9', '10', 'a', 'b']
    """
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def _check_numeric(column: Column, task: str | None) -> None:
    if column.levels is not None or column.kind == "date":
        value = column.cell(int(np.flatnonzero(~column.is_missing)[0]))
        raise WonderlandError(
            f"The target {column.name!r} is {column.kind}, not a number (for instance {value!r}), so {task} is not possible. "
            "Leave task out, or choose another target."
        )


def _check_classes(column: Column, classes: list[str], task: str, rows: int) -> None:
    name = column.name
    if len(classes) < 2:
        why = f" {MISSING_HINT}" if column.missing > MANY_MISSING_SHARE * len(column) else ""
        raise WonderlandError(
            f"The target {name!r} has one class only ({classes[0]!r}), so there is nothing to learn. Choose another target.{why}"
        )
    if len(classes) > MAX_CLASSES or (len(classes) > 5 and len(classes) > rows / 2):
        advice = (
            "Choose another target"
            if column.levels is not None
            else "Choose regression (option task), or another target"
        )
        why = "; is it an identifier?" if column.levels is not None else "."
        raise WonderlandError(f"The target {name!r} has {len(classes):,} classes in {rows:,} rows{why} {advice}.")
    if task == "binary" and len(classes) != 2:
        raise WonderlandError(
            f"The target {name!r} has {len(classes)} classes, so the task is not binary. Choose multiclass (option task)."
        )


def _note_task(findings: list[Finding], name: str, count: int, content: str, task: str, alternative: str) -> None:
    override = f" If that is wrong, choose {alternative} (option task)." if alternative else ""
    findings.append(Finding("task", name, count, f"The target {name!r} holds {content}: the task is {task}.{override}"))
