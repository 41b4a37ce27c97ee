"""Laws: properties that blocks claim (causality, equivariance, correct gradients), and their checks."""

from wonderland.laws.batch_independence import batch_independence
from wonderland.laws.causality import causality, strict_causality
from wonderland.laws.check import check
from wonderland.laws.compiles import compiles
from wonderland.laws.determinism import determinism
from wonderland.laws.example import Example
from wonderland.laws.finiteness import finiteness
from wonderland.laws.gradients import gradients
from wonderland.laws.locality import locality
from wonderland.laws.padding_invariance import padding_invariance
from wonderland.laws.save_load import save_load
from wonderland.laws.streaming import streaming
from wonderland.laws.subject import LAWS
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
    "Verdict",
    "Verdicts",
    "batch_independence",
    "causality",
    "check",
    "compiles",
    "determinism",
    "finiteness",
    "gradients",
    "locality",
    "padding_invariance",
    "permutation_equivariance",
    "permutation_invariance",
    "save_load",
    "scale_invariance",
    "shift_equivariance",
    "streaming",
    "strict_causality",
]
