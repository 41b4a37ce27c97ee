"""The loop, checkpoints, and what a step of learning is."""

from wonderland.train.budget import seconds, steps_within
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.finder import Found, find_lr
from wonderland.train.guard import NonFinite
from wonderland.train.loop import Outcome, run
from wonderland.train.signals import Stopped
from wonderland.train.state import State
from wonderland.train.supervised import Supervised, adamw

__all__ = [
    "Checkpoints",
    "Found",
    "NonFinite",
    "Outcome",
    "State",
    "Stopped",
    "Supervised",
    "adamw",
    "find_lr",
    "run",
    "seconds",
    "steps_within",
]
