"""Optimizers, update rules, learning rate schedules and weight averages."""

from wonderland.optim import rules
from wonderland.optim.average import EMA, SWA, follow
from wonderland.optim.compose import clipped, decayed, lookahead, scheduled
from wonderland.optim.groups import groups
from wonderland.optim.optimizer import Optimizer
from wonderland.optim.optimizers import (
    SGD,
    Adadelta,
    AdaGrad,
    Adam,
    AdamW,
    HeavyBall,
    Lion,
    Momentum,
    Muon,
    Nesterov,
    RMSProp,
    ScheduleFree,
    Yogi,
)
from wonderland.optim.schedules import (
    Plateau,
    constant,
    cosine,
    exponential,
    factor,
    multi_step,
    one_cycle,
    piecewise,
    plot,
    polynomial,
    square_root,
    warmup_cosine,
)

__all__ = [
    "EMA",
    "SGD",
    "SWA",
    "AdaGrad",
    "Adadelta",
    "Adam",
    "AdamW",
    "HeavyBall",
    "Lion",
    "Momentum",
    "Muon",
    "Nesterov",
    "Optimizer",
    "Plateau",
    "RMSProp",
    "ScheduleFree",
    "Yogi",
    "clipped",
    "constant",
    "cosine",
    "decayed",
    "exponential",
    "factor",
    "follow",
    "groups",
    "lookahead",
    "multi_step",
    "one_cycle",
    "piecewise",
    "plot",
    "polynomial",
    "rules",
    "scheduled",
    "square_root",
    "warmup_cosine",
]
