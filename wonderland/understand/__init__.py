"""Look inside: charts, the report of a run, what a model costs, and what it looks at."""

from wonderland.understand import charts
from wonderland.understand.cost import Cost, Layer, cost
from wonderland.understand.importance import Importance, permutation_importance, saliency
from wonderland.understand.report import render, verdict

__all__ = [
    "Cost",
    "Importance",
    "Layer",
    "charts",
    "cost",
    "permutation_importance",
    "render",
    "saliency",
    "verdict",
]
