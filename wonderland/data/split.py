"""Splits: four disjoint parts of a dataset: train, validation, calibration, test."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, mix
from wonderland.data.dataset import Dataset, counted

PARTS = ("train", "validation", "calibration", "test")


class Parts(ABC):
    """The parts of a dataset by name. What a part is depends on the kind of data: row numbers, a file of tokens, a time range."""

    train: Any
    note: str
    folds: np.ndarray | None

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Any]:
        """Each part by its name."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 over what is in which part: two splits are the same when this is."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The split as plain data, for the record of a run."""


@dataclass(frozen=True)
class Split(Parts):
    """Row numbers of each part, sorted. With folds, `folds[i]` is the fold of row i, -1 in the test part.

    `note` says which requirement could not be met, and is empty otherwise.
    """

    train: np.ndarray
    validation: np.ndarray
    calibration: np.ndarray
    test: np.ndarray
    folds: np.ndarray | None = None
    note: str = ""
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in PARTS}

    @property
    def digest(self) -> str:
        """SHA-256 over which row is in which part: two splits are the same when this is."""
        total = hashlib.sha256()
        for name, rows in self.parts.items():
            total.update(f"{name}:{len(rows)};".encode() + rows.astype("<i8").tobytes())
        if self.folds is not None:
            total.update(b"folds;" + self.folds.astype("<i1").tobytes())
        return total.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The split as plain data: how it was made, its sizes, and its digest."""
        sizes = {name: len(rows) for name, rows in self.parts.items()}
        folds = None if self.folds is None else int(self.folds.max()) + 1
        return {
            "seed": self.seed,
            **self.settings,
            "sizes": sizes,
            "folds": folds,
            "digest": self.digest,
            "note": self.note,
        }


def split(
    dataset: Dataset,
    *,
    seed: int = 0,
    test: float = 0.2,
    validation: float = 0.1,
    calibration: float = 0.1,
    folds: int | None = None,
) -> Split:
    """Split a dataset: stratified by class or by target quantile; groups stay together; with times, training rows come first.

    Rows that came as a separate test set are the test part. With `folds=k` only the test part is split off; all other rows are
    `train`, and each belongs to one of k folds.
    """
    if dataset.assigned is not None:
        return _split_as_assigned(dataset, validation, calibration, seed)
    test_rows = dataset.test_rows
    fractions = _fractions(0.0 if test_rows is not None else test, validation, calibration, folds)
    strata = _strata(dataset)
    shares = [fractions[name] for name in PARTS]
    other_rows = np.arange(len(dataset)) if test_rows is None else np.flatnonzero(~test_rows)
    if len(other_rows) < 2 * sum(share > 0 for share in shares):
        parts = sum(share > 0 for share in shares)
        rows = counted(len(other_rows), "row is", "rows are")
        raise WonderlandError(f"{rows} too few to cut into {parts} parts: at least {2 * parts} are needed. Add rows.")
    groups = None if dataset.groups is None else dataset.groups[other_rows]
    if dataset.times is None:
        _check_groups(dataset, groups, sum(share > 0 for share in shares), "parts")
    part = np.full(len(dataset), 3)
    if dataset.times is not None:
        if folds:
            raise WonderlandError(
                "Folds mix past and future, so they cannot be used with a time column. Leave folds out."
            )
        part[other_rows] = _by_time(dataset.times[other_rows], groups, shares)
    else:
        part[other_rows] = _stratified_parts(strata[other_rows], groups, shares, mix(seed, 1), folds or 1)
    fold = None
    if folds:
        rest = np.flatnonzero(part == 0)
        groups = None if dataset.groups is None else dataset.groups[rest]
        if len(rest) < 2 * folds:
            rows = counted(len(rest), "row is", "rows are")
            raise WonderlandError(
                f"{rows} too few for {folds} folds: at least {2 * folds} are needed. Add rows, or use fewer folds."
            )
        _check_groups(dataset, groups, folds, "folds")
        fold = np.full(len(dataset), -1, np.int8)
        fold[rest] = _stratified_folds(strata[rest], groups, folds, mix(seed, 2))
    note = _note_missing_classes(dataset, part, shares, folds)
    rows_of_parts = [np.flatnonzero(part == i).astype(np.int64) for i in range(4)]
    return Split(*rows_of_parts, folds=fold, note=note, seed=seed, settings={"fractions": fractions})


