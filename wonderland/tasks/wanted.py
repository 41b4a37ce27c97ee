"""What a user asks of trust beyond the default: the form of conformal prediction, decisions, abstention, uncertainty."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, nearest, read_bytes


@dataclass(frozen=True)
class Wanted:
    """The options of trust that were given; None leaves the default."""

    conformal: str | None = None
    metric: str | None = None
    cost: str | None = None
    abstain: float | None = None
    uncertainty: str | None = None
    level: float = 0.9

    @staticmethod
    def of(options: Any) -> "Wanted":
        """From the options of a fit."""
        return Wanted(**{name: getattr(options, name) for name in Wanted.__dataclass_fields__})

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None and name != "level"}

    @property
    def group(self) -> str | None:
        """The column of `conformal="group:COLUMN"`."""
        return self.conformal.partition(":")[2] if self.conformal and self.conformal.startswith("group:") else None

    @property
    def method(self) -> str | None:
        """The form of conformal prediction without its column."""
        return None if self.conformal is None else self.conformal.partition(":")[0]


def check_wanted(wanted: Wanted, supported: Sequence[str], methods: Sequence[str], task: str) -> None:
    """Refuse options of trust that a task does not have, by name."""
    for name in wanted.given:
        if name not in supported:
            has = f"it has {', '.join(supported)}" if supported else "it has none of the options of trust"
            raise WonderlandError(f"The task {task} has no option {name} (--{name}): {has}.")
    if wanted.method is not None and wanted.method not in methods:
        raise WonderlandError(
            f"The task {task} has no conformal prediction {wanted.conformal!r}: it has {', '.join(methods)}."
        )


def read_cost(path: str | Path, classes: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """A table of costs: its first column names the true class, its header the actions. Shapes: (c, a), and the actions.

    Rows are brought into the order of `classes`.
    """
    content = read_bytes(path, "cost_bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WonderlandError(f"The costs in {path} cannot be read: they have to be a CSV file.") from error
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if any(row)]
    except csv.Error as error:
        raise WonderlandError(f"The costs in {path} cannot be read: they have to be a CSV file.") from error
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows) or len(rows[0]) < 3:
        raise WonderlandError(
            f"{path} is not a table of costs: the header names the actions, and each row begins with a true class."
        )
    actions, costs = rows[0][1:], {}
    for row in rows[1:]:
        if row[0] not in classes:
            raise WonderlandError(f"{path} has a row for {row[0]!r}, which is no class.{nearest(row[0], classes)}")
        try:
            costs[row[0]] = [float(cell) for cell in row[1:]]
        except ValueError as error:
            raise WonderlandError(f"{path} holds a cost that is no number, in the row of {row[0]!r}.") from error
        if not np.isfinite(costs[row[0]]).all():
            raise WonderlandError(f"{path} holds a cost that is not finite, in the row of {row[0]!r}.")
    missing = [name for name in classes if name not in costs]
    if missing:
        raise WonderlandError(f"{path} has no row for class {missing[0]!r}: every true class needs its costs.")
    return np.array([costs[name] for name in classes]), actions
