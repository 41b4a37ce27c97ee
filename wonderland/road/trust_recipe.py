"""What is asked of trust, and the recipe: dropout where uncertainty needs it, refusals where a model cannot serve."""

from dataclasses import replace

import torch

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.nn.channel.monte_carlo import drops
from wonderland.road.parts import is_closed_form
from wonderland.tasks.wanted import Wanted

DROPOUT = 0.1


def with_dropout(recipe: Recipe) -> Recipe:
    """The default recipe of a kind, with dropout where its model takes it and has none."""
    if not isinstance(recipe.model, Spec):
        return recipe
    given = recipe.model.arguments.get("dropout")
    if given == 0:
        dropout = DROPOUT
    elif isinstance(given, list) and not any(given):
        dropout = [DROPOUT] * len(given)
    else:
        return recipe
    return replace(recipe, model=Spec(recipe.model.name, {**recipe.model.arguments, "dropout": dropout}))


def check_recipe_for(wanted: Wanted, recipe: Recipe) -> None:
    """Refuse options of trust that the model of a recipe cannot serve."""
    name = recipe.model if isinstance(recipe.model, str) else recipe.model.name
    if wanted.method == "cross" and not recipe.folds:
        raise WonderlandError("conformal cross needs models of several folds, which this run has not: choose split.")
    if wanted.uncertainty == "ensemble" and recipe.ensemble is None:
        raise WonderlandError(f"uncertainty ensemble needs several members, and {name} is one network: choose dropout.")
    if wanted.uncertainty in ("laplace", "swag") and is_closed_form(recipe.model):
        raise WonderlandError(f"uncertainty {wanted.uncertainty} is for networks, and {name} is fitted in one step.")
    if wanted.uncertainty == "dropout" and isinstance(recipe.model, Spec):
        with torch.device("meta"):
            model = recipe.model.build()
        if not any(drops(module) for module in model.modules()):
            raise WonderlandError(
                f"uncertainty dropout needs a model with dropout, and {name} has none here: choose ensemble."
            )
