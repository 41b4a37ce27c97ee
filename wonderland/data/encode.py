"""From columns to numbers: what a model reads, fitted on the training rows only.

Numbers are scaled and softly clipped, dates become days and the places of the year, week and day on a circle, texts become
lengths and hashed words, categories become codes. Code 0 stands for every category that is rare or was never seen.
"""

import math
import re
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.data.columns import DATE_FORMATS, Column, as_levels, plain, read_as, read_column
from wonderland.data.dataset import TASKS, Encoder, Finding
from wonderland.data.read import MAX_COLUMNS
from wonderland.data.table import MAX_CLASSES, RARE, Table, check_finite, class_codes

MAX_LEVELS = 254
BUCKETS = 32
CYCLES = {"month": 12, "weekday": 7, "hour": 24}
_LARGEST = 1e150


def measure(values: np.ndarray) -> tuple[float, float]:
    """Where a column of training values lies and how wide it is: the median and the middle half (else the range).

    >>> measure(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    (3.0, 2.0)
    """
    values = np.clip(values, -_LARGEST, _LARGEST)
    low, center, high, least, most = np.quantile(values, [0.25, 0.5, 0.75, 0, 1]) if len(values) else np.zeros(5)
    scale = next((float(width) for width in (high - low, most - least) if width > 1e-300), 1.0)
    return float(center), scale


def squash(values: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    r"""Scale, and bend far values back: :math:`f(z) = z / \sqrt{1 + (z/3)^2}` with :math:`z = (x - c) / s`.

    Nearly the identity around the center, never beyond 3.

    >>> squash(np.array([[3.0, 4.0, 1e300]]), np.array(3.0), np.array(2.0)).round(3).tolist()
    [[0.0, 0.493, 3.0]]
    """
    with np.errstate(over="ignore"):
        z = np.clip((np.clip(values, -_LARGEST, _LARGEST) - center) / scale, -_LARGEST, _LARGEST)
    return 3 * (z / np.hypot(3, z))


@dataclass(frozen=True)
class Rule:
    """How one column is encoded. `fill` replaces a missing value; `flagged` adds a column that says where."""

    name: str
    kind: str
    fill: float = 0.0
    flagged: bool = False
    format: str = ""
    pair: tuple[str, str] | None = None
    parts: tuple[str, ...] = ()
    levels: tuple[str | None, ...] = ()

    @classmethod
    def fit(cls, column: Column, ordering: bool = False) -> "Rule":
        """The rule for a column of training cells; a date that orders the rows gives its cycles only."""
        present = column.values[~column.absent]
        flagged = column.missing > 0
        if column.kind == "category":
            return cls(column.name, "category", levels=_frequent(column))
        if column.kind == "text":
            return cls(column.name, "text", flagged=flagged)
        if column.kind == "boolean":
            return cls(column.name, "boolean", 0.5, flagged, pair=column.pair)
        fill = float(np.median(np.clip(present, -_LARGEST, _LARGEST))) if len(present) else 0.0
        if column.kind == "number":
            return cls(column.name, "number", fill, flagged)
        assert column.kind == "date", column.kind
        cycles = [part for part, phase in _phases(present).items() if len(np.unique(phase)) > 1]
        return cls(
            column.name, "date", fill, flagged, column.format, parts=tuple(cycles if ordering else ["days", *cycles])
        )

    def features(self) -> list[tuple[str, bool]]:
        """The name of each number this column becomes, and whether it is scaled."""
        name, made = self.name, []
        if self.kind == "number":
            made = [(name, True)]
        elif self.kind == "boolean":
            made = [(name, False)]
        elif self.kind == "date":
            made = [(f"{name} {part}", True) for part in self.parts if part == "days"]
            made += [
                (f"{name} {part} {side}", False) for part in self.parts if part != "days" for side in ("sin", "cos")
            ]
        elif self.kind == "text":
            made = [(f"{name} length", True), (f"{name} words", True)]
            made += [(f"{name} word group {i}", True) for i in range(BUCKETS)]
        return made + ([(f"{name} is missing", False)] if self.flagged else [])

    def values(self, column: Column) -> np.ndarray:
        """The numbers, before scaling: (n, features)."""
        if self.kind == "text":
            block = list(_texts(column).T)
        else:
            filled = np.where(column.absent, self.fill, column.values)
            block = [filled] if self.kind != "date" or "days" in self.parts else []
        if self.kind == "date":
            phases = _phases(column.values)
            for part in self.parts:
                if part != "days":
                    turn = phases[part] * (2 * np.pi / CYCLES[part])
                    block += [np.where(column.absent, 0, np.sin(turn)), np.where(column.absent, 0, np.cos(turn))]
        if self.flagged:
            block.append(column.absent.astype(np.float64))
        return np.stack(block, 1) if block else np.empty((len(column), 0))

    def codes(self, column: Column) -> np.ndarray:
        """Category codes: 1.. for the known levels, 0 for every other one."""
        assert column.levels is not None
        known = {level: code for code, level in enumerate(self.levels, start=1)}
        places = [known.get(level, 0) for level in column.levels] + [known.get(None, 0)]
        return np.array(places, np.int64)[column.values]

    def like(self) -> Column:
        """An empty column of this rule's kind, to read new cells by."""
        return Column(self.name, self.kind, np.empty(0), format=self.format, pair=self.pair)

    def to_json(self) -> dict[str, Any]:
        default = asdict(Rule(self.name, self.kind))
        used = {key: value for key, value in asdict(self).items() if key in ("name", "kind") or value != default[key]}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in used.items()}


