"""The road from a source to a run: fit, plan, request."""

from typing import TYPE_CHECKING

from wonderland.core.lazy import lazy_attributes

if TYPE_CHECKING:
    from wonderland.core.recipe import Ensemble, Recipe
    from wonderland.road.fitting import fit
    from wonderland.road.plan import Plan
    from wonderland.road.request import Request
    from wonderland.road.searching import Searched, search
    from wonderland.road.training import Training

# The shell reads the options of training before torch is loaded.
__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "Ensemble": "wonderland.core.recipe",
        "Plan": "wonderland.road.plan",
        "Recipe": "wonderland.core.recipe",
        "Request": "wonderland.road.request",
        "Searched": "wonderland.road.searching",
        "Training": "wonderland.road.training",
        "fit": "wonderland.road.fitting",
        "search": "wonderland.road.searching",
    },
)

__all__ = ["Ensemble", "Plan", "Recipe", "Request", "Searched", "Training", "fit", "search"]
