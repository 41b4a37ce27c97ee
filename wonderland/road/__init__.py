"""The default road for each kind of data."""

from wonderland.road.fit import fit
from wonderland.core.recipe import Recipe

__all__ = ["Recipe", "fit"]
