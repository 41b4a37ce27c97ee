"""Learner: how a model is fitted to data. Gradient descent is the default; a closed-form fit or reinforcement learning is another."""

import copy
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import nn

from wonderland.core import Part, part
from wonderland.core.recipe import Recipe
from wonderland.optim import groups
from wonderland.train.state import State
from wonderland.train.supervised import Supervised


class Learner(Part, ABC):
    """Built from a recipe and its task: `start` returns the state before the first step, `step` updates it with one batch and
    returns scalars by name, `model` is the fitted model in the state. `train.run` runs any of them.
    """

    @abstractmethod
    def start(self, model: nn.Module) -> State:
        """The state before the first step, around a fresh model."""

    @abstractmethod
    def step(self, state: State, batch: Any) -> dict[str, float]:
        """Update the state with one batch; returns scalars by name."""

    @abstractmethod
    def model(self, state: State) -> nn.Module:
        """The fitted model."""


@part
class GradientDescent(Learner):
    """Gradients of the task's loss, the recipe's optimizer and schedule, and a moving average of the weights if the recipe has one."""

    def __init__(self, recipe: Recipe, task: Any):
        self.recipe, self.task = recipe, task
        self.supervised = Supervised(
            task.loss,
            recipe.steps,
            recipe.lr,
            recipe.schedule.build(),
            clip=recipe.clip,
            accumulate=recipe.accumulate,
            precision=recipe.precision,
            average=recipe.average,
        )

    def start(self, model: nn.Module) -> State:
        optimizer = self.recipe.optimizer
        decay = optimizer.arguments.get("weight_decay")
        parameters = groups(model, weight_decay=decay)
        built: torch.optim.Optimizer = optimizer.build(params=parameters, lr=self.recipe.lr)
        averaged = {} if self.recipe.average is None else {"average": copy.deepcopy(model)}
        return State(model=model, optimizer=built, **averaged)

    def step(self, state: State, batch: Any) -> dict[str, float]:
        return self.supervised(state, batch)

    def model(self, state: State) -> nn.Module:
        return state.parts().get("average", state.model)
