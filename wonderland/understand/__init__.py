"""Understanding models: charts, the report of a run, cost, importance, and the doctor for training problems."""

from wonderland.understand import charts
from wonderland.understand.attention import attention_maps
from wonderland.understand.cluster import (
    Device,
    StepPlan,
    daly_interval,
    expected_share,
    simulated_share,
    step_plan,
    straggler_factor,
    young_interval,
)
from wonderland.understand.cost import Cost, Layer, cost
from wonderland.understand.doctor import Diagnosis, Finding, LayerStatistics, doctor
from wonderland.understand.fields import receptive_fields
from wonderland.understand.importance import Importance, permutation_importance, saliency
from wonderland.understand.looking import HeatMaps, grad_cam, ideal_input, integrated_gradients, occlusion
from wonderland.understand.map_sheets import MapSheet, feature_maps, filters
from wonderland.understand.precisions import Precision, precisions, quantised
from wonderland.understand.report import render, verdict
from wonderland.understand.residual import Lesions, PathLengths, lesions, path_lengths, residual_blocks
from wonderland.understand.rollout import attention_rollout, attention_weights
from wonderland.understand.roofline import Bound, Machine, measure_machine, roofline
from wonderland.understand.step_cost import StepCost, step_cost

__all__ = [
    "Bound",
    "Cost",
    "Device",
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
    "Precision",
    "StepCost",
    "StepPlan",
    "attention_maps",
    "attention_rollout",
    "attention_weights",
    "charts",
    "cost",
    "daly_interval",
    "doctor",
    "expected_share",
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
    "precisions",
    "quantised",
    "receptive_fields",
    "render",
    "residual_blocks",
    "roofline",
    "saliency",
    "simulated_share",
    "step_cost",
    "step_plan",
    "straggler_factor",
    "verdict",
    "young_interval",
]
