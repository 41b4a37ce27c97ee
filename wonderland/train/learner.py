"""Learner: how a model comes from data. Gradient descent is the default; what makes its own data or has a closed form is another."""

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
    """Made from a recipe and its task: `start` gives the state before the first step, `step` changes it for one batch and
    returns scalars by name, `model` is what the state has learned. `train.run` drives any of them.
    """

    @abstractmethod
    def start(self, model: nn.Module) -> State:
        """The state before the first step, around a fresh model."""

    @abstractmethod
    def step(self, state: State, batch: Any) -> dict[str, float]:
        """Learn from one batch."""

    @abstractmethod
    def model(self, state: State) -> nn.Module:
        """The model that is kept."""


@part
class GradientDescent(Learner):
    """Gradients of the task's loss, the recipe's optimizer and schedule, and a moving average of the weights if it asks for one."""

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
