"""The road from a source to a run: fit, plan, request."""

from wonderland.core.recipe import Ensemble, Recipe
from wonderland.road.fit import fit
from wonderland.road.plan import Plan
from wonderland.road.request import Request
from wonderland.road.training import Training

__all__ = ["Ensemble", "Plan", "Recipe", "Request", "Training", "fit"]