def read_assigned(cells: pd.Series, column: str) -> np.ndarray:
    """The part of each row (n,), an index of PARTS, from a column that names it; -1 for an empty cell.

    >>> read_assigned(pd.Series(["train", "Test", None, "valid"]), "part").tolist()
    [0, 3, -1, 1]
    """
    part = np.full(len(cells), -1, np.int64)
    for row, cell in enumerate(cells):
        if cell is None or (isinstance(cell, float) and np.isnan(cell)) or cell is pd.NA or not str(cell).strip():
            continue
        name = _SPELLINGS.get(str(cell).strip().casefold())
        if name is None:
            raise WonderlandError(
                f"Column {column!r} (given as split) says {str(cell)[:40]!r} in row {row + 1}: it may say "
                "train, validation, calibration or test, or be empty."
            )
        part[row] = PARTS.index(name)
    if not (part == 0).any():
        raise WonderlandError(f"Column {column!r} (given as split) gives no row to train.")
    if not (part == 3).any():
        raise WonderlandError(f"Column {column!r} (given as split) gives no row to test.")
    return part


_SPELLINGS = {"train": "train", "training": "train", "validation": "validation", "valid": "validation", "val": "validation",
              "dev": "validation", "calibration": "calibration", "cal": "calibration", "test": "test", "testing": "test"}  # fmt: skip


def _split_as_assigned(dataset: Dataset, validation: float, calibration: float, seed: int) -> Split:
    """The parts that a column gives; a missing validation part is cut from train, a missing calibration part from validation."""
    assert dataset.assigned is not None
    part, strata, note = dataset.assigned.copy(), _strata(dataset), []
    if not (part == 1).any():
        share = validation + (0.0 if (part == 2).any() else calibration)
        _move_share(part, strata, dataset.groups, 0, 1, share, mix(seed, 3))
        note.append("The validation part is cut from the training part.")
    if not (part == 2).any():
        _move_share(part, strata, dataset.groups, 1, 2, 0.5, mix(seed, 4))
        note.append("The calibration part is cut from the validation part.")
    for code, label in enumerate(() if dataset.y is None or dataset.y.ndim == 2 else dataset.classes or ()):
        assert dataset.y is not None
        if (dataset.y[part > 0] == code).any() and not (dataset.y[part == 0] == code).any():
            raise WonderlandError(
                f"The training part that the data name has no row of class {label!r}, but another part has."
            )
    unassigned = int((part < 0).sum())
    if unassigned:
        note.append(f"{counted(unassigned, 'row takes', 'rows take')} no part: the cell that says which is empty.")
    rows_of_parts = [np.flatnonzero(part == i).astype(np.int64) for i in range(4)]
    for name, rows in zip(PARTS, rows_of_parts, strict=True):
        if not len(rows):
            raise WonderlandError(
                f"The {name} part would have no rows: give more rows, or a column with all four parts."
            )
    return Split(*rows_of_parts, note=" ".join(note), seed=seed, settings={"assigned": True})


def _move_share(
    part: np.ndarray, strata: np.ndarray, groups: np.ndarray | None, source: int, goal: int, share: float, seed: int
) -> None:
    """Move a share of the rows of one part to another, in place."""
    rows = np.flatnonzero(part == source)
    if len(rows) < 4:
        raise WonderlandError(
            f"{counted(len(rows), 'row is', 'rows are')} too few to cut a part of its own from: add rows."
        )
    shares = [1 - share, share, 0.0, 0.0]
    drawn = _stratified_parts(strata[rows], None if groups is None else groups[rows], shares, seed, 1)
    part[rows[drawn == 1]] = goal


