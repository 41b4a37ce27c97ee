"""Hints about a table: columns by which it should perhaps be split, and classes that differ in spelling only."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from wonderland.data.columns import Column
from wonderland.data.dataset import Finding

_GROUP_NAME = re.compile(
    r"(?:^|[\s_.-])(?:id|uuid|key|nr|no|number|patient|subject|person|user|customer|client|policy|session|household|account|device)s?$",
    re.I,
)
_TIME_NAME = re.compile(r"(?:^|[\s_.-])(?:date|time|datetime|timestamp|when|day|month|year)s?$", re.I)
FEWEST_GROUPS = 10
MOST_CLASSES = 200


def split_hints(columns: Sequence[Column], group: str | None, time: str | None) -> list[Finding]:
    """Findings about columns whose values repeat in groups of rows, and about dates in order, where no such split was asked for."""
    findings = []
    for column in columns:
        if group is None and _repeats(column):
            text = (
                f"Column {column.name!r} has {column.distinct:,} values in {len(column):,} rows. If the rows of a value belong "
                f"together, keep them in one part of the split: --group {column.name!r}."
            )
            findings.append(Finding("group hint", column.name, column.distinct, text))
        if group is None and time is None and column.kind == "date" and _is_in_order(column):
            text = (
                f"Column {column.name!r} holds dates. If the model is to predict later rows, test it on the latest: "
                f"--time {column.name!r}."
            )
            findings.append(Finding("time hint", column.name, column.distinct, text))
    return findings


def _repeats(column: Column) -> bool:
    """Whether values repeat as those of an identifier of groups do: by its name, or in blocks of equal rows."""
    rows, distinct = len(column) - column.missing, column.distinct
    counts_things = column.levels is not None or column.whole
    if not counts_things or column.kind in ("text", "date") or distinct < FEWEST_GROUPS or rows < 1.2 * distinct:
        return False
    codes = column.codes()[0]
    if np.bincount(codes).max() > 0.2 * len(codes):
        return False
    named = bool(_GROUP_NAME.search(column.name) or re.search(r"[a-z](?:Id|ID)$", column.name))
    blocks = 1 + int((codes[1:] != codes[:-1]).sum())
    in_blocks = column.levels is not None and blocks <= 1.1 * distinct and distinct >= 2 * FEWEST_GROUPS
    return named or in_blocks


def _is_in_order(column: Column) -> bool:
    """Whether dates are called so, or rise from row to row."""
    present = column.values[~column.is_missing]
    if column.distinct < 20:
        return False
    return bool(_TIME_NAME.search(column.name)) or bool((np.diff(present) >= 0).mean() > 0.99)


def similar_labels(classes: Sequence[str], counts: np.ndarray) -> list[Finding]:
    """Findings about classes that differ in case, punctuation or one letter only.

    >>> [finding.count for finding in similar_labels(["Positive", "negative", "positve"], np.array([40, 50, 3]))]
    [3]
    """
    findings = []
    order = np.argsort(-counts, kind="stable") if len(classes) <= MOST_CLASSES else []
    for place, code in enumerate(map(int, order)):
        for rarer in map(int, order[place + 1 :]):
            first, second = classes[code], classes[rarer]
            plain = [re.sub(r"[\W_]+", "", name.casefold()) for name in (first, second)]
            few = counts[rarer] <= max(5, 0.05 * counts[code])
            if not plain[0] or not (plain[0] == plain[1] or (few and _one_letter(*plain))):
                continue
            rows = [f"{int(counts[i]):,} row{'' if counts[i] == 1 else 's'}" for i in (code, rarer)]
            text = (
                f"Classes {first!r} ({rows[0]}) and {second!r} ({rows[1]}) differ in spelling only. If they are the same, write them "
                "in one way."
            )
            findings.append(Finding("similar labels", second, int(counts[rarer]), text))
    return findings[:10]


def _one_letter(first: str, second: str) -> bool:
    """Whether two words without digits are one inserted, lost, changed or exchanged letter apart."""
    if min(len(first), len(second)) < 5 or abs(len(first) - len(second)) > 1 or any(map(str.isdigit, first + second)):
        return False
    short, long = sorted((first, second), key=len)
    if len(short) < len(long):
        return any(long[:i] + long[i + 1 :] == short for i in range(len(long)))
    apart = [i for i, (a, b) in enumerate(zip(short, long, strict=True)) if a != b]
    if len(apart) == 2:
        (i, j), *_ = pairwise(apart)
        return j == i + 1 and short[i] == long[j] and short[j] == long[i]
    return len(apart) == 1
