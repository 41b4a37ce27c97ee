"""Options of trust for numbers: intervals by group, from quantiles (CQR), or scaled by a predicted deviation; uncertainty."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.conformal import Scores


@dataclass(frozen=True)
class NumberOptions:
    """`cells` maps the name of a group ("" for all rows) to the scores of its calibration rows, by fold.

    `method` is "group", "cqr", "normalised" or "" where intervals are the default ones.
    """

    method: str = ""
    group: str | None = None
    cells: dict[str, Scores] = field(default_factory=dict)
    uncertainty: str | None = None

    def ends(self, lower: ndarray, upper: ndarray, level: float, groups: ndarray | None) -> tuple[ndarray, ndarray]:
        """Low and high ends around the bands of each group of members; infinite in a group with too few calibration rows.

        Shapes: (g, n), (g, n), groups (n,) -> (n,), (n,).
        """
        if self.group is None:
            return self.cells[""].bands(lower, upper, level)
        if groups is None:
            raise WonderlandError(f"Intervals were calibrated by {self.group}: new rows need that column.")
        low, high = np.full(lower.shape[1], -np.inf), np.full(lower.shape[1], np.inf)
        for name in np.unique(groups).tolist():
            if name in self.cells:
                rows = groups == name
                low[rows], high[rows] = self.cells[name].bands(lower[:, rows], upper[:, rows], level)
        return low, high

    def note(self, level: float) -> str:
        """The groups with too few rows for this level, or ""."""
        few = [name for name, cell in self.cells.items() if not cell.enough(level)]
        if not few:
            return ""
        if self.group is None:
            return f"{self.cells[''].count} calibration rows are too few for a level of {level:g}: intervals are unbounded."
        shown = ", ".join(few[:5]) + (", ..." if len(few) > 5 else "")
        return (
            f"Too few calibration rows for a level of {level:g} in {self.group} {shown}: intervals are unbounded there."
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        cells = {name: cell.to_json() for name, cell in self.cells.items()}
        return {"method": self.method, "group": self.group, "cells": cells, "uncertainty": self.uncertainty}

    @staticmethod
    def from_json(saved: Any) -> "NumberOptions":
        """From `to_json`; anything else is refused."""
        try:
            cells = {str(name): Scores.from_json(cell) for name, cell in saved["cells"].items()}
            method, group, uncertainty = saved["method"], saved["group"], saved["uncertainty"]
            if method not in ("", "group", "cqr", "normalised") or len(saved) != 4:
                raise ValueError
            if method in ("cqr", "normalised") and "" not in cells:
                raise ValueError
            if not all(value is None or isinstance(value, str) for value in (group, uncertainty)):
                raise ValueError
            return NumberOptions(method, group, cells, uncertainty)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise WonderlandError("trust.json has options of trust that cannot be read: it is damaged.") from error


def cells_of(
    scores: ndarray, fold: ndarray, count: int, groups: ndarray | None, weights: ndarray | None = None
) -> dict[str, Scores]:
    """Scores by fold of each group, or of all rows under "". Shapes: (n,) each."""
    if groups is None:
        return {"": Scores.of(scores, fold, count, weights)}
    inside = {name: groups == name for name in np.unique(groups).tolist()}
    return {
        name: Scores.of(scores[rows], fold[rows], count, None if weights is None else weights[rows])
        for name, rows in inside.items()
    }
