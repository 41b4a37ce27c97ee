"""Update rules and schedules."""

from wonderland.optim.groups import groups
from wonderland.optim.schedules import constant, warmup_cosine

__all__ = ["constant", "groups", "warmup_cosine"]
