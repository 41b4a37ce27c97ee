"""Target leakage: columns that determine the target, and are not known before it."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from wonderland.data.columns import Column
from wonderland.data.dataset import Finding

SMALLEST = 20  # rows; with fewer, columns that determine the target by chance are common
ROWS_PER_VALUE = 5


def find_leaks(
    features: list[Column], y: np.ndarray, task: str, target: str, keep: Collection[str], findings: list[Finding]
) -> list[str]:
    """Columns that determine the target and are left out, unless they are in `keep`; each gives a finding."""
    if len(y) < SMALLEST:
        return []
    leaks = []
    for column in features:
        explanation = determines_value(column, y) if task == "regression" else determines_class(column, y)
        if not explanation:
            if task == "binary" and len(y) >= 100 and separates(column, y):
                text = (
                    f"One threshold on column {column.name!r} separates the classes of {target!r}. It is kept; make sure "
                    "that it is known before the target is."
                )
                findings.append(Finding("separates", column.name, len(y), text))
            continue
        if column.name in keep:
            continue
        leaks.append(column.name)
        text = (
            f"Column {column.name!r} determines the target {target!r} ({explanation}) and is left out; "
            "the option keep keeps it."
        )
        findings.append(Finding("leakage", column.name, len(y), text))
    return leaks


def determines_class(column: Column, y: np.ndarray) -> str:
    """How a column determines the class, or "": predicting the most frequent class of each of its (few) values leaves at most 0.5 %
    of the errors of predicting the most frequent class."""
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
    """How a column determines a number, or "": ranks agree (Spearman at least 0.9999), or its few values explain the target."""
    if column.levels is None and column.distinct > 2:
        present = ~column.is_missing
        if present.sum() >= max(SMALLEST, 0.9 * len(y)) and _spearman(column.values[present], y[present]) >= 0.9999:
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
    """Whether there are at least `ROWS_PER_VALUE` rows for each value, missing counted as one."""
    return (column.distinct + (column.missing > 0)) * ROWS_PER_VALUE <= len(column)


def separates(column: Column, y: np.ndarray) -> bool:
    """Whether one threshold on a numeric column tells the two classes apart."""
    if column.levels is not None or column.missing or column.distinct <= 2:
        return False
    low, high = column.values[y == 0], column.values[y == 1]
    return bool(low.max() < high.min() or high.max() < low.min())


def _spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Absolute rank correlation; a sample of the rows is tried first, which is enough for most columns."""
    step = len(x) // 2000
    if step > 1 and _spearman(x[::step][:2000], y[::step][:2000]) < 0.99:
        return 0.0
    ranks = [pd.Series(values).rank().to_numpy() for values in (x, y)]
    if ranks[0].std() == 0 or ranks[1].std() == 0:
        return 0.0
    return abs(float(np.corrcoef(ranks[0], ranks[1])[0, 1]))
