"""Options of trust for numbers: intervals by group, from quantiles (CQR), or as wide as the model is unsure; uncertainty."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.core import WonderlandError
from wonderland.trust.conformal_quantile import conformal_quantile


@dataclass(frozen=True)
class NumberOptions:
    """`cells` maps the name of a group ("" for all rows) to the sorted scores of its calibration rows.

    `method` is "group", "cqr", "normalised" or "" where intervals are the default ones.
    """

    method: str = ""
    group: str | None = None
    cells: dict[str, ndarray] = field(default_factory=dict)
    uncertainty: str | None = None

    def reach(self, level: float, rows: int, groups: ndarray | None) -> ndarray:
        """The score that the true value reaches at most, at this level, for each new row. Shapes: (n,).

        Infinite in a group with too few calibration rows.
        """
        if groups is None:
            return np.full(rows, conformal_quantile(self.cells[""], level))
        limits = {name: conformal_quantile(self.cells.get(name, ()), level) for name in np.unique(groups).tolist()}
        return np.array([limits[name] for name in groups.tolist()])

    def note(self, level: float) -> str:
        """The groups with too few rows for this level, or ""."""
        few = [name for name, cell in self.cells.items() if np.isinf(conformal_quantile(cell, level))]
        if not few:
            return ""
        if self.group is None:
            return (
                f"{len(self.cells[''])} calibration rows are too few for a level of {level:g}: intervals are unbounded."
            )
        shown = ", ".join(few[:5]) + (", ..." if len(few) > 5 else "")
        return (
            f"Too few calibration rows for a level of {level:g} in {self.group} {shown}: intervals are unbounded there."
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        cells = {name: cell.tolist() for name, cell in self.cells.items()}
        return {"method": self.method, "group": self.group, "cells": cells, "uncertainty": self.uncertainty}

    @staticmethod
    def from_json(saved: Any) -> "NumberOptions":
        """From `to_json`; anything else is refused."""
        try:
            cells = {str(name): np.sort(np.asarray(cell, np.float64)) for name, cell in saved["cells"].items()}
            if saved["method"] not in ("", "group", "cqr", "normalised") or set(saved) - {
                "method",
                "group",
                "cells",
                "uncertainty",
            }:
                raise ValueError
            if not all(cell.ndim == 1 and np.isfinite(cell).all() for cell in cells.values()):
                raise ValueError
            if saved["method"] in ("cqr", "normalised") and "" not in cells:
                raise ValueError
            text = saved["group"], saved["uncertainty"]
            if not all(value is None or isinstance(value, str) for value in text):
                raise ValueError
            return NumberOptions(saved["method"], text[0], cells, text[1])
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise WonderlandError("trust.json has options of trust that cannot be read: it is damaged.") from error


def cells_of(scores: ndarray, groups: ndarray | None) -> dict[str, ndarray]:
    """Sorted scores of each group, or of all rows under "". Shapes: (n,), (n,)."""
    if groups is None:
        return {"": np.sort(scores)}
    return {name: np.sort(scores[groups == name]) for name in np.unique(groups).tolist()}
