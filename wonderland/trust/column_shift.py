"""Which columns changed? One test a column, corrected so that all of them together hold the level."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError, mix

ROWS, LEVELS = 2000, 200
CORRECTIONS = ("permutation", "holm", "benjamini-hochberg", "none")


@dataclass(frozen=True)
class ColumnShift:
    """A column: its statistic (the largest gap of distribution functions, or half the gap of shares) and p-values."""

    name: str
    kind: str
    statistic: float
    p_value: float
    corrected: float
    words: str


def holm(p_values: Any) -> ndarray:
    """Holm's correction: the chance of any false alarm stays below the level. Shapes: (k,) -> (k,).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    out = np.empty_like(p)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return out


def benjamini_hochberg(p_values: Any) -> ndarray:
    """The false discovery rate: the expected share of false alarms among alarms. Shapes: (k,) -> (k,).

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)[::-1]
    out = np.empty_like(p)
    out[order] = np.minimum(np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1)), 1)
    return out


def _numeric(values: ndarray) -> bool:
    return values.dtype.kind in "fiub"


def _codes(a: ndarray, b: ndarray) -> tuple[ndarray, str]:
    """A column of both samples as ranks (numbers) or categories; missing values are one more value."""
    if _numeric(a) and _numeric(b):
        both = np.concatenate([a, b]).astype(np.float64)
        missing = np.isnan(both)
        codes = np.unique(np.where(missing, 0.0, both), return_inverse=True)[1] + 1
        return np.where(missing, 0, codes), "number"
    text = np.array([str(value) for value in np.concatenate([a.astype(object), b.astype(object)])])
    names, codes, count = np.unique(text, return_inverse=True, return_counts=True)
    if len(names) > LEVELS:
        # Rare values are put together: a table of thousands of cells has no power.
        common = np.argsort(-count, kind="stable")[: LEVELS - 1]
        place = np.full(len(names), LEVELS - 1)
        place[common] = np.arange(LEVELS - 1)
        codes = place[codes]
    return codes, "category"


def _statistics(codes: ndarray, kind: str, labels: ndarray) -> ndarray:
    """The gap between the samples for each labelling. Shapes: codes (n,), labels (k, n) of 0 and 1 -> (k,)."""
    new = labels.sum(1, keepdims=True)
    old = labels.shape[1] - new
    if kind == "number":
        order = np.argsort(codes, kind="stable")
        ends = np.flatnonzero(np.diff(codes[order], append=-1))
        sums = np.cumsum(labels[:, order], 1)[:, ends]
        return np.abs(sums / new - (ends + 1 - sums) / old).max(1)
    member = np.eye(int(codes.max()) + 1)[codes]
    counts = labels @ member
    return np.abs(counts / new - (member.sum(0) - counts) / old).sum(1) / 2


def _new_among(places: ndarray, count: int) -> ndarray:
    """Labels of some rows for each permutation: the `count` with the last places are the new ones. (k, n) -> (k, n)."""
    least = -np.partition(-places, count - 1, axis=1)[:, count - 1 : count]
    return (places >= least).astype(np.float64)


def column_shift(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    correction: str = "permutation",
    draws: int = 400,
    seed: int = 0,
    left_out: Mapping[str, ndarray] | None = None,
) -> list[ColumnShift]:
    r"""Test each column for a change of its distribution, with p-values corrected for their number.

    Numbers: the largest gap of the two distribution functions (Kolmogorov and Smirnov). Categories: half the sum of the
    gaps of shares. Missing values count as a value. All p-values come from the same permutations of rows, so they are
    exact for small samples too; ties are broken at random. The default correction compares each column's standardised statistic with the
    largest of all columns under each permutation (Westfall and Young, 1993): exact together, whatever the columns have in
    common.

    `old` and `new` are tables or dictionaries of columns of the same names; at most 2,000 rows of each are used. `left_out` marks
    rows of `old` that the test of a column does not use, by its name.

    >>> generator = np.random.default_rng(0)
    >>> shifts = column_shift({"x": generator.normal(size=200)}, {"x": generator.normal(1, 1, 200)})
    >>> shifts[0].corrected < 0.05
    True
    """
    if correction not in CORRECTIONS:
        raise WonderlandError(f"`correction` is one of {', '.join(CORRECTIONS)}, not {correction!r}.")
    names = [str(name) for name in old]
    missing = [name for name in names if name not in new]
    if missing:
        raise WonderlandError(f"`new` has no column {missing[0]!r}, which `old` has.")
    if not names:
        raise WonderlandError("`old` has no columns.")
    sizes = len(np.asarray(old[names[0]])), len(np.asarray(new[names[0]]))
    if min(sizes) < 2:
        raise WonderlandError(f"A test needs two rows in each table or more, not {sizes[0]} and {sizes[1]}.")
    generator = np.random.Generator(np.random.Philox(mix(seed, *sizes)))
    kept = [np.sort(generator.permutation(size)[:ROWS]) for size in sizes]
    places = np.arange(len(kept[0]) + len(kept[1]))
    places = np.concatenate([places[None], generator.permuted(np.tile(places, (draws, 1)), axis=1)])
    labels = (places >= len(kept[0])).astype(np.float64)
    table, kinds, sides = [], [], []
    for name in names:
        a, b = np.asarray(old[name])[kept[0]], np.asarray(new[name])[kept[1]]
        codes, kind = _codes(a, b)
        if left_out is not None and name in left_out:
            a = a[~left_out[name][kept[0]]]
            used = np.r_[~left_out[name][kept[0]], np.ones(len(b), bool)]
            table.append(_statistics(codes[used], kind, _new_among(places[:, used], len(b))))
        else:
            table.append(_statistics(codes, kind, labels))
        kinds.append(kind)
        sides.append((a, b))
    statistics = np.array(table)  # (columns, 1 + draws)
    # Equal statistics of columns with few values are put in an order by chance: counted as reached, they would make the
    # test miss its level from below.
    moving = statistics.std(1) > 1e-12
    statistics[moving] += 1e-9 * generator.random(statistics[moving].shape)
    # The p-value of each draw among all of them, the given samples included.
    p = np.array([(len(row) - np.searchsorted(np.sort(row), row - 1e-15, "left")) / len(row) for row in statistics])
    own = p[:, 0]
    if correction == "permutation":
        # Step-down: from the largest standardised statistic, each column against those not yet passed.
        wide = statistics.std(1, keepdims=True)
        z = np.where(
            wide > 1e-12, (statistics - statistics.mean(1, keepdims=True)) / np.where(wide > 1e-12, wide, 1), -9
        )
        order = np.argsort(-z[:, 0], kind="stable")
        largest = np.maximum.accumulate(z[order][::-1], 0)[::-1]
        stepped = (largest >= z[order, :1] - 1e-13).mean(1)
        corrected = np.empty_like(own)
        corrected[order] = np.maximum.accumulate(stepped)
        corrected = np.maximum(corrected, own)
    else:
        corrected = {"holm": holm, "benjamini-hochberg": benjamini_hochberg, "none": np.asarray}[correction](own)
    return [
        ColumnShift(name, kind, float(row[0]), float(a), float(b), _words(name, kind, *side))
        for name, kind, row, a, b, side in zip(names, kinds, statistics, own, corrected, sides, strict=True)
    ]


def _words(name: str, kind: str, a: ndarray, b: ndarray) -> str:
    """What changed, in a sentence."""
    if kind == "number":
        if not (np.isfinite(a.astype(float)).any() and np.isfinite(b.astype(float)).any()):
            return f"{name}: one of the tables has no values here."
        middle = [float(np.nanmedian(x.astype(np.float64))) for x in (a, b)]
        lost = [float(np.isnan(x.astype(np.float64)).mean()) for x in (a, b)]
        gaps = f"; missing {lost[0]:.1%}, now {lost[1]:.1%}" if max(lost) > 0 else ""
        return f"{name}: the median was {middle[0]:.4g} and is {middle[1]:.4g}{gaps}."
    shares = {}
    for value in np.unique(np.concatenate([a, b]).astype(str)).tolist():
        shares[value] = float((a.astype(str) == value).mean()), float((b.astype(str) == value).mean())
    value = max(shares, key=lambda key: abs(shares[key][0] - shares[key][1]))
    return f"{name}: {value!r} made up {shares[value][0]:.1%} and makes up {shares[value][1]:.1%}."