def _fractions(test: float, validation: float, calibration: float, folds: int | None) -> dict[str, float]:
    if folds is not None and not 2 <= folds <= 100:
        raise WonderlandError(f"folds is {folds}; it must be between 2 and 100.")
    if folds:
        validation = calibration = 0.0
    asked = {"validation": validation, "calibration": calibration, "test": test}
    for name, share in asked.items():
        if not 0 <= share < 1:
            raise WonderlandError(f"{name} is {share}; it must be at least 0 and below 1.")
    train = 1 - sum(asked.values())
    if train < 0.05:
        raise WonderlandError(
            f"test, validation and calibration together take {1 - train:.0%} of the rows; leave some to train on."
        )
    return {"train": round(train, 12), **asked}


def _check_groups(dataset: Dataset, groups: np.ndarray | None, least: int, noun: str) -> None:
    if groups is None or (total := len(np.unique(groups))) >= least:
        return
    several = "There is 1 group" if total == 1 else f"There are {total} groups"
    where = f" in column {dataset.group!r}" if dataset.group else ""
    fewer = "use fewer folds" if noun == "folds" else "leave the option group out"
    raise WonderlandError(
        f"{several}{where}; {least} {noun} need at least {least} groups. Choose a column with more groups, or {fewer}."
    )


def _strata(dataset: Dataset) -> np.ndarray:
    """The class of each row; for regression the quantile bin of its target; zeros without a target."""
    rows = len(dataset)
    if dataset.y is None:
        return np.zeros(rows, np.int64)
    if dataset.y.ndim == 2:
        return _rarest_labels(dataset.y)
    if dataset.classes is not None:
        return dataset.y.astype(np.int64)
    bins = int(np.clip(rows // 20, 1, 20))
    ranks = np.empty(rows, np.int64)
    ranks[np.argsort(dataset.y, kind="stable")] = np.arange(rows)
    return ranks * bins // rows


def _rarest_labels(y: np.ndarray) -> np.ndarray:
    """The rarest label of each row, so that rare labels reach every part; one more than the last label for rows without any."""
    rare = np.argsort(np.argsort(y.sum(0), kind="stable"), kind="stable")
    ranks = np.where(y > 0, rare, y.shape[1])
    return ranks.min(1).astype(np.int64)


def _stratified_parts(
    strata: np.ndarray, groups: np.ndarray | None, shares: list[float], seed: int, folds: int
) -> np.ndarray:
    """The part of each row, at random with the given shares in each stratum; rows of one group stay together, and the training
    part gets at least `folds` groups."""
    random = np.random.Generator(np.random.Philox(seed))
    if groups is not None:
        return _assign_groups(strata, groups, shares, random, folds)
    part = np.zeros(len(strata), np.int64)
    carry = np.zeros(len(shares))
    order = random.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    _, starts = np.unique(strata[order], return_index=True)
    for rows in np.split(order, starts[1:]):
        counts = _rows_per_part(len(rows), np.asarray(shares), carry)
        part[rows] = np.repeat(np.arange(len(shares)), counts)
    return part


def _rows_per_part(rows: int, shares: np.ndarray, carry: np.ndarray) -> np.ndarray:
    """How many rows of a stratum each part gets: its share, and at least one if there are enough for all. Rounding errors are
    carried over to the next stratum; the first part gets the remaining rows."""
    least = (shares > 0) & (rows >= (shares > 0).sum())
    wanted = rows * shares + carry
    counts = np.where(shares > 0, np.maximum(np.floor(wanted + 0.5), least), 0).astype(np.int64)
    counts[0] = 0
    while counts.sum() > rows - 1:
        counts[np.argmax(np.where(counts > least, counts - wanted, -np.inf))] -= 1
    counts[0] = rows - counts.sum()
    carry[:] = np.clip(wanted - counts, -1, 1)
    return counts


def _stratified_folds(strata: np.ndarray, groups: np.ndarray | None, folds: int, seed: int) -> np.ndarray:
    """The fold of each row: shuffled rows, sorted by stratum, get the fold numbers in turn."""
    random = np.random.Generator(np.random.Philox(seed))
    if groups is not None:
        return _assign_groups(strata, groups, [1 / folds] * folds, random)
    order = random.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    fold = np.empty(len(strata), np.int64)
    fold[order] = np.arange(len(strata)) % folds
    return fold


def _assign_groups(
    strata: np.ndarray, groups: np.ndarray, shares: list[float], random: np.random.Generator, least_train: int = 1
) -> np.ndarray:
    """The part of each row, greedily: groups, largest first, go to the part that lacks most of the strata they contain. The first
    part gets at least `least_train` groups if there are enough, every other part at least one."""
    codes = np.unique(groups, return_inverse=True)[1]
    group_count = int(codes.max()) + 1
    active = np.flatnonzero(np.asarray(shares) > 0)
    stratum_values, strata = np.unique(strata, return_inverse=True)
    counts = np.zeros((group_count, len(stratum_values)))
    np.add.at(counts, (codes, strata), 1)
    shortfall = np.asarray(shares)[active, None] * counts.sum(0)
    scale = 1 / np.maximum(counts.sum(0), 1)
    order = random.permutation(group_count)
    order = order[np.argsort(-counts[order].sum(1), kind="stable")]
    part_of_group = np.empty(group_count, np.int64)
    groups_needed = np.ones(len(active), np.int64)
    groups_needed[0] = min(least_train, group_count - len(active) + 1)
    for left, group in zip(range(group_count, 0, -1), order, strict=True):
        choices = np.flatnonzero(groups_needed) if left <= groups_needed.sum() else np.arange(len(active))
        gain = [((2 * shortfall[p] - counts[group]) * counts[group] * scale).sum() for p in choices]
        best = choices[int(np.argmax(gain))]
        shortfall[best] -= counts[group]
        groups_needed[best] = max(0, groups_needed[best] - 1)
        part_of_group[group] = active[best]
    return part_of_group[codes]


def _by_time(times: np.ndarray, groups: np.ndarray | None, shares: list[float]) -> np.ndarray:
    """The part of each row in order of time; rows of the same time (or of one group) stay together."""
    moments = np.unique(times, return_inverse=True)[1]
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
        first = np.full(codes.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, codes, moments)
        moments = np.unique(first[codes], return_inverse=True)[1]
    sizes = np.cumsum(np.bincount(moments))
    active = [i for i, share in enumerate(shares) if share > 0]
    if len(sizes) < len(active):
        raise WonderlandError(
            f"The time column holds {counted(len(sizes), 'time', 'different times')}; {len(active)} parts need at least "
            f"{len(active)}. Give finer times, or leave the option time out."
        )
    part = np.zeros(len(times), np.int64)
    stop = 0
    for place, i in enumerate(active):
        begin = stop
        goal = sum(shares[: i + 1]) * len(times)
        stop = int(np.argmin(np.abs(sizes - goal))) + 1
        stop = int(np.clip(stop, begin + 1, len(sizes) - (len(active) - place - 1)))
        part[(moments >= begin) & (moments < stop)] = i
    if groups is not None:
        edges = [(times[part == i].min(), times[part == i].max()) for i in active]
        if any(before[1] >= after[0] for before, after in pairwise(edges)):
            raise WonderlandError(
                "Groups overlap in time, so no split keeps groups whole and the future out of training. "
                "Give a group column or a time column, not both."
            )
    return part


def _note_missing_classes(dataset: Dataset, part: np.ndarray, shares: list[float], folds: int | None) -> str:
    """Sentences about classes that are missing in a part, or have too few rows."""
    if dataset.y is None or not dataset.classes or dataset.y.ndim == 2:
        return ""
    active = [i for i, share in enumerate(shares) if share > 0]
    seen = np.zeros((4, len(dataset.classes)), np.int64)
    np.add.at(seen, (part, dataset.y), 1)
    lacking = [name for i, name in enumerate(dataset.classes) if seen[:, i].any() and (seen[active, i] == 0).any()]
    notes = []
    if lacking:
        names = ", ".join(repr(name) for name in lacking[:3]) + (
            f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        )
        notes.append(f"Not every part holds a row of class {names}.")
    untrained = [name for i, name in enumerate(dataset.classes) if seen[:, i].any() and seen[0, i] == 0]
    if untrained:
        notes.append(f"Class {untrained[0]!r} has no row to train on.")
    if folds and (few := [name for i, name in enumerate(dataset.classes) if 0 < seen[0, i] < folds]):
        notes.append(f"Class {few[0]!r} has fewer rows than there are folds.")
    return " ".join(notes)
