"""Two players in turns: the learner of generative adversarial networks."""

from typing import Any

from torch import nn

from wonderland.core import part
from wonderland.core.recipe import Recipe
from wonderland.models.generative import adversarial_step
from wonderland.train.learner import Learner
from wonderland.train.state import State


@part
class Adversarial(Learner):
    """The discriminator learns, then the generator, from the same batch, each with an optimizer of its own.

    The model has `generate(z, labels)`, `judge(x, labels)`, `draw(count)`, and its discriminator's parameters in `players()`. `loss`
    and `penalty` are those of `models.generative.adversarial_step`; `judge_lr` is the discriminator's rate as a share of the recipe's.
    """

    def __init__(
        self, recipe: Recipe, task: Any, loss: str = "nonsaturating", penalty: float = 0.0, judge_lr: float = 1.0
    ):
        self.recipe, self.task, self.loss, self.penalty, self.judge_lr = recipe, task, loss, penalty, judge_lr
        self.schedule = recipe.schedule.build()

    def start(self, model: nn.Module) -> State:
        generating, judging = model.players()  # pyright: ignore[reportCallIssue]
        build, lr = self.recipe.optimizer.build, self.recipe.lr
        return State(
            model=model,
            optimizer=build(params=generating, lr=lr),
            judge_optimizer=build(params=judging, lr=lr * self.judge_lr),
        )

    def step(self, state: State, batch: Any) -> dict[str, float]:
        model: Any = state.model
        model.train()
        x, labels = self.task.given(batch)
        rate = self.recipe.lr * self.schedule(state.step, self.recipe.steps)
        for optimizer, share in ((state.optimizer, 1.0), (state.judge_optimizer, self.judge_lr)):
            for group in optimizer.param_groups:
                group["lr"] = rate * share
        losses = adversarial_step(
            lambda z: model.generate(z, labels),
            lambda image: model.judge(image, labels),
            (state.optimizer, state.judge_optimizer),
            x,
            *model.draw(len(x)),
            loss=self.loss,
            penalty=self.penalty,
        )
        return {"loss": losses["generator"], "discriminator": losses["discriminator"], "lr": rate}

    def model(self, state: State) -> nn.Module:
        return state.model
