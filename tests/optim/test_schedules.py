"""Schedules against torch's, and error messages for wrong options."""

import math
from functools import partial
from xml.etree import ElementTree

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from wonderland import optim
from wonderland.core import WonderlandError

PAIRS = [
    (partial(optim.exponential, rate=-math.log(0.9)), lambda o: lr_scheduler.ExponentialLR(o, 0.9)),
    (partial(optim.factor, alpha=0.9), lambda o: lr_scheduler.ExponentialLR(o, 0.9)),
    (partial(optim.multi_step, at=(15, 30), alpha=0.5), lambda o: lr_scheduler.MultiStepLR(o, [15, 30], 0.5)),
    (
        partial(optim.piecewise, at=(0.25, 0.5), factors=(0.5, 0.25)),
        lambda o: lr_scheduler.MultiStepLR(o, [15, 30], 0.5),
    ),
    (partial(optim.cosine, floor=0.1), lambda o: lr_scheduler.CosineAnnealingLR(o, 60, 0.1)),
    (optim.one_cycle, lambda o: lr_scheduler.OneCycleLR(o, 1.0, 60, cycle_momentum=False)),
    (optim.square_root, lambda o: lr_scheduler.LambdaLR(o, lambda s: (s + 1) ** -0.5)),
    (optim.polynomial, lambda o: lr_scheduler.LambdaLR(o, lambda s: (0.1 * s + 1) ** -0.5)),
]


@pytest.mark.parametrize(("schedule", "peer"), PAIRS)
def test_schedules_are_those_of_torch(schedule, peer):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = peer(optimizer)
    for step in range(60):
        assert schedule(step, 60) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
        optimizer.step()
        if step < 59:
            theirs.step()


def test_plateau_is_that_of_torch_and_can_be_saved():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
    ours = optim.Plateau(alpha=0.5, patience=2)
    for step in range(60):
        measure = math.sin(step) + 10 / (step + 1)
        theirs.step(measure)
        ours.report(measure)
        assert ours(step, 60) == pytest.approx(optimizer.param_groups[0]["lr"])
        again = optim.Plateau(alpha=0.5, patience=2)
        again.load_state_dict(ours.state_dict())
        ours = again
    assert ours(0, 1) < 0.1


def test_nan_is_no_fall():
    schedule = optim.Plateau(alpha=0.5, patience=1)
    for measure in (math.nan, 1.0, math.nan, math.nan, 0.5):
        schedule.report(measure)
    assert (schedule.best, schedule.factor) == (0.5, 0.5)


@pytest.mark.parametrize("schedule", [schedule for schedule, _ in PAIRS] + [optim.constant, optim.warmup_cosine])
@pytest.mark.parametrize("steps", [1, 7, 1000])
def test_each_can_be_plotted(schedule, steps):
    drawing = ElementTree.fromstring(optim.plot(schedule, steps))
    line = next(item for item in drawing if item.tag.endswith("polyline"))
    assert len(line.attrib["points"].split()) == min(steps, 401)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: optim.exponential(1, 10, rate=-1.0), "exponential: rate must be"),
        (lambda: optim.polynomial(1, 10, power=-1.0), "polynomial: power must be"),
        (lambda: optim.factor(1, 10, alpha=1.5), "factor: alpha must be between 0 and 1, not 1.5"),
        (lambda: optim.multi_step(1, 10, alpha=-0.1), "multi_step: alpha must be"),
        (lambda: optim.warmup_cosine(1, 10, warmup=1.5), "warmup_cosine: warmup must be between 0 and 1, not 1.5"),
        (lambda: optim.warmup_cosine(1, 10, floor=-1.0), "warmup_cosine: floor must be"),
        (lambda: optim.cosine(1, 10, floor=2.0), "cosine: floor must be"),
        (lambda: optim.one_cycle(1, 10, rise=2.0), "one_cycle: rise must be"),
        (lambda: optim.piecewise(1, 10, at=(0.5, 0.2), factors=(0.1, 0.1)), "piecewise: at must be increasing"),
        (lambda: optim.Plateau(patience=-1), "Plateau: patience must be"),
        (
            lambda: optim.exponential(1, 10, rate="fast"),
            "exponential: rate must be a finite number of at least 0, not 'fast'",
        ),
        (lambda: optim.factor(1, 10, alpha=None), "factor: alpha must be between 0 and 1, not None"),
        (lambda: optim.multi_step(1, 10, at=5), "multi_step: at must be a list of steps such as"),
        (lambda: optim.piecewise(1, 10, at=0.5, factors=0.1), "piecewise: at must be increasing"),
        (lambda: optim.piecewise(1, 10, at=(5,), factors=(0.1,)), "piecewise: at must be between 0 and 1, not 5"),
        (lambda: optim.plot(optim.cosine, 10.5), "plot: steps must be a whole number"),
        (lambda: optim.plot(optim.cosine, 0), "plot: steps must be"),
    ],
)
def test_wrong_options_are_named(call, sentence):
    with pytest.raises(WonderlandError, match=sentence):
        call()
