"""Data-parallel training in several processes: the group, sums of gradients, synchronised batch norm, sharding, the launcher."""

from wonderland.train.parallel.all_reduce import ParameterServer, Reduced, naive_all_reduce, ring_all_reduce
from wonderland.train.parallel.batch_norm import synchronised_batch_norm
from wonderland.train.parallel.gradient_sum import GradientSum
from wonderland.train.parallel.group import Group, LostProcess, alone, begun_again, current, joined
from wonderland.train.parallel.launch import launch
from wonderland.train.parallel.shard import Sharded, gathered, is_sharded, shard

__all__ = [
    "GradientSum",
    "Group",
    "LostProcess",
    "ParameterServer",
    "Reduced",
    "Sharded",
    "alone",
    "begun_again",
    "current",
    "gathered",
    "is_sharded",
    "joined",
    "launch",
    "naive_all_reduce",
    "ring_all_reduce",
    "shard",
    "synchronised_batch_norm",
]
