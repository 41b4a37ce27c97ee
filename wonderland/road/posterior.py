"""Weights of a plan's model drawn from their posterior."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.data.examples import RowExamples
from wonderland.train.posterior import laplace_draws, swag_draws
from wonderland.trust.weight_draws import WeightDraws

MOST_ROWS = 20_000  # training rows that the curvature is computed from
SWAG_RATE = 0.1  # of the peak rate
SWAG_STEPS = 0.5  # of the steps of training


def draw_weights(plan: Any, model: nn.Module, method: str) -> WeightDraws:
    """Draws by Laplace's approximation of the last layer, or by SWAG: training goes on at a constant rate."""
    if not isinstance(plan.examples, RowExamples):
        raise WonderlandError(f"uncertainty {method} is for examples that are rows: choose dropout.")
    return laplace_of(plan, model) if method == "laplace" else swag_of(plan, model)


def laplace_of(plan: Any, model: nn.Module) -> WeightDraws:
    """Draws of the last layer; each member of an ensemble has seen its own rows only."""
    train, examples, ensemble = np.asarray(plan.parts.train), plan.examples, plan.recipe.ensemble
    rows = (
        train[:MOST_ROWS]
        if len(train) <= MOST_ROWS
        else np.sort(np.random.default_rng(plan.seed).choice(train, MOST_ROWS, replace=False))
    )
    own = None
    if ensemble is not None:
        own = [torch.as_tensor(np.isin(rows, plan.rows_of(member))) for member in range(ensemble.members)]
    numbers = plan.task.classes is None
    y = torch.as_tensor(plan.task.standard(examples.y[rows]) if numbers else examples.y[rows])
    weights = None if examples.weights is None else torch.as_tensor(examples.weights[rows])
    likelihood = "gaussian" if numbers else "categorical"
    x = examples.inputs(rows).to(next(model.parameters()).device)
    return laplace_draws(model, x, y, likelihood, rows=own, weights=weights, seed=plan.seed)


def swag_of(plan: Any, model: nn.Module) -> WeightDraws:
    """Draws of all weights, from training that goes on at a constant rate."""
    recipe = plan.recipe
    steps = max(1, round(SWAG_STEPS * recipe.steps))
    constant = replace(recipe, schedule=Spec("optim.constant", {}), lr=SWAG_RATE * recipe.lr, average=None)
    learner = replace(plan, recipe=constant).learner()
    stream = plan.batches().stream(recipe.steps, recipe.steps + steps + 20)
    return swag_draws(model, steps, learner.start, learner.step, stream, seed=plan.seed)
