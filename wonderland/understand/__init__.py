"""Understanding models: charts, the report of a run, cost, importance, and the doctor for training problems."""

from wonderland.understand import charts
from wonderland.understand.attention import attention_maps
from wonderland.understand.cost import Cost, Layer, cost
from wonderland.understand.doctor import Diagnosis, Finding, LayerStatistics, doctor
from wonderland.understand.fields import receptive_fields
from wonderland.understand.importance import Importance, permutation_importance, saliency
from wonderland.understand.looking import HeatMaps, grad_cam, ideal_input, integrated_gradients, occlusion
from wonderland.understand.map_sheets import MapSheet, feature_maps, filters
from wonderland.understand.report import render, verdict
from wonderland.understand.residual import Lesions, PathLengths, lesions, path_lengths, residual_blocks
from wonderland.understand.rollout import attention_rollout, attention_weights
from wonderland.understand.roofline import Bound, Machine, measure_machine, roofline

__all__ = [
    "Bound",
    "Cost",
    "Diagnosis",
    "Finding",
    "HeatMaps",
    "Importance",
    "Layer",
    "LayerStatistics",
    "Lesions",
    "Machine",
    "MapSheet",
    "PathLengths",
    "attention_maps",
    "attention_rollout",
    "attention_weights",
    "charts",
    "cost",
    "doctor",
    "feature_maps",
    "filters",
    "grad_cam",
    "ideal_input",
    "integrated_gradients",
    "lesions",
    "measure_machine",
    "occlusion",
    "path_lengths",
    "permutation_importance",
    "receptive_fields",
    "render",
    "residual_blocks",
    "roofline",
    "saliency",
    "verdict",
]
