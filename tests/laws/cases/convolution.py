"""Convolutions over time."""

from wonderland.nn.mixers.causal_convolution import CausalConvolution
from wonderland.nn.mixers.gated_convolution import GatedConvolution
from wonderland.nn.mixers.long_convolution import LongConvolution

CASES = {
    "causal convolution": lambda: CausalConvolution(8, width=3),
    "causal convolution, dilated": lambda: CausalConvolution(8, width=2, dilation=3),
    "causal convolution, groups": lambda: CausalConvolution(8, width=3, groups=2, bias=False),
    "causal convolution, depthwise": lambda: CausalConvolution(8, depthwise=True),
    "causal convolution, depthwise, dilated": lambda: CausalConvolution(8, width=2, dilation=2, depthwise=True),
    "causal convolution of width 1": lambda: CausalConvolution(8, width=1),
    "centred convolution": lambda: CausalConvolution(8, width=3, causal=False),
    "centred convolution, depthwise, dilated": lambda: CausalConvolution(
        8, width=3, dilation=2, depthwise=True, causal=False
    ),
    "gated convolution": lambda: GatedConvolution(8, dilation=2),
    "gated convolution, centred": lambda: GatedConvolution(8, width=3, causal=False),
    "long convolution": lambda: LongConvolution(8, length=30, bands=2, hidden=6),
    "long convolution, short kernel": lambda: LongConvolution(8, length=5, bands=2, hidden=6),
    "long convolution, centred": lambda: LongConvolution(8, length=6, bands=2, hidden=6, causal=False),
    "convolution, itself alone": lambda: CausalConvolution(8, width=1, causal=False),
    "long convolution, itself alone": lambda: LongConvolution(8, length=1, causal=False, bands=2, hidden=6),
}