class TableEncoder(Encoder):
    """Turns rows of a table into a float32 tensor (n, p + q): p numbers, then q category codes.

    `numbers` names the p numbers; `categories` has (column, number of codes) for the q codes; `column_of` tells for each of
    the p + q which column of the table it came from.
    """

    kind = "table"

    def __init__(
        self,
        rules: list[Rule],
        center: np.ndarray,
        scale: np.ndarray,
        *,
        target: str | None = None,
        task: str | None = None,
        classes: list[str] | None = None,
        ignored: list[str] | None = None,
    ) -> None:
        self.rules, self.center, self.scale = rules, center, scale
        self.target, self.task, self.classes, self.ignored = target, task, classes, ignored or []
        self.noticed: list[Finding] = []
        made = [(rule.name, *feature) for rule in rules for feature in rule.features()]
        self.numbers = [name for _, name, _ in made]
        self.scaled = np.array([scaled for *_, scaled in made], dtype=bool)
        self.categories = [(rule.name, len(rule.levels) + 1) for rule in rules if rule.kind == "category"]
        self.column_of = [column for column, *_ in made] + [name for name, _ in self.categories]

    @classmethod
    def fit(cls, table: Table, rows: np.ndarray) -> "TableEncoder":
        """Learn fills, scales and levels from these rows, and from no others."""
        columns = [column.take(rows) for column in table.features]
        rules = [Rule.fit(column, column.name == table.time) for column in columns]
        raw = [
            rule.values(column)[~column.absent if rule.kind == "number" else slice(None)]
            for rule, column in zip(rules, columns, strict=True)
            if rule.kind != "category"
        ]
        scaled = [scaled for rule in rules for _, scaled in rule.features()]
        if not scaled and not any(rule.kind == "category" for rule in rules):
            raise WonderlandError(f"{table.name} has no usable column: none varies within the training part.")
        sizes = [measure(values) for block in raw for values in block.T]
        center = np.array([c if keep else 0.0 for (c, _), keep in zip(sizes, scaled, strict=True)], np.float64)
        scale = np.array([s if keep else 1.0 for (_, s), keep in zip(sizes, scaled, strict=True)], np.float64)
        return cls(
            rules,
            center,
            scale,
            target=table.target,
            task=table.task,
            classes=table.classes,
            ignored=[name for name in table.left_out if name != table.target],
        )

    def encode(self, dataset: Table, rows: np.ndarray | None = None) -> Tensor:
        """Rows (all by default) as a float32 tensor; `noticed` then says what was filled in."""
        self.noticed = []
        size = len(dataset) if rows is None else len(rows)
        out = np.empty((size, len(self.numbers) + len(self.categories)), np.float32)
        number, code = 0, len(self.numbers)
        for rule in self.rules:
            column = dataset.column(rule.name)
            if column.kind != rule.kind:
                raise WonderlandError(
                    f"Column {rule.name!r} is {column.kind} here and was {rule.kind} in training. "
                    "Open new data with the encoder's own open."
                )
            column = column if rows is None else column.take(rows)
            if rule.kind == "category":
                codes = rule.codes(column)
                out[:, code] = codes
                code += 1
                self._notice(rule, column, codes)
                continue
            block = rule.values(column)
            stop = number + block.shape[1]
            bent = squash(block, self.center[number:stop], self.scale[number:stop])
            out[:, number:stop] = np.where(self.scaled[number:stop], bent, block)
            number = stop
            self._notice(rule, column, None)
        return torch.from_numpy(out)

    def _notice(self, rule: Rule, column: Column, codes: np.ndarray | None) -> None:
        if codes is None:
            if column.missing:
                text = f"Column {rule.name!r}: {column.missing:,} of {len(column):,} cells were missing and filled in."
                self.noticed.append(Finding("filled", rule.name, column.missing, text))
            return
        unknown = int(((codes == 0) & ~column.absent).sum())
        if unknown:
            text = f"Column {rule.name!r}: {unknown:,} of {len(column):,} cells hold a category that is rare or new."
            self.noticed.append(Finding("unseen", rule.name, unknown, text))
        lost = int(((codes == 0) & column.absent).sum())
        if lost:
            text = f"Column {rule.name!r}: {lost:,} of {len(column):,} cells are missing, which never happened in training."
            self.noticed.append(Finding("filled", rule.name, lost, text))

    def open(self, source: Any, *, need_target: bool = False) -> Table:
        """Open new data the way the training data was opened; with `need_target`, the answers as well."""
        from wonderland.data.open import look

        words = {rule.name for rule in self.rules if rule.kind in ("category", "text")}
        found = look(source, as_text=words | ({self.target} if self.classes and self.target else set()))
        if found.frame is None:
            raise WonderlandError(f"{found.name} holds images; this model was trained on a table.")
        frame, findings = found.frame, found.findings
        names = [str(name) for name in frame.columns]
        absent = [rule.name for rule in self.rules if rule.name not in names]
        if absent:
            more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
            listed = ", ".join(repr(name) for name in absent[:3])
            spare = [name for name in names if name not in {rule.name for rule in self.rules}]
            plural = "column" if len(absent) == 1 else "columns"
            raise WonderlandError(
                f"{found.name} lacks the {plural} {listed}{more} that the model needs.{nearest(absent[0], spare)}"
            )
        columns = [read_as(rule.like(), pd.Series(frame[rule.name])) for rule in self.rules]
        check_finite(columns)
        for column in columns:
            if column.unread:
                text = f"Column {column.name!r} should be {column.kind}; cells that are not, counted as missing: {column.unread:,}."
                findings.append(Finding("unread", column.name, column.unread, text))
        extra = [n for n in names if n not in {self.target, *self.ignored, *(rule.name for rule in self.rules)}]
        if extra:
            listed = ", ".join(repr(name) for name in extra[:3]) + (
                f" and {len(extra) - 3} more" if len(extra) > 3 else ""
            )
            findings.append(
                Finding("extra", extra[0], len(extra), f"Columns the model does not know are ignored: {listed}.")
            )
        y = None
        if need_target:
            y, rows = self._answers(found.name, frame, findings)
            if len(rows) < len(frame):
                columns = [column.take(rows) for column in columns]
        return Table(
            found.name,
            columns,
            target=self.target,
            task=self.task,
            classes=self.classes,
            y=y,
            findings=findings,
            origin=found.origin,
        )

    def _answers(self, name: str, frame: Any, findings: list[Finding]) -> tuple[np.ndarray, np.ndarray]:
        """Targets of the rows that have one, and which rows these are."""
        if self.target is None or self.target not in frame.columns:
            hint = nearest(str(self.target), [str(column) for column in frame.columns])
            raise WonderlandError(f"{name} has no column {self.target!r}, the target to compare with.{hint}")
        if self.classes is None:
            column = read_as(Column(self.target, "number", np.empty(0)), frame[self.target])
            check_finite([column])
            y = column.values
        else:
            column, codes, names = self._class_names(frame[self.target])
            place = {known: code for code, known in enumerate(self.classes)}
            found = [place.get(known, -1) for known in names]
            strange = {known: int((codes == i).sum()) for i, known in enumerate(names) if found[i] < 0}
            if strange:
                first, count = next(iter(strange.items()))
                rows = "1 row" if count == 1 else f"{count:,} rows"
                listed = ", ".join(repr(known) for known in self.classes[:5]) + (
                    ", ..." if len(self.classes) > 5 else ""
                )
                raise WonderlandError(
                    f"The target {self.target!r} holds class {first!r} ({rows}), which the model does not know: {listed}."
                )
            y = np.array([*found, -1], np.int64)[codes]
        rows = np.flatnonzero(~column.absent)
        if len(rows) == 0:
            raise WonderlandError(f"The target {self.target!r} has no values in {name}.")
        if len(rows) < len(y):
            gone = len(y) - len(rows)
            findings.append(
                Finding(
                    "target missing",
                    self.target,
                    gone,
                    f"{gone:,} of {len(y):,} rows have no target {self.target!r} and are left out.",
                )
            )
        return y[rows], rows

    def _class_names(self, cells: Any) -> tuple[Column, np.ndarray, list[str]]:
        """Cells as codes into class names: as they are written, or else as the target column was read in training."""
        codes, levels = as_levels(plain(str(self.target), cells))
        names = [str(level) for level in levels]
        if set(names) <= set(self.classes or ()):
            return Column(str(self.target), "category", codes, levels), codes, names
        column = read_column(str(self.target), cells)
        return column, *class_codes(column)

    def to_json(self) -> dict[str, Any]:
        """The rules, for people to read and for `from_json`; the scales are in `tensors`."""
        return {
            "kind": "table",
            "target": self.target,
            "task": self.task,
            "classes": self.classes,
            "ignored": self.ignored,
            "columns": [rule.to_json() for rule in self.rules],
        }

    def tensors(self) -> dict[str, Tensor]:
        """Center and scale of each number, as float64."""
        return {"center": torch.from_numpy(self.center.copy()), "scale": torch.from_numpy(self.scale.copy())}

    @classmethod
    def from_json(cls, saved: Any, tensors: dict[str, Tensor]) -> "TableEncoder":
        """Rebuild a saved encoder; every value is checked, for the file may be damaged or hostile."""
        _require(isinstance(saved, dict) and saved.get("kind") == "table", "it is not for tables")
        target, task, classes, ignored = (saved.get(key) for key in ("target", "task", "classes", "ignored"))
        _require(target is None or _is_text(target), "the target is not a name")
        _require(task is None or task in TASKS, "the task is not known")
        _require(classes is None or _are_texts(classes, MAX_CLASSES), "the classes are not a list of names")
        _require(classes is None or len(set(classes)) == len(classes) > 1, "the classes are not different names")
        _require((task in ("binary", "multiclass")) == (classes is not None), "task and classes do not agree")
        _require(task != "binary" or len(classes or ()) == 2, "task and classes do not agree")
        _require(ignored is None or _are_texts(ignored, MAX_COLUMNS), "the ignored columns are not a list of names")
        columns = saved.get("columns")
        _require(isinstance(columns, list) and 0 < len(columns) <= MAX_COLUMNS, "it has no list of columns")
        rules = [_read_rule(entry) for entry in columns or ()]
        _require(len({rule.name for rule in rules}) == len(rules), "a column occurs twice")
        width = sum(len(rule.features()) for rule in rules)
        arrays = []
        for key in ("center", "scale"):
            tensor = tensors.get(key) if isinstance(tensors, dict) else None
            tensor = tensor if isinstance(tensor, Tensor) else torch.empty(0)
            good = tensor.dtype == torch.float64 and tuple(tensor.shape) == (width,)
            _require(good, f"the tensor {key!r} does not fit its columns")
            arrays.append(tensor.numpy().copy())
            _require(bool(np.isfinite(arrays[-1]).all()), f"the tensor {key!r} holds values that are not finite")
        _require(bool((arrays[1] > 0).all()), "the tensor 'scale' holds values that are not positive")
        return cls(rules, *arrays, target=target, task=task, classes=classes, ignored=ignored)


