"""Wonderland: from data of any kind to a model that can be trusted and shipped."""

from typing import TYPE_CHECKING

from wonderland.core.errors import WonderlandError
from wonderland.core.lazy import lazy_attributes
from wonderland.core.processor import disable_missing_amx
from wonderland.version import __version__

if TYPE_CHECKING:
    from wonderland.autodiff.trace import trace
    from wonderland.laws.check import check
    from wonderland.road.estimators import Classifier, Regressor
    from wonderland.road.fitting import fit
    from wonderland.ship.run import Run, load

disable_missing_amx()

# Importing torch takes seconds, so each name is fetched at its first use.
_FOLDERS = ("autodiff", "checkpoints", "data", "generation", "kinds", "laws", "models", "nn", "ops", "optim", "probability", "rl", "road",
            "search", "ship", "solvers", "tasks", "train", "trust", "understand")  # fmt: skip
__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "Classifier": "wonderland.road.estimators",
        "check": "wonderland.laws.check",
        "fit": "wonderland.road.fitting",
        "load": "wonderland.ship.run",
        "Regressor": "wonderland.road.estimators",
        "Run": "wonderland.ship.run",
        "trace": "wonderland.autodiff.trace",
    }
    | {folder: f"wonderland.{folder}" for folder in _FOLDERS},
)

__all__ = ["Classifier", "Regressor", "Run", "WonderlandError", "__version__", "check", "fit", "load", "trace"]
