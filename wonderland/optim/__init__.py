"""Update rules and schedules."""

from wonderland.optim.average import follow
from wonderland.optim.groups import groups
from wonderland.optim.schedules import constant, warmup_cosine

__all__ = ["constant", "follow", "groups", "warmup_cosine"]
