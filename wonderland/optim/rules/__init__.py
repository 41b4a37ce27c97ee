"""Update rules of optimizers as pure functions, one method in each file, with its equation and book section."""

from wonderland.optim.rules.adadelta import adadelta
from wonderland.optim.rules.adagrad import adagrad
from wonderland.optim.rules.adam import adam, adamw, yogi
from wonderland.optim.rules.descent import sgd
from wonderland.optim.rules.filter_muon import filter_muon
from wonderland.optim.rules.lion import lion
from wonderland.optim.rules.momentum import heavy_ball, momentum, nesterov
from wonderland.optim.rules.muon import muon, orthogonalise
from wonderland.optim.rules.newton import newton, preconditioned
from wonderland.optim.rules.rmsprop import rmsprop
from wonderland.optim.rules.rule import Kernel, UpdateRule
from wonderland.optim.rules.schedule_free import schedule_free

__all__ = [
    "Kernel",
    "UpdateRule",
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "filter_muon",
    "heavy_ball",
    "lion",
    "momentum",
    "muon",
    "nesterov",
    "newton",
    "orthogonalise",
    "preconditioned",
    "rmsprop",
    "schedule_free",
    "sgd",
    "yogi",
]
