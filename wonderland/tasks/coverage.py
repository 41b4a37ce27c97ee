"""Coverage measured on rows with known targets: on average, and of the class or group that is covered least."""

from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.tasks.view import View

FEWEST_ROWS = 5  # of a class whose coverage is shown
FEWEST_IN_GROUP = 20  # rows of a group: there can be many, and the least of many small shares says little


def covered(hits: ndarray, view: View) -> float:
    """The share of rows whose target was covered, weighted where the rows have density ratios. Shapes: (n,) -> scalar."""
    return float(np.average(hits, weights=view.ratios()))


def least_covered(hits: ndarray, names: ndarray, fewest: int) -> dict[str, Any] | None:
    """The name whose rows are covered least, among those with at least so many rows; None where there are not two such.

    Shapes: hits (n,), names (n,).

    >>> least_covered(np.array([True, True, False, True]), np.array(["a", "a", "b", "b"]), 2)
    {'name': 'b', 'coverage': 0.5, 'rows': 2}
    """
    known, place, counts = np.unique(names, return_inverse=True, return_counts=True)
    shares = np.bincount(place, np.asarray(hits, float), minlength=len(known)) / counts
    enough = np.flatnonzero(counts >= fewest)
    if len(enough) < 2:
        return None
    worst = enough[shares[enough].argmin()]
    return {"name": str(known[worst]), "coverage": float(shares[worst]), "rows": int(counts[worst])}


def by_group(hits: ndarray, view: View, groups: ndarray | None, column: str | None) -> dict[str, Any]:
    """{"worst_group": ...} for the groups (n,) that sets or intervals are calibrated by, or else those the data are split by."""
    if groups is None:
        groups, column = view.group_names(), getattr(view.dataset, "group", None)
    if groups is None or column is None:
        return {}
    named = groups != ""
    worst = least_covered(hits[named], groups[named], FEWEST_IN_GROUP)
    return {} if worst is None else {"worst_group": worst | {"of": str(column)}}
