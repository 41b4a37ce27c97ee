"""The answers of texts: classes, several labels, or numbers, from the target columns of a frame."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from wonderland.data.cells import MISSING, label
from wonderland.data.columns import read_column
from wonderland.data.dataset import MULTILABEL, Finding, counted
from wonderland.data.labels import label_target, read_labels
from wonderland.data.read import is_number
from wonderland.data.target import numbers_first, read_target


def read_answers(
    frame: pd.DataFrame, target: str, task: str | None, columns: Sequence[str], findings: list[Finding]
) -> tuple[np.ndarray, str, list[str] | None, np.ndarray]:
    """The answers of all rows, the task, the classes or labels, and the rows that have an answer.

    `target` names one column, or several of 0 and 1 with commas between them.
    """
    labels = label_target(frame, target, task, columns)
    if labels is None:
        cells = pd.Series(frame[target])
        if task != "regression" and (word := named_none(cells)) is not None:
            return _with_none(cells, target, word, findings)
        return read_target(read_column(target, cells), task, findings)
    y, names, rows = read_labels(frame, labels, findings)
    return y, MULTILABEL, names, rows


def named_none(cells: pd.Series) -> str | None:
    """The class whose name is a word for a missing cell, such as "none": one of several words, and as common as a class.

    >>> named_none(pd.Series(["none", "for", "against", "none", "none"] * 9))
    'none'
    """
    if not all(isinstance(cell, str) for cell in cells):
        return None
    counts = cells.str.strip().value_counts()
    words = [str(name) for name in counts.index if str(name).casefold() in MISSING]
    others = [str(name) for name in counts.index if str(name).casefold() not in MISSING]
    if len(words) != 1 or not words[0].isalpha() or counts[words[0]] < max(5, 0.02 * len(cells)):
        return None
    return words[0] if 1 <= len(others) <= 100 and not any(map(is_number, others)) else None


def _with_none(
    cells: pd.Series, target: str, word: str, findings: list[Finding]
) -> tuple[np.ndarray, str, list[str], np.ndarray]:
    """The answers where a word for a missing cell is a class."""
    labels = [label(cell) for cell in cells]
    classes = sorted(set(labels), key=numbers_first)
    count = labels.count(word)
    text = f"{word!r} is one of the {len(classes)} classes of {target!r} ({counted(count, 'row', 'rows')}): leave cells empty where the class is not known."
    findings.append(Finding("class", word, count, text))
    code = {name: i for i, name in enumerate(classes)}
    y = np.array([code[name] for name in labels], np.int64)
    return y, "binary" if len(classes) == 2 else "multiclass", classes, np.arange(len(y))
