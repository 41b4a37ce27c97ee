"""The entries of the table: which class has which fast forms."""

from wonderland.fast import convolutions
from wonderland.fast import fused_rules as fused
from wonderland.fast import step_rules as steps
from wonderland.fast.table import Rule, register
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.glu import GLU
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.ligru import LiGRU
from wonderland.nn.mixers.lstm import LSTM
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.mixers.rnn import RNN
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.norms.norm import LayerNorm, RMSNorm
from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.nn.vision.residual_blocks import BasicBlock, BottleneckBlock

register(LayerNorm, Rule(norm=steps.layer_norm, norm_form=fused.layer_norm))
register(RMSNorm, Rule(norm=steps.rms_norm, norm_form=fused.rms_norm))
register(Attention, Rule(step=steps.attention, fuse=fused.attention))
register(Mamba, Rule(step=steps.mamba))
register(RWKV, Rule(step=steps.rwkv))
register(RWKVChannel, Rule(step=steps.rwkv_channel))
for kind in (RNN, GRU, LiGRU, LSTM):
    register(kind, Rule(step=steps.recurrent))
register(MLP, Rule(step=steps.mlp, fuse=fused.mlp))
register(GLU, Rule(step=steps.glu))
register(Block, Rule(step=steps.block, residual=True))
register(Stack, Rule(step=steps.stack, residual=True))
register(ConvNorm, Rule(images=convolutions.conv_norm))
register(BasicBlock, Rule(images=convolutions.residual))
register(BottleneckBlock, Rule(images=convolutions.residual))
