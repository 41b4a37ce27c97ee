"""Operations: each with a reference that is its equation, and a fast form."""

from wonderland.ops import algebra, native, sound
from wonderland.ops.fft_convolution import fft_convolution
from wonderland.ops.gelu import gelu
from wonderland.ops.layer_norm import layer_norm
from wonderland.ops.linear_attention import linear_attention
from wonderland.ops.online_softmax import attention
from wonderland.ops.recurrence import recurrence
from wonderland.ops.scan import associative_scan, linear_scan
from wonderland.ops.segment import segment_max, segment_mean, segment_min, segment_softmax, segment_sum
from wonderland.ops.selective_scan import selective_scan
from wonderland.ops.short_attention import short_attention
from wonderland.ops.short_convolution import short_convolution
from wonderland.ops.softmax import masked_softmax
from wonderland.ops.squared_relu import squared_relu
from wonderland.ops.ssd_scan import ssd_scan
from wonderland.ops.wkv import wkv

__all__ = [
    "algebra",
    "associative_scan",
    "attention",
    "fft_convolution",
    "gelu",
    "layer_norm",
    "linear_attention",
    "linear_scan",
    "masked_softmax",
    "native",
    "recurrence",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_softmax",
    "segment_sum",
    "selective_scan",
    "short_attention",
    "short_convolution",
    "sound",
    "squared_relu",
    "ssd_scan",
    "wkv",
]
