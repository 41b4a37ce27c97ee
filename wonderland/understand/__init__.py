"""Understanding models: charts, the report of a run, cost, importance, and the doctor for training problems."""

from wonderland.understand import charts
from wonderland.understand.cost import Cost, Layer, cost
from wonderland.understand.doctor import Diagnosis, Finding, LayerStatistics, doctor
from wonderland.understand.importance import Importance, permutation_importance, saliency
from wonderland.understand.looking import (
    HeatMaps,
    feature_maps,
    grad_cam,
    ideal_input,
    integrated_gradients,
    lesions,
    occlusion,
)
from wonderland.understand.report import render, verdict

__all__ = [
    "Cost",
    "Diagnosis",
    "Finding",
    "HeatMaps",
    "Importance",
    "Layer",
    "LayerStatistics",
    "charts",
    "cost",
    "doctor",
    "feature_maps",
    "grad_cam",
    "ideal_input",
    "integrated_gradients",
    "lesions",
    "occlusion",
    "permutation_importance",
    "render",
    "saliency",
    "verdict",
]