def _frequent(column: Column) -> tuple[str | None, ...]:
    """The levels that get a code: the most frequent ones, in order of the alphabet; None at the end when cells are missing."""
    assert column.levels is not None
    counts = np.bincount(column.values[~column.absent], minlength=len(column.levels))
    often = sorted((-int(counts[code]), str(column.levels[code])) for code in np.flatnonzero(counts >= RARE))
    names = sorted(name for _, name in often[:MAX_LEVELS])
    return (*names, None) if column.missing else tuple(names)


def _phases(days: np.ndarray) -> dict[str, np.ndarray]:
    """Month (0..11), weekday (Monday is 0) and hour (with its fraction) of days since 1970; 0 where missing."""
    days = np.clip(np.nan_to_num(days), -1e6, 1e7)
    whole = np.floor(days)
    months = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    hours = np.round((days - whole) * 86400) / 3600
    return {"month": (months % 12).astype(float), "weekday": (whole + 3) % 7, "hour": hours % 24}


def _texts(column: Column) -> np.ndarray:
    """Log length, log number of words, and log counts of words in hashed groups: (n, 2 + groups); zeros where missing."""
    assert column.levels is not None
    table = np.zeros((len(column.levels) + 1, 2 + BUCKETS))
    for row, text in zip(table, column.levels, strict=False):
        words = re.findall(r"\w+", text.lower())
        row[:2] = len(text), len(words)
        for word in words:
            row[2 + zlib.crc32(word.encode("utf-8", "surrogatepass")) % BUCKETS] += 1
    return np.log1p(table)[column.values]


