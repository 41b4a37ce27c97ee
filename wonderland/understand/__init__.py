"""Understanding models: charts, the report of a run, cost, importance, and the doctor for training problems."""

from wonderland.understand import charts
from wonderland.understand.cost import Cost, Layer, cost
from wonderland.understand.doctor import Diagnosis, Finding, LayerStatistics, doctor
from wonderland.understand.importance import Importance, permutation_importance, saliency
from wonderland.understand.report import render, verdict

__all__ = [
    "Cost",
    "Diagnosis",
    "Finding",
    "Importance",
    "Layer",
    "LayerStatistics",
    "charts",
    "cost",
    "doctor",
    "permutation_importance",
    "render",
    "saliency",
    "verdict",
]
