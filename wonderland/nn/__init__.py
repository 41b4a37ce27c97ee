"""Blocks: one idea a file."""

from wonderland.nn import graph
from wonderland.nn.adapters.adapter import Adapter
from wonderland.nn.adapters.bias_tuning import BiasTuning
from wonderland.nn.adapters.bottleneck import Bottleneck
from wonderland.nn.adapters.ia3 import IA3
from wonderland.nn.adapters.lora import LoRA
from wonderland.nn.adapters.quantised_lora import QuantisedLoRA
from wonderland.nn.bayes import VariationalLinear, divergence
from wonderland.nn.blocks import initialise
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.crf import CRF
from wonderland.nn.blocks.ensemble import MemberDropout, MemberEmbeddings, MemberLinear, PeriodicNumbers
from wonderland.nn.blocks.heads import Pool, SequenceHead, TokenHead
from wonderland.nn.blocks.residual import Residual
from wonderland.nn.blocks.shared_stack import SharedStack
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.blocks.tokens import ClassToken, Registers
from wonderland.nn.channel.activations import (
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
from wonderland.nn.channel.drop_connect import DropConnect
from wonderland.nn.channel.dropout import ChannelDropout, Dropout, drop
from wonderland.nn.channel.glu import GLU
from wonderland.nn.channel.kan import KAN
from wonderland.nn.channel.maxout import Maxout
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.channel.monet import MONet
from wonderland.nn.channel.monte_carlo import Drawn, monte_carlo
from wonderland.nn.channel.trainable import APL, KAF, Swish
from wonderland.nn.contract.cross_mixer import CrossMixer
from wonderland.nn.contract.mixer import Mixer, Pointwise
from wonderland.nn.contract.state import COUNT, TIME, Slot, consuming, detach, rows
from wonderland.nn.implicit import Equilibrium, NeuralODE, RandomTruncation, VectorQuantiser, odeint
from wonderland.nn.mixers.additive_attention import AdditiveAttention, AdditiveSelfAttention
from wonderland.nn.mixers.aft import AFT
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.bidirectional import Bidirectional
from wonderland.nn.mixers.causal_convolution import CausalConvolution
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.mixers.deep_sets import DeepSets
from wonderland.nn.mixers.disentangled_attention import DisentangledAttention
from wonderland.nn.mixers.dss import DSS
from wonderland.nn.mixers.echo_state import EchoState
from wonderland.nn.mixers.feature_maps import EluPlusOne, ExpFeatures, RandomFeatures, ReluFeatures
from wonderland.nn.mixers.fourier import Fourier
from wonderland.nn.mixers.gated_attention_unit import GatedAttentionUnit
from wonderland.nn.mixers.gated_convolution import GatedConvolution
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.hard_attention import HardAttention
from wonderland.nn.mixers.kernel_regression import (
    KernelRegression,
    boxcar,
    constant,
    epanechnikov,
    gaussian,
    triangular,
)
from wonderland.nn.mixers.latent_attention import LatentAttention
from wonderland.nn.mixers.ligru import LiGRU, binarity
from wonderland.nn.mixers.linear_attention import LinearAttention
from wonderland.nn.mixers.long_convolution import LongConvolution
from wonderland.nn.mixers.lru import LRU
from wonderland.nn.mixers.lstm import LSTM
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.mixers.mamba2 import Mamba2
from wonderland.nn.mixers.memory_attention import MemoryAttention
from wonderland.nn.mixers.pooling import Pooling
from wonderland.nn.mixers.rnn import RNN
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.mixers.s4d import S4D
from wonderland.nn.mixers.s5 import S5
from wonderland.nn.mixers.shift import Shift
from wonderland.nn.mixers.spatial_gate import SpatialGate
from wonderland.nn.mixers.token_mlp import TokenMLP
from wonderland.nn.norms.batch_norm import BatchNorm, precise_statistics
from wonderland.nn.norms.norm import LayerNorm, NoNorm, RMSNorm, ZeroCentredRMSNorm
from wonderland.nn.norms.normalise import GroupNorm, InstanceNorm, normalise
from wonderland.nn.norms.weight_norm import WeightNormLinear, weight_norm
from wonderland.nn.positions import (
    Alibi,
    Learned,
    Position,
    RelativeBias,
    RelativeBuckets,
    RelativeTable,
    Rotary,
    Sinusoidal,
)
from wonderland.nn.symmetric.frame_average import FrameAverage
from wonderland.nn.symmetric.group_average import GroupAverage
from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.nn.vision.convnext_block import ConvNeXtBlock, MapNorm
from wonderland.nn.vision.dense_block import DenseBlock, Transition
from wonderland.nn.vision.inception import Inception
from wonderland.nn.vision.inverted_residual import InvertedResidual
from wonderland.nn.vision.map_pooling import MapPooling
from wonderland.nn.vision.norm_free import NormFreeBlock, ScaledConvolution
from wonderland.nn.vision.patch_whitening import PatchWhitening, whitening_directions
from wonderland.nn.vision.patches import Patches
from wonderland.nn.vision.pixels import Pixels
from wonderland.nn.vision.pre_activation import PreActivation
from wonderland.nn.vision.residual_blocks import BasicBlock, BottleneckBlock
from wonderland.nn.vision.residual_convolution import ResidualConvolution
from wonderland.nn.vision.squeeze_excitation import SqueezeExcitation

__all__ = [
    "AFT",
    "APL",
    "COUNT",
    "CRF",
    "DSS",
    "GLU",
    "GRU",
    "IA3",
    "KAF",
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
    "BasicBlock",
    "BatchNorm",
    "BiasTuning",
    "Bidirectional",
    "Block",
    "Bottleneck",
    "BottleneckBlock",
    "CausalConvolution",
    "ChannelDropout",
    "ClassToken",
    "ConvNeXtBlock",
    "ConvNorm",
    "CrossAttention",
    "CrossMixer",
    "DeepSets",
    "DenseBlock",
    "DisentangledAttention",
    "Drawn",
    "DropConnect",
    "Dropout",
    "EchoState",
    "EluPlusOne",
    "Equilibrium",
    "ExpFeatures",
    "Fourier",
    "FrameAverage",
    "GatedAttentionUnit",
    "GatedConvolution",
    "GroupAverage",
    "GroupNorm",
    "HardAttention",
    "Inception",
    "InstanceNorm",
    "InvertedResidual",
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
    "Mamba2",
    "MapNorm",
    "MapPooling",
    "Maxout",
    "MemberDropout",
    "MemberEmbeddings",
    "MemberLinear",
    "MemoryAttention",
    "Mixer",
    "NeuralODE",
    "NoNorm",
    "NormFreeBlock",
    "PatchWhitening",
    "Patches",
    "PeriodicNumbers",
    "Pixels",
    "Pointwise",
    "Pool",
    "Pooling",
    "Position",
    "PreActivation",
    "QuantisedLoRA",
    "RMSNorm",
    "RWKVChannel",
    "RandomFeatures",
    "RandomTruncation",
    "Registers",
    "RelativeBias",
    "RelativeBuckets",
    "RelativeTable",
    "ReluFeatures",
    "Residual",
    "ResidualConvolution",
    "Rotary",
    "ScaledConvolution",
    "SequenceHead",
    "SharedStack",
    "Shift",
    "Sinusoidal",
    "Slot",
    "SpatialGate",
    "SqueezeExcitation",
    "Stack",
    "Swish",
    "TokenHead",
    "TokenMLP",
    "Transition",
    "VariationalLinear",
    "VectorQuantiser",
    "WeightNormLinear",
    "ZeroCentredRMSNorm",
    "activation",
    "binarity",
    "boxcar",
    "constant",
    "consuming",
    "detach",
    "divergence",
    "drop",
    "elu",
    "elu_plus_one",
    "epanechnikov",
    "gaussian",
    "gelu",
    "gelu_tanh",
    "graph",
    "hard_swish",
    "identity",
    "initialise",
    "leaky_relu",
    "mish",
    "monte_carlo",
    "normalise",
    "odeint",
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
    "whitening_directions",
]
