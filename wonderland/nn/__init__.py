"""Blocks: one idea a file."""

from wonderland.nn import initialise
from wonderland.nn.activations import (
    activation,
    elu,
    elu_plus_one,
    gelu,
    gelu_tanh,
    hard_swish,
    identity,
    leaky_relu,
    mish,
    quick_gelu,
    relu,
    relu6,
    sigmoid,
    silu,
    softplus,
    squared_relu,
    tanh,
)
from wonderland.nn.adapter import Adapter
from wonderland.nn.additive_attention import AdditiveAttention, AdditiveSelfAttention
from wonderland.nn.aft import AFT
from wonderland.nn.attention import Attention
from wonderland.nn.batch_norm import BatchNorm, precise_statistics
from wonderland.nn.bias_tuning import BiasTuning
from wonderland.nn.bidirectional import Bidirectional
from wonderland.nn.block import Block
from wonderland.nn.bottleneck import Bottleneck
from wonderland.nn.causal_convolution import CausalConvolution
from wonderland.nn.convolution import ResidualConvolution
from wonderland.nn.cross_attention import CrossAttention
from wonderland.nn.cross_mixer import CrossMixer
from wonderland.nn.deep_sets import DeepSets
from wonderland.nn.drop_connect import DropConnect
from wonderland.nn.dropout import ChannelDropout, Dropout, drop
from wonderland.nn.echo_state import EchoState
from wonderland.nn.feature_maps import EluPlusOne, ExpFeatures, RandomFeatures, ReluFeatures
from wonderland.nn.fourier import Fourier
from wonderland.nn.gated_convolution import GatedConvolution
from wonderland.nn.glu import GLU
from wonderland.nn.gru import GRU
from wonderland.nn.hard_attention import HardAttention
from wonderland.nn.heads import Pool, SequenceHead, TokenHead
from wonderland.nn.ia3 import IA3
from wonderland.nn.kan import KAN
from wonderland.nn.kernel_regression import KernelRegression, boxcar, constant, epanechnikov, gaussian, triangular
from wonderland.nn.latent_attention import LatentAttention
from wonderland.nn.ligru import LiGRU, binarity
from wonderland.nn.linear_attention import LinearAttention
from wonderland.nn.long_convolution import LongConvolution
from wonderland.nn.lora import LoRA
from wonderland.nn.lru import LRU
from wonderland.nn.lstm import LSTM
from wonderland.nn.mamba import Mamba
from wonderland.nn.maxout import Maxout
from wonderland.nn.members import MemberDropout, MemberEmbeddings, MemberLinear, PeriodicNumbers
from wonderland.nn.memory_attention import MemoryAttention
from wonderland.nn.mixer import Mixer, Pointwise
from wonderland.nn.mlp import MLP
from wonderland.nn.monet import MONet
from wonderland.nn.monte_carlo import Drawn, monte_carlo
from wonderland.nn.norm import LayerNorm, RMSNorm
from wonderland.nn.normalise import GroupNorm, InstanceNorm, normalise
from wonderland.nn.pooling import Pooling
from wonderland.nn.positions import Alibi, Learned, Position, RelativeBias, RelativeBuckets, Rotary, Sinusoidal
from wonderland.nn.residual import Residual
from wonderland.nn.rnn import RNN
from wonderland.nn.rwkv import RWKV, RWKVChannel
from wonderland.nn.s4d import S4D
from wonderland.nn.s5 import S5
from wonderland.nn.shift import Shift
from wonderland.nn.spatial_gate import SpatialGate
from wonderland.nn.stack import Stack
from wonderland.nn.state import COUNT, TIME, Slot, consuming, detach, rows
from wonderland.nn.token_mlp import TokenMLP
from wonderland.nn.tokens import ClassToken, Registers
from wonderland.nn.weight_norm import WeightNormLinear, weight_norm

__all__ = [
    "AFT",
    "COUNT",
    "GLU",
    "GRU",
    "IA3",
    "KAN",
    "LRU",
    "LSTM",
    "MLP",
    "RNN",
    "RWKV",
    "S4D",
    "S5",
    "TIME",
    "Adapter",
    "AdditiveAttention",
    "AdditiveSelfAttention",
    "Alibi",
    "Attention",
    "BatchNorm",
    "BiasTuning",
    "Bidirectional",
    "Block",
    "Bottleneck",
    "CausalConvolution",
    "ChannelDropout",
    "ClassToken",
    "CrossAttention",
    "CrossMixer",
    "DeepSets",
    "Drawn",
    "DropConnect",
    "Dropout",
    "EchoState",
    "EluPlusOne",
    "ExpFeatures",
    "Fourier",
    "GatedConvolution",
    "GroupNorm",
    "HardAttention",
    "InstanceNorm",
    "KernelRegression",
    "LatentAttention",
    "LayerNorm",
    "Learned",
    "LiGRU",
    "LinearAttention",
    "LoRA",
    "LongConvolution",
    "MONet",
    "Mamba",
    "Maxout",
    "MemberDropout",
    "MemberEmbeddings",
    "MemberLinear",
    "MemoryAttention",
    "Mixer",
    "PeriodicNumbers",
    "Pointwise",
    "Pool",
    "Pooling",
    "Position",
    "RMSNorm",
    "RWKVChannel",
    "RandomFeatures",
    "Registers",
    "RelativeBias",
    "RelativeBuckets",
    "ReluFeatures",
    "Residual",
    "ResidualConvolution",
    "Rotary",
    "SequenceHead",
    "Shift",
    "Sinusoidal",
    "Slot",
    "SpatialGate",
    "Stack",
    "TokenHead",
    "TokenMLP",
    "WeightNormLinear",
    "activation",
    "binarity",
    "boxcar",
    "constant",
    "consuming",
    "detach",
    "drop",
    "elu",
    "elu_plus_one",
    "epanechnikov",
    "gaussian",
    "gelu",
    "gelu_tanh",
    "hard_swish",
    "identity",
    "initialise",
    "leaky_relu",
    "mish",
    "monte_carlo",
    "normalise",
    "precise_statistics",
    "quick_gelu",
    "relu",
    "relu6",
    "rows",
    "sigmoid",
    "silu",
    "softplus",
    "squared_relu",
    "tanh",
    "triangular",
    "weight_norm",
]
