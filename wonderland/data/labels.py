"""Several labels for each row: one column with a list of names, or a column of 0 and 1 for each label."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest
from wonderland.data.dataset import Finding, counted
from wonderland.data.target import MAX_CLASSES, numbers_first

SEPARATORS = (";", "|")
WRITTEN = "[]"  # cells such as ['a', 'b'], as Python and JSON write lists
LOOKED_AT = 2000
_YES, _NO = {"1", "1.0", "true", "yes"}, {"0", "0.0", "false", "no"}
_WRITTEN = re.compile(r"\s*[\[({]\s*(?:(['\"]?)[^\[\](){}]*\1)?\s*[\])}]\s*")
_ITEM = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,\s][^,]*)")
_HALVES = {"5", "25", "75"}


def separator_of(cells: Any) -> str | None:
    """What separates labels in a column of texts such as "red;blue", "[]" for lists as they are written; None where cells are no lists.

    Lists are there if at least one cell in fifty has the separator and the same names come again in other rows.

    >>> separator_of(pd.Series(["red;blue", "blue", "red", "blue;red"])), separator_of(pd.Series(["a;1", "b;2", "c;3"]))
    (';', None)
    """
    texts = [cell for cell in cells.dropna().head(LOOKED_AT) if isinstance(cell, str)]
    if texts and all(map(_WRITTEN.fullmatch, texts)) and any("," in text for text in texts):
        return WRITTEN
    for separator in SEPARATORS:
        several = [text for text in texts if separator in text]
        if len(several) < max(1, len(texts) / 50):
            continue
        names = [name.strip() for text in texts for name in text.split(separator) if name.strip()]
        different = set(names)
        if 2 <= len(different) <= MAX_CLASSES and len(names) >= 2 * len(different):
            return separator
    return "," if _has_commas(texts) else None


def _has_commas(texts: list[str]) -> bool:
    """Whether commas separate labels: nearly every name stands in several different cells, which a class with a comma in its name
    does not."""
    if sum("," in text for text in texts) < max(2, len(texts) / 50):
        return False
    cells = {text: {name.strip() for name in text.split(",") if name.strip()} for text in texts}
    where: dict[str, int] = {}
    for names in cells.values():
        for name in names:
            where[name] = where.get(name, 0) + 1
    if not 2 <= len(where) <= MAX_CLASSES or max(len(name.split()) for name in where) > 5:
        return False
    again = sum(count > 1 for count in where.values())
    return (
        again >= 0.8 * len(where) and sum(map(len, cells.values())) < len(texts) * 20 and len(texts) >= 2 * len(where)
    )


def _may_be_numbers(cells: Any) -> bool:
    """Whether cells such as 4,7 may be numbers with a decimal comma as well as two labels."""
    texts = [cell.strip() for cell in cells.dropna().head(LOOKED_AT) if isinstance(cell, str)]
    return all(re.fullmatch(r"[+-]?\d+(?:,\d+)?", text) for text in texts)


def flag_columns(frame: pd.DataFrame, taken: Sequence[str] = ()) -> list[str]:
    """The columns that hold 0 and 1 only, both of them.

    >>> flag_columns(pd.DataFrame({"path": ["a", "b"], "cat": [0, 1], "dog": [1, 0], "size": [3, 4]}))
    ['cat', 'dog']
    """
    return [str(name) for name in frame.columns if name not in taken and _is_flag(frame[name])]


def label_target(frame: pd.DataFrame, target: str | None, task: str | None, taken: Sequence[str]) -> list[str] | None:
    """The columns of a target with several labels for a row: one with lists, or some with 0 and 1; None for any other target.

    `target` may name several columns, separated by commas. Without a target, columns are labels if all but those in `taken`
    hold 0 and 1, or if the task is "multilabel".
    """
    names = [str(name) for name in frame.columns]
    if task is not None and task != "multilabel":
        return None
    if target is not None and target not in names and "," in target:
        return [_known(name.strip(), names) for name in target.split(",") if name.strip()]
    if target is not None:
        if target not in names and task is None:
            return None
        named = _known(target, names)
        return [named] if task == "multilabel" or _holds_lists(frame, named) else None
    free = [name for name in names if name not in taken]
    flags = flag_columns(frame, taken)
    if len(flags) >= 2 and (len(flags) == len(free) or task == "multilabel"):
        return flags
    lists = [name for name in free if _holds_lists(frame, name)]
    if len(lists) == 1 and (len(free) == 1 or task == "multilabel"):
        return lists
    if task == "multilabel":
        raise WonderlandError(
            "No column holds several labels: name one with lists such as a;b, or several columns of 0 and 1, with target."
        )
    return None


def _holds_lists(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column holds lists of labels; cells that may be lists or numbers stop."""
    separator = separator_of(frame[name])
    if separator != "," or not _may_be_numbers(frame[name]):
        return separator is not None
    texts = pd.Series(frame[name]).dropna().astype(str)
    with_comma = pd.Series(texts[texts.str.contains(",")])
    fractions = set(with_comma.str.split(",").str[1])
    if (
        len(with_comma) > 0.9 * len(texts)
        or fractions <= _HALVES
        or any(len(text) > 1 and text[0] == "0" for text in fractions)
    ):
        return False
    raise WonderlandError(
        f"Cells of {name!r} such as {with_comma.iloc[0]!r} may be two labels, or a number with a decimal comma: say which with "
        "--task multilabel or --task regression."
    )


