"""The default road for each kind of data."""

from wonderland.recipes.fit import fit
from wonderland.recipes.recipe import Recipe

__all__ = ["Recipe", "fit"]
