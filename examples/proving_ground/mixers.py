"""The mixers that compete, each as the spec that a stack is built from."""

import math
from dataclasses import dataclass

from wonderland.core import Spec
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.aft import AFT
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.causal_convolution import CausalConvolution
from wonderland.nn.mixers.gated_convolution import GatedConvolution
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.ligru import LiGRU
from wonderland.nn.mixers.linear_attention import LinearAttention
from wonderland.nn.mixers.long_convolution import LongConvolution
from wonderland.nn.mixers.lru import LRU
from wonderland.nn.mixers.lstm import LSTM
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.mixers.s4d import S4D
from wonderland.nn.mixers.s5 import S5
from wonderland.nn.positions import Learned, Rotary

LONGEST = 2048


@dataclass(frozen=True)
class Entry:
    """What mixes tokens, layer by layer, what mixes channels, and what is added to the embedding."""

    mixer: list[Spec]
    channel: Spec
    position: Spec | None = None


def entries(length: int) -> dict[str, Entry]:
    """All mixers for sequences of a length; only convolutions depend on it, so that two layers reach the beginning.

    The channel mixer is the same MLP for everybody but RWKV, which has its own. Mamba gets it too, though it does not need
    one, so that nobody is ahead for that reason.
    """
    mlp, absolute = MLP.spec(expansion=2), Learned.spec(length=LONGEST)
    width = math.isqrt(length - 1) + 1
    dilated = [{"width": width, "dilation": 1}, {"width": width, "dilation": width}]
    return {
        "attention": Entry([Attention.spec(heads=1, bias=True)], mlp, absolute),
        "attention, rotary": Entry([Attention.spec(heads=1, bias=True, position=Rotary.spec())], mlp),
        "linear attention": Entry([LinearAttention.spec(heads=4)], mlp, absolute),
        "AFT": Entry([AFT.spec()], mlp, absolute),
        "RWKV": Entry([RWKV.spec()], RWKVChannel.spec(expand=2)),
        "Mamba": Entry([Mamba.spec()], mlp),
        "S4D": Entry([S4D.spec()], mlp),
        "S5": Entry([S5.spec()], mlp),
        "LRU": Entry([LRU.spec(largest=0.999)], mlp),
        "GRU": Entry([GRU.spec()], mlp),
        "LSTM": Entry([LSTM.spec()], mlp),
        "LiGRU": Entry([LiGRU.spec()], mlp),
        "convolution": Entry([CausalConvolution.spec(), CausalConvolution.spec(width=length, depthwise=True)], mlp),
        "gated convolution": Entry([GatedConvolution.spec(**one) for one in dilated], mlp),
        "long convolution": Entry([LongConvolution.spec(length=length)], mlp),
    }
