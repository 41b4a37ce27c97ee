"""Laws: properties that blocks claim (causality, equivariance, correct gradients), and their checks."""

from wonderland.laws.batch_independence import batch_independence
from wonderland.laws.causality import causality, strict_causality
from wonderland.laws.check import check
from wonderland.laws.compiles import compiles
from wonderland.laws.determinism import determinism
from wonderland.laws.example import Example
from wonderland.laws.finiteness import finiteness
from wonderland.laws.gradients import gradients
from wonderland.laws.graphs import graph_batching, graph_edge_cases, graph_locality, graph_permutation
from wonderland.laws.locality import locality
from wonderland.laws.padding_invariance import padding_invariance
from wonderland.laws.rotation import rotation_equivariance
from wonderland.laws.save_load import save_load
from wonderland.laws.streaming import streaming
from wonderland.laws.subject import LAWS, NotApplicable, Subject, law
from wonderland.laws.symmetry import (
    permutation_equivariance,
    permutation_invariance,
    scale_invariance,
    shift_equivariance,
)
from wonderland.laws.verdict import Verdict, Verdicts

__all__ = [
    "LAWS",
    "Example",
    "NotApplicable",
    "Subject",
    "Verdict",
    "Verdicts",
    "batch_independence",
    "causality",
    "check",
    "compiles",
    "determinism",
    "finiteness",
    "gradients",
    "graph_batching",
    "graph_edge_cases",
    "graph_locality",
    "graph_permutation",
    "law",
    "locality",
    "padding_invariance",
    "permutation_equivariance",
    "permutation_invariance",
    "rotation_equivariance",
    "save_load",
    "scale_invariance",
    "shift_equivariance",
    "streaming",
    "strict_causality",
]
