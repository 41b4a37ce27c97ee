"""Rates by depth, and blocks that join one by one."""

import pytest
import torch

from wonderland import models, optim
from wonderland.core import Spec, WonderlandError
from wonderland.core.batch import Batch
from wonderland.core.recipe import Recipe
from wonderland.optim.depth import depths
from wonderland.tasks import Classification
from wonderland.train.learner import GradientDescent

VIT = {"classes": 2, "channels": 3, "height": 8, "width": 8, "patch": 4, "dim": 8, "depth": 2, "heads": 2}


def made(**arguments):
    recipe = Recipe(
        models.ViT.spec(**VIT), Classification.spec(classes=["a", "b"]), GradientDescent.spec(**arguments),
        optim.FusedAdamW.spec(weight_decay=0.1), Spec("optim.constant", {}), steps=8, batch_size=4, lr=0.01,
    )  # fmt: skip
    torch.manual_seed(0)
    learner = recipe.learner.build(recipe=recipe, task=recipe.task.build())
    return learner, learner.start(recipe.model.build())


def moved(learner, state, steps):
    """The depths of which a weight changed, step by step."""
    depth, _ = depths(state.model)
    batch, found = Batch({"x": torch.rand(4, 3, 8, 8), "y": torch.tensor([0, 1, 0, 1])}), []
    for _ in range(steps):
        before = {name: parameter.detach().clone() for name, parameter in state.model.named_parameters()}
        learner.step(state, batch)
        state.step += 1
        changed = {
            depth[name]
            for name, parameter in state.model.named_parameters()
            if not torch.equal(parameter, before[name])
        }
        found.append(sorted(changed))
    return found


def test_blocks_join_one_by_one_from_the_head():
    learner, state = made(unfreeze=0.75)
    assert moved(learner, state, 7) == [[3], [3], [2, 3], [2, 3], [1, 2, 3], [1, 2, 3], [0, 1, 2, 3]]


def test_rates_fall_towards_the_input():
    learner, state = made(depth_decay=0.5)
    moved(learner, state, 1)
    assert {group["depth"]: group["lr"] for group in state.optimizer.param_groups} == {
        0: 0.00125,
        1: 0.0025,
        2: 0.005,
        3: 0.01,
    }
    plain = made()[1].optimizer.param_groups
    assert len(plain) == 2
    grouped = sum(parameter.numel() for group in state.optimizer.param_groups for parameter in group["params"])
    assert grouped == sum(parameter.numel() for parameter in state.model.parameters())


def test_stages_of_convolutional_networks_have_depths_too():
    depth, last = depths(models.ResNet(3, depths=[1, 2], dims=[4, 8]))
    assert last == 4
    assert depth["head.weight"] == 4
    assert {depth[name] for name in depth if name.startswith("stages.1")} == {2, 3}
    assert min(depth.values()) == 0


def test_shares_that_cannot_be():
    with pytest.raises(WonderlandError, match="groups_by_depth: decay is a number above 0 and at most 1, not 0"):
        optim.groups_by_depth(torch.nn.Linear(2, 2), decay=0)
    with pytest.raises(WonderlandError, match="unfreeze is a share of the steps from 0 to 1, not 2"):
        made(unfreeze=2)
