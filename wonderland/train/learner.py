"""Learner: how a model is fitted to data. Gradient descent is the default; a closed-form fit or reinforcement learning is another."""

import copy
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import nn

from wonderland.core import Part, WonderlandError, part
from wonderland.core.recipe import Recipe
from wonderland.optim import groups, groups_by_depth
from wonderland.train.parallel.group import Group
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


def check_learner(learner: Learner, group: Group) -> None:
    """Refuse several processes for a learner that cannot share a batch among them."""
    if group.count > 1 and not isinstance(learner, GradientDescent):
        raise WonderlandError(
            f"{type(learner).__name__} does not learn by gradients of batches, which processes could share: fit it with one process."
        )


@part
class GradientDescent(Learner):
    """Gradients of the task's loss, the recipe's optimizer and schedule, and a moving average of the weights if the recipe has one.

    With `depth_decay` below 1, each block learns at that share of the rate of the block after it (`optim.groups_by_depth`). With
    `unfreeze`, only the head learns at first, and the blocks join it one by one, the last first, until that share of the steps.
    """

    def __init__(self, recipe: Recipe, task: Any, depth_decay: float = 1.0, unfreeze: float = 0.0):
        if not 0 <= unfreeze <= 1:
            raise WonderlandError(f"unfreeze is a share of the steps from 0 to 1, not {unfreeze!r}.")
        self.recipe, self.task, self.depth_decay, self.unfreeze = recipe, task, depth_decay, unfreeze
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
        if self.depth_decay < 1 or self.unfreeze:
            parameters = groups_by_depth(model, decay=self.depth_decay, weight_decay=decay)
        else:
            parameters = groups(model, weight_decay=decay)
        built: torch.optim.Optimizer = optimizer.build(params=parameters, lr=self.recipe.lr)
        averaged = {} if self.recipe.average is None else {"average": copy.deepcopy(model)}
        return State(model=model, optimizer=built, **averaged)

    def step(self, state: State, batch: Any) -> dict[str, float]:
        if self.unfreeze:
            groups = state.optimizer.param_groups
            last = max(group["depth"] for group in groups)
            for group in groups:  # a rate of 0 leaves weights as they are, weight decay included
                joins = self.unfreeze * self.recipe.steps * (last - group["depth"]) / max(last, 1)
                group["lr_factor"] = self.depth_decay ** (last - group["depth"]) if state.step >= joins else 0.0
        return self.supervised(state, batch)

    def model(self, state: State) -> nn.Module:
        return state.parts().get("average", state.model)