def read_labels(
    frame: pd.DataFrame, columns: Sequence[str], findings: list[Finding]
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The labels of rows as 0 and 1, their names, and the rows that have them.

    An empty cell of a list means no label; a row with an empty cell among columns of 0 and 1 is left out. Shapes: y (n, k).

    >>> y, names, _ = read_labels(pd.DataFrame({"tags": ["red;blue", "blue", None]}), ["tags"], [])
    >>> names, y.tolist()
    (['blue', 'red'], [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    """
    if len(columns) == 1:
        y, names = _from_lists(frame[columns[0]], columns[0])
        rows = np.arange(len(frame))
    else:
        y, rows = _from_flags(frame, columns)
        names = [str(name) for name in columns]
        if len(rows) < len(frame):
            count = len(frame) - len(rows)
            text = f"{counted(count, 'row has', 'rows have')} an empty cell among the labels and {'is' if count == 1 else 'are'} left out."
            findings.append(Finding("target missing", ", ".join(names[:5]), count, text))
    constant = [name for name, share in zip(names, y[rows].mean(0), strict=True) if share in (0, 1)]
    if len(constant) == len(names) or len(names) < 2:
        raise WonderlandError("Several labels are learned from at least two of them, and some rows must differ.")
    if constant:
        text = f"Label {constant[0]!r} is the same in every row, so there is nothing to learn about it."
        findings.append(Finding("constant label", constant[0], len(constant), text))
    text = f"Each row has any number of {len(names)} labels ({y[rows].sum(1).mean():.2g} on average): the task is multilabel."
    findings.append(Finding("task", ", ".join(columns[:3]), len(names), text))
    return y, names, rows


def coded(cells: Any, names: Sequence[str]) -> np.ndarray:
    """Lists of names as 0 and 1 for known labels; an unknown name is refused. Shapes: (n,) -> (n, k)."""
    place = {name: code for code, name in enumerate(names)}
    y = np.zeros((len(cells), len(names)))
    for row, given in enumerate(cells):
        for name in given:
            if name not in place:
                raise WonderlandError(
                    f"Row {row + 1} has the label {name!r}, which this model does not know.{nearest(name, list(names))}"
                )
            y[row, place[name]] = 1.0
    return y


def pieces(cells: Any, known: Sequence[str] = ()) -> list[list[str]]:
    """The names in each cell of a column of lists; where few cells do not tell what separates them, `known` names do."""
    separator = separator_of(cells)
    if separator is None and known:
        texts = [str(cell) for cell in cells.dropna()]
        names = set(known)
        separator = next(
            (mark for mark in (*SEPARATORS, WRITTEN, ",") if all(set(_names(text, mark)) <= names for text in texts)),
            None,
        )
    return [[] if pd.isna(cell) else _names(str(cell), separator or ";") for cell in cells]


def _from_lists(cells: Any, column: str) -> tuple[np.ndarray, list[str]]:
    lists = pieces(cells)
    names = sorted({name for given in lists for name in given}, key=numbers_first)
    if len(names) > MAX_CLASSES:
        raise WonderlandError(f"Column {column!r} has {len(names):,} labels; at most {MAX_CLASSES:,} can be learned.")
    if not names:
        raise WonderlandError(f"Column {column!r} has no labels. Fill it in, or choose another target.")
    return coded(lists, names), names


def _from_flags(frame: pd.DataFrame, columns: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    y = np.zeros((len(frame), len(columns)))
    empty = np.zeros(len(frame), bool)
    for place, name in enumerate(columns):
        for row, cell in enumerate(frame[name]):
            if pd.isna(cell):
                empty[row] = True
                continue
            word = str(cell).strip().casefold()
            if word not in _YES | _NO:
                raise WonderlandError(
                    f"Column {name!r} holds {str(cell)[:60]!r} in row {row + 1}: a label column has 1 for yes and 0 for no."
                )
            y[row, place] = word in _YES
    return y, np.flatnonzero(~empty)


def _names(cell: str, separator: str) -> list[str]:
    if separator == WRITTEN:
        items = _ITEM.finditer(cell.strip()[1:-1]) if _WRITTEN.fullmatch(cell) else []
        return [next(filter(None, match.groups()), "").strip() for match in items]
    return [name.strip() for name in cell.split(separator) if name.strip()]


def _is_flag(cells: Any) -> bool:
    words = {str(cell).strip().casefold() for cell in cells.dropna().unique()[:20]}
    return bool(words & _YES) and bool(words & _NO) and words <= _YES | _NO


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise WonderlandError(
            f"There is no column {name!r}.{nearest(name, list(names))} The columns are {', '.join(names[:20])}."
        )
    return name
