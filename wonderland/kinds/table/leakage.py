"""Target leakage: columns that determine the target, and are not known before it."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from wonderland.data.columns import Column
from wonderland.data.dataset import Finding

SMALLEST = 20  # rows; below, chance alone makes perfect columns
ROWS_PER_VALUE = 5


def find_leaks(
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
                text = (
                    f"One threshold on column {column.name!r} separates the classes of {target!r}. It is kept; make sure "
                    "that it is known before the target is."
                )
                findings.append(Finding("separates", column.name, len(y), text))
            continue
        if column.name in keep:
            continue
        hidden.append(column.name)
        text = (
            f"Column {column.name!r} determines the target {target!r} ({how}) and is left out; "
            "the option keep keeps it."
        )
        findings.append(Finding("leakage", column.name, len(y), text))
    return hidden


def determines_class(column: Column, y: np.ndarray) -> str:
    """Says how when a column of few values, missing among them, leaves at most 0.5 % of the majority rule's errors."""
    if not _has_few_values(column):
        return ""
    codes, distinct = column.codes()
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
    if not _has_few_values(column):
        return ""
    codes, distinct = column.codes()
    rows = np.bincount(codes, minlength=distinct)
    centred = y - y.mean()
    means = np.bincount(codes, weights=centred, minlength=distinct) / rows
    total = float((centred**2).sum())
    if total > 0 and float(((centred - means[codes]) ** 2).sum()) <= 1e-4 * total:
        return "each of its values goes with one target value"
    return ""


def _has_few_values(column: Column) -> bool:
    """Whether each value, missing among them, has enough rows to tell what it goes with."""
    return (column.distinct + (column.missing > 0)) * ROWS_PER_VALUE <= len(column)


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
