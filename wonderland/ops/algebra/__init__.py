"""Linear algebra and convexity: where eigenvalues lie, what a system can be trusted with, nearest points, constraints."""

from wonderland.ops.algebra.conditioning import condition_number, dependent_columns, solve
from wonderland.ops.algebra.constrained import Solution, lagrangian, minimise
from wonderland.ops.algebra.convexity import Witness, find_negative_curvature, find_nonconvexity, jensen_gap
from wonderland.ops.algebra.eigen import Eigenpair, principal_eigenvalue, rescale, spectral_radius
from wonderland.ops.algebra.gershgorin import Discs, gershgorin
from wonderland.ops.algebra.projections import project_box, project_l1, project_l2, project_linf, project_simplex

__all__ = [
    "Discs",
    "Eigenpair",
    "Solution",
    "Witness",
    "condition_number",
    "dependent_columns",
    "find_negative_curvature",
    "find_nonconvexity",
    "gershgorin",
    "jensen_gap",
    "lagrangian",
    "minimise",
    "principal_eigenvalue",
    "project_box",
    "project_l1",
    "project_l2",
    "project_linf",
    "project_simplex",
    "rescale",
    "solve",
    "spectral_radius",
]
