"""Blocks and stacks: mixers made of mixers."""

from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.shared_stack import SharedStack
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.glu import GLU
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.channel.monet import MONet
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.deep_sets import DeepSets
from wonderland.nn.mixers.pooling import Pooling
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.mixers.shift import Shift
from wonderland.nn.norms.norm import RMSNorm

ATTENTION, CHANNEL = Attention.spec(heads=2), MLP.spec(expansion=2, activation="silu")

CASES = {
    "block, norm before": lambda: Block(8, ATTENTION, channel=CHANNEL),
    "block, norm after": lambda: Block(8, ATTENTION, channel=CHANNEL, placement="post", dropout=0.5),
    "block, parallel": lambda: Block(8, ATTENTION, channel=CHANNEL, placement="parallel", layer_scale=0.1),
    "block, parallel, a norm for each": lambda: Block(8, ATTENTION, channel=CHANNEL, placement="parallel_each"),
    "block, norm of the branches": lambda: Block(8, ATTENTION, channel=CHANNEL, placement="branch"),
    "block, norms around the mixers": lambda: Block(
        8, ATTENTION, channel=CHANNEL, placement="sandwich", norm=RMSNorm.spec()
    ),
    "block without order": lambda: Block(8, Attention.spec(heads=2, causal=False), channel=CHANNEL),
    "block without channel mixer": lambda: Block(8, Shift.spec(), drop_path=0.5),
    "block, channel first": lambda: Block(
        8, Pooling.spec(), channel=GLU.spec(hidden=4), norm=RMSNorm.spec(), first="channel"
    ),
    "block with states in both slots": lambda: Block(8, RWKV.spec(), channel=RWKVChannel.spec()),
    "stack": lambda: Stack(8, 2, Block.spec(mixer=ATTENTION, channel=MLP.spec(hidden=4))),
    "stack with shared blocks": lambda: SharedStack(
        8, 3, Block.spec(mixer=ATTENTION, channel=MLP.spec(hidden=4)), groups=2
    ),
    "stack of a pattern": lambda: Stack(
        8,
        2,
        [Block.spec(mixer=MONet.spec(hidden=4, rank=1, shift=True)), Block.spec(mixer=MONet.spec(hidden=4, rank=1))],
    ),
    "stack of sets": lambda: Stack(8, 2, DeepSets.spec(), norm=RMSNorm.spec()),
}
