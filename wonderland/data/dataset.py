"""Dataset: what all kinds of data have in common: examples, a target, and findings from reading it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from wonderland.core import WonderlandError

TASKS = ("binary", "multiclass", "regression")
MULTILABEL = "multilabel"  # y is (n, k) of 0 and 1, and `classes` the names of the k labels
GENERATE = "generate"  # the distribution is learned: y holds codes of `classes` where there are any, else 0

# Findings of these kinds are information only; every other kind is a repair, which strict mode refuses.
NOTES = frozenset(
    {
        "target",
        "task",
        "header",
        "label shift",
        "date order",
        "separates",
        "single row",
        "extra",
        "group",
        "time",
        "scale",
        "size",
        "copies",
        "spelling",
        "line ends",
        "encoding",
        "comments",
        "quotes",
        "sheet",
        "files",
        "large integers",
        "training data",
        "group hint",
        "time hint",
        "similar labels",
        "text",
        "pairs",
        "season",
        "time zone",
        "levels",
        "weights",
    }
)


@dataclass(frozen=True)
class Finding:
    """Something noticed or repaired in the data; `text` says it in one sentence.

    >>> Finding("missing", "age", 3, "Column 'age' has no value in 3 of 10 rows.").repair
    True
    """

    kind: str
    subject: str
    count: int
    text: str

    @property
    def repair(self) -> bool:
        """Whether the data had to be changed or left out (strict mode stops at those)."""
        return self.kind not in NOTES

    def to_json(self) -> dict[str, Any]:
        """The finding as a plain object, for records and reports."""
        return {"kind": self.kind, "subject": self.subject, "count": self.count, "text": self.text}


def counted(count: int, singular: str, plural: str) -> str:
    """A count with its noun in singular or plural, and its verb where needed.

    >>> counted(1, "image was", "images were"), counted(2000, "row", "rows")
    ('1 image was', '2,000 rows')
    """
    return f"{count:,} {singular if count == 1 else plural}"


def stop_if_strict(findings: Iterable[Finding], strict: bool) -> None:
    """In strict mode, raise one error that lists what would have been repaired."""
    repairs = [finding.text for finding in findings if finding.repair]
    if not strict or not repairs:
        return
    more = f" And {len(repairs) - 3} more." if len(repairs) > 3 else ""
    raise WonderlandError(
        f"Strict mode stops here. {' '.join(repairs[:3])}{more} Clean the data, or leave strict mode."
    )


class Dataset(ABC):
    """An opened source: examples ready to be split, encoded and trained on.

    `y` holds class codes (int64) or values (float64), one for each row, and is None where there is no such target. `classes`
    are the names behind the codes. `test_rows` marks the rows that came as a test set of their own; `assigned` (n,) holds the
    part that a column of the data gives each row to (an index of `wonderland.data.PARTS`, -1 for none). `fingerprint` is a
    SHA-256 over the content, so it does not change with file names, paths or times. `options` are those it was opened with.
    `weights` (n,) are weights of the rows, with a mean of 1; None for equal ones. `ratios` (n,) are the part of them that stands
    for how much more often a row comes where the model is to be used. `groups` (n,) are codes, named by `group_names`.
    """

    kind: str
    noun: str = "rows"
    name: str
    task: str | None
    classes: list[str] | None
    y: np.ndarray | None
    findings: list[Finding]
    fingerprint: str
    origin: dict[str, Any]
    options: Any = None
    start: Any = None
    group: str | None = None
    groups: np.ndarray | None = None
    group_names: list[str] | None = None
    times: np.ndarray | None = None
    test_rows: np.ndarray | None = None
    assigned: np.ndarray | None = None
    weights: np.ndarray | None = None
    ratios: np.ndarray | None = None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def summary(self) -> list[dict[str, Any]]:
        """One record for each line of the overview that is printed."""

    @abstractmethod
    def example(self, i: int) -> dict[str, Any]:
        """One row by field name, for display."""

    def shown(self, i: int) -> dict[str, Any]:
        """One row as the report shows it: plain values by name under "row", or an "image" as a data URI."""
        plain = {str(name): value if value is None or isinstance(value, int | float) else str(value)[:600]
                 for name, value in self.example(i).items()}  # fmt: skip
        return {"row": plain}

    def columns(self) -> dict[str, np.ndarray]:
        """The columns of the data by name, numbers as floats and all else as text; empty where there are no columns."""
        return {}

    def texts_of(self, name: str) -> np.ndarray:
        """The values of one column as text (n,)."""
        raise WonderlandError(f"{self.name} has no columns, so none called {name!r}: a group is a column of a table.")

    def labels(self) -> dict[str, list[Any]]:
        """Columns that identify the rows, such as paths; they come first in a table of predictions."""
        return {}

    def headline(self) -> str:
        """The dataset in one line."""
        about = self.task or "no target"
        if self.classes:
            about += f", {len(self.classes)} classes"
        return f"{self.name}: {counted(len(self), self.noun.removesuffix('s'), self.noun)}, {about}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.headline()}>"

    def _repr_html_(self) -> str:
        rows = self.summary()
        head = "".join(f"<th style='text-align:left'>{escape(str(key))}</th>" for key in (rows[0] if rows else {}))
        body = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{escape(str(v))}</td>" for v in row.values()) + "</tr>"
            for row in rows
        )
        notes = "".join(f"<li>{escape(finding.text)}</li>" for finding in self.findings)
        return f"<p><b>{escape(self.headline())}</b></p><table><tr>{head}</tr>{body}</table><ul>{notes}</ul>"
