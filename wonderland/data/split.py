"""Four parts that share nothing: train, validation, calibration, test."""

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
        """What a record keeps."""


@dataclass(frozen=True)
class Split(Parts):
    """Row numbers of each part, sorted. With folds, `folds[i]` is the fold of row i, -1 in the test part.

    `note` says what could not be honoured, and is empty otherwise.
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
        """What a record keeps: how the split was made, the sizes, and the digest that proves it."""
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
    """Cut a dataset into parts: stratified by class or by target quantile, groups whole, the future never in training.

    Rows that came as a test set of their own are the test part. With `folds=k` only the test part is cut off; the rest is all `train`, and each of its rows belongs to one of k folds.
    """
    if dataset.assigned is not None:
        return _as_assigned(dataset, validation, calibration, seed)
    own = dataset.test_rows
    fractions = _fractions(0.0 if own is not None else test, validation, calibration, folds)
    strata = _strata(dataset)
    wanted = [fractions[name] for name in PARTS]
    learned = np.arange(len(dataset)) if own is None else np.flatnonzero(~own)
    if len(learned) < 2 * sum(share > 0 for share in wanted):
        parts = sum(share > 0 for share in wanted)
        rows = counted(len(learned), "row is", "rows are")
        raise WonderlandError(f"{rows} too few to cut into {parts} parts: at least {2 * parts} are needed. Add rows.")
    groups = None if dataset.groups is None else dataset.groups[learned]
    if dataset.times is None:
        _check_groups(dataset, groups, sum(share > 0 for share in wanted), "parts")
    part = np.full(len(dataset), 3)
    if dataset.times is not None:
        if folds:
            raise WonderlandError(
                "Folds mix past and future, so they cannot be used with a time column. Leave folds out."
            )
        part[learned] = _by_time(dataset.times[learned], groups, wanted)
    else:
        part[learned] = _draw(strata[learned], groups, wanted, mix(seed, 1), folds or 1)
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
        fold[rest] = _deal(strata[rest], groups, folds, mix(seed, 2))
    note = _note(dataset, part, wanted, folds)
    cut = [np.flatnonzero(part == i).astype(np.int64) for i in range(4)]
    return Split(*cut, folds=fold, note=note, seed=seed, settings={"fractions": fractions})


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


def _as_assigned(dataset: Dataset, validation: float, calibration: float, seed: int) -> Split:
    """The parts that a column gives; a missing validation part is cut from train, a missing calibration part from validation."""
    assert dataset.assigned is not None
    part, strata, note = dataset.assigned.copy(), _strata(dataset), []
    if not (part == 1).any():
        share = validation + (0.0 if (part == 2).any() else calibration)
        _cut_off(part, strata, dataset.groups, 0, 1, share, mix(seed, 3))
        note.append("The validation part is cut from the training part.")
    if not (part == 2).any():
        _cut_off(part, strata, dataset.groups, 1, 2, 0.5, mix(seed, 4))
        note.append("The calibration part is cut from the validation part.")
    idle = int((part < 0).sum())
    if idle:
        note.append(f"{counted(idle, 'row takes', 'rows take')} no part: the cell that says which is empty.")
    cut = [np.flatnonzero(part == i).astype(np.int64) for i in range(4)]
    for name, rows in zip(PARTS, cut, strict=True):
        if not len(rows):
            raise WonderlandError(
                f"The {name} part would have no rows: give more rows, or a column with all four parts."
            )
    return Split(*cut, note=" ".join(note), seed=seed, settings={"assigned": True})


def _cut_off(
    part: np.ndarray, strata: np.ndarray, groups: np.ndarray | None, source: int, goal: int, share: float, seed: int
) -> None:
    """Give a share of the rows of one part to another, in place."""
    rows = np.flatnonzero(part == source)
    if len(rows) < 4:
        raise WonderlandError(
            f"{counted(len(rows), 'row is', 'rows are')} too few to cut a part of its own from: add rows."
        )
    shares = [1 - share, share, 0.0, 0.0]
    drawn = _draw(strata[rows], None if groups is None else groups[rows], shares, seed, 1)
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


def _check_groups(dataset: Dataset, groups: np.ndarray | None, least: int, what: str) -> None:
    if groups is None or (total := len(np.unique(groups))) >= least:
        return
    several = "There is 1 group" if total == 1 else f"There are {total} groups"
    where = f" in column {dataset.group!r}" if dataset.group else ""
    fewer = "use fewer folds" if what == "folds" else "leave the option group out"
    raise WonderlandError(
        f"{several}{where}; {least} {what} need at least {least} groups. Choose a column with more groups, or {fewer}."
    )


def _strata(dataset: Dataset) -> np.ndarray:
    """The class of each row; for regression the quantile bin of its target; zeros without a target."""
    rows = len(dataset)
    if dataset.y is None:
        return np.zeros(rows, np.int64)
    if dataset.classes is not None:
        return dataset.y.astype(np.int64)
    bins = int(np.clip(rows // 20, 1, 20))
    ranks = np.empty(rows, np.int64)
    ranks[np.argsort(dataset.y, kind="stable")] = np.arange(rows)
    return ranks * bins // rows


def _draw(strata: np.ndarray, groups: np.ndarray | None, shares: list[float], seed: int, folds: int) -> np.ndarray:
    """Part numbers, at random but balanced within each stratum; rows of one group stay together, with a group to train on
    for each fold."""
    random = np.random.Generator(np.random.Philox(seed))
    if groups is not None:
        return _deal_groups(strata, groups, shares, random, folds)
    part = np.zeros(len(strata), np.int64)
    carry = np.zeros(len(shares))
    order = random.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    _, starts = np.unique(strata[order], return_index=True)
    for rows in np.split(order, starts[1:]):
        counts = _quota(len(rows), np.asarray(shares), carry)
        part[rows] = np.repeat(np.arange(len(shares)), counts)
    return part


def _quota(rows: int, shares: np.ndarray, carry: np.ndarray) -> np.ndarray:
    """How many of a stratum's rows each part gets: its share, at least one when there are enough for all, rounding errors
    carried over to the next stratum; the first part takes what is left."""
    least = (shares > 0) & (rows >= (shares > 0).sum())
    wanted = rows * shares + carry
    counts = np.where(shares > 0, np.maximum(np.floor(wanted + 0.5), least), 0).astype(np.int64)
    counts[0] = 0
    while counts.sum() > rows - 1:
        counts[np.argmax(np.where(counts > least, counts - wanted, -np.inf))] -= 1
    counts[0] = rows - counts.sum()
    carry[:] = np.clip(wanted - counts, -1, 1)
    return counts


def _deal(strata: np.ndarray, groups: np.ndarray | None, folds: int, seed: int) -> np.ndarray:
    """Fold numbers: the rows of each stratum are dealt out like cards, one stratum after the other."""
    random = np.random.Generator(np.random.Philox(seed))
    if groups is not None:
        return _deal_groups(strata, groups, [1 / folds] * folds, random)
    order = random.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    fold = np.empty(len(strata), np.int64)
    fold[order] = np.arange(len(strata)) % folds
    return fold


def _deal_groups(
    strata: np.ndarray, groups: np.ndarray, shares: list[float], random: np.random.Generator, least: int = 1
) -> np.ndarray:
    """Whole groups, largest first, each to the part that is shortest of what the group holds; `least` groups, if there are
    enough, to the first part, and one to each other part."""
    codes = np.unique(groups, return_inverse=True)[1]
    total = int(codes.max()) + 1
    active = np.flatnonzero(np.asarray(shares) > 0)
    kinds, strata = np.unique(strata, return_inverse=True)
    holds = np.zeros((total, len(kinds)))
    np.add.at(holds, (codes, strata), 1)
    short = np.asarray(shares)[active, None] * holds.sum(0)
    scale = 1 / np.maximum(holds.sum(0), 1)
    order = random.permutation(total)
    order = order[np.argsort(-holds[order].sum(1), kind="stable")]
    home = np.empty(total, np.int64)
    lacking = np.ones(len(active), np.int64)
    lacking[0] = min(least, total - len(active) + 1)
    for left, group in zip(range(total, 0, -1), order, strict=True):
        choices = np.flatnonzero(lacking) if left <= lacking.sum() else np.arange(len(active))
        gain = [((2 * short[p] - holds[group]) * holds[group] * scale).sum() for p in choices]
        best = choices[int(np.argmax(gain))]
        short[best] -= holds[group]
        lacking[best] = max(0, lacking[best] - 1)
        home[group] = active[best]
    return home[codes]


def _by_time(times: np.ndarray, groups: np.ndarray | None, shares: list[float]) -> np.ndarray:
    """Part numbers in order of time; rows of one moment (or of one group) are never cut apart."""
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


def _note(dataset: Dataset, part: np.ndarray, shares: list[float], folds: int | None) -> str:
    """What could not be honoured, in a sentence."""
    if dataset.y is None or not dataset.classes:
        return ""
    active = [i for i, share in enumerate(shares) if share > 0]
    seen = np.zeros((4, len(dataset.classes)), np.int64)
    np.add.at(seen, (part, dataset.y), 1)
    lacking = [name for i, name in enumerate(dataset.classes) if seen[:, i].any() and (seen[active, i] == 0).any()]
    notes = []
    if lacking:
        some = ", ".join(repr(name) for name in lacking[:3]) + (
            f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        )
        notes.append(f"Not every part holds a row of class {some}.")
    untrained = [name for i, name in enumerate(dataset.classes) if seen[:, i].any() and seen[0, i] == 0]
    if untrained:
        notes.append(f"Class {untrained[0]!r} has no row to train on.")
    if folds and (few := [name for i, name in enumerate(dataset.classes) if 0 < seen[0, i] < folds]):
        notes.append(f"Class {few[0]!r} has fewer rows than there are folds.")
    return " ".join(notes)
