"""Tests of distribution shift between calibration rows and new rows, together at one level, with a result in words."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError, permutation
from wonderland.trust.column_shift import ColumnShift, column_shift
from wonderland.trust.label_shift import LabelShift, black_box_shift, em_shift
from wonderland.trust.reference import OTHER, ROWS, Reference, days, names_of
from wonderland.trust.two_sample import TwoSample, classifier_test

LEAST = 2
LEAST_TOGETHER = 10  # rows of each sample that the test of all columns together needs
LEAST_FOR_SHARES = 30
FEATURES = 300
DRAWS = 999
CLASSES = 10  # classes whose probabilities are tested as columns
LABEL_METHODS = {"em": em_shift, "black-box": black_box_shift}


@dataclass(frozen=True)
class Shift:
    """The result of `compare`: whether rows differ from the reference, where, and what it means.

    `columns` holds a test for each column, `predictions` one for each output of the model; their p-values are corrected
    together. `together` tests all columns at once (None for few rows). `p_value` is that of all tests together.
    """

    level: float
    old_rows: int
    new_rows: int
    columns: tuple[ColumnShift, ...]
    predictions: tuple[ColumnShift, ...]
    together: TwoSample | None
    p_value: float
    labels: LabelShift | None
    classes: tuple[str, ...] | None
    # Mean confidence and accuracy on the reference rows, and mean confidence on the new rows.
    confidence: tuple[float, float, float] | None
    notes: tuple[str, ...]

    @property
    def shifted(self) -> bool:
        """Whether the new rows differ from the reference, at the level of the tests."""
        return self.p_value <= self.level

    @property
    def changed(self) -> list[ColumnShift]:
        """The columns and predictions whose change stands out alone, the clearest first."""
        columns = [c for c in (*self.columns, *self.predictions) if c.corrected <= self.level / 2]
        return sorted(columns, key=lambda column: (column.corrected, -column.statistic))

    @property
    def sentence(self) -> str:
        """The answer in one or two sentences."""
        if not self.shifted:
            return (
                f"No shift was found: these rows look like those the model was calibrated on (p = {self.p_value:.2g}, "
                f"{self.new_rows:,} rows against {self.old_rows:,})."
            )
        names = [column.name for column in self.changed if column in self.columns]
        if names:
            listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            where = f"most clearly in {listed}"
        elif self.changed:
            where = "in the predictions of the model, but in no single column"
        else:
            where = "in several columns together, but in none alone"
        return (
            f"These rows differ from those the model was calibrated on, {where} (p = {self.p_value:.2g}). Its metrics, "
            "probabilities and levels may not hold for them."
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        tests = {name: [vars(c) for c in getattr(self, name)] for name in ("columns", "predictions")}
        labels = None
        if self.labels is not None and self.classes is not None:
            shares = zip(self.classes, self.labels.old, self.labels.new, strict=True)
            labels = {name: {"before": float(before), "now": float(now)} for name, before, now in shares}
        return {
            "shifted": self.shifted, "p_value": self.p_value, "level": self.level, "sentence": self.sentence,
            "rows": {"reference": self.old_rows, "new": self.new_rows}, **tests,
            "together": None if self.together is None else vars(self.together), "class_shares": labels,
            "confidence": None if self.confidence is None else
            dict(zip(("reference", "reference_accuracy", "new"), self.confidence, strict=True)),
            "notes": list(self.notes),
        }  # fmt: skip


def compare(
    reference: Reference,
    columns: Any,
    predictions: Any,
    *,
    level: float = 0.05,
    rows: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Shift:
    r"""Test new rows against the reference: each column, the predictions, and all columns together.

    Columns and predictions have p-values that are corrected together by permutations (`column_shift`), and a classifier tries
    to tell old rows from new ones (`classifier_test`). The answer is "shifted" where the smaller p-value of the two,
    doubled, is at most `level`: without any shift this happens at most in that share of cases.

    At most 2,000 new rows are used; `rows` says how many there were where they are a sample already.
    Shapes: columns by name (m,), predictions (m, c).

    >>> draw = np.random.default_rng(0)
    >>> old = Reference.of({"x": draw.normal(size=200)}, draw.normal(size=(200, 1)), np.zeros(200))
    >>> compare(old, {"x": draw.normal(2, 1, 100)}, draw.normal(size=(100, 1))).shifted
    True
    """
    if not 0 < level < 1:
        raise WonderlandError(f"The level of the tests is a share between 0 and 1, such as 0.05, not {level}.")
    fresh = np.asarray(predictions, np.float64)
    drawn = np.sort(permutation(seed, 0, len(fresh))[:ROWS])
    total = len(fresh) if rows is None else rows
    old_rows, new_rows = len(reference.y), len(drawn)
    if min(old_rows, new_rows) < LEAST:
        raise WonderlandError(f"Shift is tested with {LEAST} rows or more on each side, not {min(old_rows, new_rows)}.")
    old_columns, new_columns, left_out = reference.compared(columns)
    new_columns = {name: values[drawn] for name, values in new_columns.items()}
    fresh = fresh[drawn]
    names = prediction_names(reference)
    old_table, new_table, given = {}, {}, list(reference.columns)
    for i, name in enumerate(given):
        old_table[f"c{i}"], new_table[f"c{i}"] = old_columns[name], new_columns[name]
    for k, _ in enumerate(names):
        old_table[f"p{k}"], new_table[f"p{k}"] = reference.predictions[:, k], fresh[:, k]
    unused = {f"c{i}": left_out[name] for i, name in enumerate(given) if name in left_out}
    tested = column_shift(old_table, new_table, draws=draws, seed=seed, left_out=unused)
    shown = [*given, *names]
    tested = [replace(t, name=name, words=_renamed(t, name)) for t, name in zip(tested, shown, strict=True)]
    given_values = {name: np.asarray(columns[name])[drawn] for name in given}
    seen = np.ones(old_rows, bool) if not left_out else ~np.any(list(left_out.values()), 0)
    old_columns = {name: values[seen] for name, values in old_columns.items()}
    tested = [
        *(_named(t, reference.dates, old_columns, given_values, new_columns) for t in tested[: len(given)]),
        *tested[len(given) :],
    ]
    notes, together = [], None
    if min(seen.sum(), new_rows) >= LEAST_TOGETHER:
        old, new = _features(old_columns, reference.predictions[seen], new_columns, fresh)
        together = classifier_test(old, new, draws=draws, seed=seed)
    else:
        few = f"{new_rows} new rows" if new_rows < LEAST_TOGETHER else f"{int(seen.sum())} calibration rows"
        notes.append(f"{few} are too few to test all columns together: {LEAST_TOGETHER} are needed.")
    smallest = float(min(test.corrected for test in tested))
    p_value = smallest if together is None else min(1.0, 2 * min(smallest, together.p_value))
    blind = math.sqrt(-math.log(level / 4) / 2 * (old_rows + new_rows) / (old_rows * new_rows))
    if blind > 0.1:
        notes.append(
            f"With so few rows, a change in which less than {min(blind, 1):.0%} of a column's values move would not be seen."
        )
    if new_rows < total:
        notes.append(f"{new_rows:,} of {total:,} new rows were drawn for the tests.")
    labels = None
    if reference.classes is not None:
        try:
            labels = estimate_labels(reference, fresh, "em")
        except WonderlandError as error:
            notes.append(str(error))
    return Shift(
        level, old_rows, new_rows, tuple(tested[: len(given)]), tuple(tested[len(given) :]), together, p_value, labels,
        reference.classes, _confidence(reference, fresh), tuple(notes),
    )  # fmt: skip


def estimate_labels(reference: Reference, predictions: ndarray, method: str) -> LabelShift:
    """Shares of classes among new rows, by "em" or "black-box". Shapes: predictions (m, c)."""
    if reference.classes is None:
        raise WonderlandError("Shares of classes are for classification: this model predicts numbers.")
    if len(predictions) < LEAST_FOR_SHARES:
        raise WonderlandError(
            f"Shares of classes are estimated from {LEAST_FOR_SHARES} rows or more, and there are {len(predictions)}."
        )
    counts = np.bincount(reference.y, minlength=len(reference.classes))
    if not counts.all():
        name = reference.classes[int(np.argmin(counts))]
        raise WonderlandError(
            f"No row of class {name!r} is among the reference rows: its new share cannot be estimated."
        )
    return LABEL_METHODS[method](reference.predictions, reference.y, predictions)


def prediction_names(reference: Reference) -> list[str]:
    """Names of the outputs that are tested; of two classes, the probability of the first."""
    if reference.classes is None:
        return ["predicted value"]
    names = [f"probability of {name}" for name in reference.classes]
    return names[:1] if len(names) == 2 else names[:CLASSES]


def _renamed(test: ColumnShift, name: str) -> str:
    return name + test.words[len(test.name) :]


def _named(test: ColumnShift, dates: Any, old_columns: Any, given: Any, new: Any) -> ColumnShift:
    """The words of a test with dates as dates, and new categories by name."""
    name, old = test.name, old_columns[test.name]
    if name in dates:
        middle = [np.nanmedian(x) if np.isfinite(x).any() else np.nan for x in (old, new[name])]
        if np.isfinite(middle).all():
            before, now = (np.datetime64(int(day), "D") for day in middle)
            return replace(test, words=f"{name}: the median date was {before} and is {now}.")
    elif old.dtype.kind != "f":
        unknown = new[name] == OTHER
        if unknown.mean() - (old == OTHER).mean() > test.statistic / 2 > 0:
            values, counts = np.unique(names_of(given[name][unknown]), return_counts=True)
            common = str(values[counts.argmax()])[:60]
            words = f"{name}: {unknown.mean():.1%} are values that were rare or absent in the calibration rows, such as {common!r}."
            return replace(test, words=words)
    return test


def _confidence(reference: Reference, fresh: ndarray) -> tuple[float, float, float] | None:
    if reference.classes is None:
        return None
    right = float((reference.predictions.argmax(1) == reference.y).mean())
    return float(reference.predictions.max(1).mean()), right, float(fresh.max(1).mean())


def _features(old: Any, old_outputs: ndarray, new: Any, new_outputs: ndarray) -> tuple[ndarray, ndarray]:
    """Predictions and columns of both samples as numbers."""
    a, b = comparable(old, new)
    return tuple(
        np.concatenate([outputs[:, :CLASSES], columns.reshape(len(outputs), -1)], 1)
        for outputs, columns in ((old_outputs, a), (new_outputs, b))
    )  # pyright: ignore[reportReturnType]


def comparable(old: Any, new: Any, rows: Any = None) -> tuple[ndarray, ndarray]:
    """Columns of both samples as numbers: values, marks of missing ones, and one-hot categories, at most 300 features.

    Columns by name (n,) and (m,) -> (n, k), (m, k). `rows` are those of the old sample that, with the new one, decide the scale of
    numbers and which categories are common; all of them by default.

    >>> comparable({"x": np.array([0.0, np.nan])}, {"x": np.array([2.0])})[1].shape
    (1, 2)
    """
    blocks, count = [np.empty((0, 0))], 0
    for name, values in old.items():
        count = len(values)
        first, second = days(np.asarray(values)), days(np.asarray(new[name]))
        both = np.concatenate([first, second])
        deciding = both if rows is None else np.concatenate([first[rows], second])
        blocks = [block for block in blocks if len(block)]
        if both.dtype.kind == "f":
            known = np.where(np.isfinite(both), both, np.nan)
            finite = deciding[np.isfinite(deciding)]
            middle = np.median(finite) if len(finite) else 0.0
            limit = np.quantile(np.abs(finite - middle), 0.99) if len(finite) else 1.0
            filled = np.where(np.isnan(known), middle, np.clip(known, middle - 10 * limit, middle + 10 * limit))
            blocks.append((filled - middle)[:, None] / (limit if limit > 0 else 1.0))
            if not np.isfinite(both).all():
                blocks.append(~np.isfinite(both)[:, None])
            continue
        names, counts = np.unique(deciding, return_counts=True)
        common = names[np.argsort(-counts, kind="stable")[:30]]
        blocks.append(both[:, None] == common[None])
    table = np.concatenate([block.astype(np.float64) for block in blocks], 1)[:, :FEATURES]
    return table[:count], table[count:]