def _read_rule(entry: Any) -> Rule:
    """One saved rule, checked."""
    _require(isinstance(entry, dict), "a column is not an object")
    name, kind = entry.get("name"), entry.get("kind")
    _require(_is_text(name), "a column has no name")
    about = f"column {name[:60]!r}"
    _require(kind in ("number", "boolean", "date", "text", "category"), f"{about} has no known kind")
    fields = {"name", "kind", "fill", "flagged", "format", "pair", "parts", "levels"}
    _require(set(entry) <= fields, f"{about} has a field that is not known")
    fill, flagged, form = entry.get("fill", 0.0), entry.get("flagged", False), entry.get("format", "")
    good = (
        isinstance(fill, int | float) and not isinstance(fill, bool) and abs(fill) <= _LARGEST and math.isfinite(fill)
    )
    _require(good, f"{about} has a fill value that is not a number")
    _require(isinstance(flagged, bool), f"{about} does not say whether missing cells are flagged")
    _require(
        form == "" if kind != "date" else isinstance(form, str) and form in DATE_FORMATS,
        f"{about} has no known date format",
    )
    pair, parts, levels = entry.get("pair"), entry.get("parts", []), entry.get("levels", [])
    _require(pair is None or (_are_texts(pair, 2) and len(pair) == 2), f"{about} has no pair of words for no and yes")
    known = isinstance(parts, list | tuple) and all(
        isinstance(part, str) and part in ("days", *CYCLES) for part in parts
    )
    _require(known and len(set(parts)) == len(parts), f"{about} has parts of a date that are not known")
    _require(kind == "date" or not parts, f"{about} has parts of a date that are not known")
    listed = isinstance(levels, list | tuple) and len(levels) <= MAX_LEVELS + 1
    _require(
        listed and all(level is None or isinstance(level, str) for level in levels),
        f"{about} has no list of categories",
    )
    _require(len(set(levels)) == len(levels), f"{about} has a category twice")
    _require(kind == "category" or not levels, f"{about} has categories, but is {kind}")
    return Rule(name, kind, float(fill), flagged, form, tuple(pair) if pair else None, tuple(parts), tuple(levels))


def _require(good: bool, what: str) -> None:
    if not good:
        raise WonderlandError(f"The saved preprocessing is damaged or not ours: {what}.")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 10_000


def _are_texts(value: Any, most: int) -> bool:
    return isinstance(value, list | tuple) and len(value) <= most and all(isinstance(item, str) for item in value)
