"""Dropout, batch norm and their kin, as they are in evaluation; norms of images; a residual connection with a scale."""

import torch

from wonderland.laws import Example
from wonderland.nn.blocks.residual import Residual
from wonderland.nn.channel.drop_connect import DropConnect
from wonderland.nn.channel.dropout import ChannelDropout, Dropout
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.pooling import Pooling
from wonderland.nn.norms.batch_norm import BatchNorm
from wonderland.nn.norms.normalise import GroupNorm, InstanceNorm
from wonderland.nn.norms.weight_norm import WeightNormLinear


def _trained(axis: str = "last") -> BatchNorm:
    norm = BatchNorm(8, axis=axis)
    norm(torch.randn(4, *((9, 8) if axis == "last" else (8, 9))) * 3 + 1)
    return norm


CASES = {
    "dropout": lambda: Dropout(8, dropout=0.5),
    "channel dropout": lambda: ChannelDropout(8, dropout=0.5),
    "drop connect": lambda: DropConnect(8, 3),
    "drop connect, a mask a row": lambda: DropConnect(8, 3, each=True, bias=False),
    "batch norm": _trained,
    "batch norm, channels first": lambda: _trained("first"),
    "weight norm": lambda: WeightNormLinear(8),
    "group norm": lambda: GroupNorm(4, groups=2),
    "group norm of one group": lambda: GroupNorm(4, groups=1),
    "instance norm": lambda: InstanceNorm(4),
    "group norm, features last": lambda: GroupNorm(8, groups=2, axis="last"),
    "instance norm, features last": lambda: InstanceNorm(4, axis="last"),
    "residual mlp": lambda: Residual(8, MLP.spec()),
    "residual attention": lambda: Residual(8, Attention.spec(heads=2)),
    "residual pooling, both ways": lambda: Residual(8, Pooling.spec(causal=False), scale=0.5),
}


def _images(t: int) -> Example:
    return Example.floats(3, 4, t + 1, 3, seed=t, axes=("batch", None, "height", "width"))


def _signals(t: int) -> Example:
    return Example.floats(3, 8, t, seed=t, axes=("batch", None, "time"))


EXAMPLES = {
    **dict.fromkeys(("group norm", "group norm of one group", "instance norm"), _images),
    "batch norm, channels first": _signals,
    "instance norm, features last": lambda t: Example.floats(3, t + 1, 4, seed=t),
}
