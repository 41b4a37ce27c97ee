"""Token mixers that are neither attention, recurrence nor convolution; heads that read a sequence; extra tokens."""

import torch

from wonderland.laws import Example
from wonderland.nn.blocks.crf import CRF
from wonderland.nn.blocks.heads import Pool, SequenceHead, TokenHead
from wonderland.nn.blocks.tokens import ClassToken, Registers
from wonderland.nn.mixers.deep_sets import DeepSets
from wonderland.nn.mixers.fourier import Fourier
from wonderland.nn.mixers.kernel_regression import KernelRegression
from wonderland.nn.mixers.pooling import Pooling
from wonderland.nn.mixers.shift import Shift
from wonderland.nn.mixers.spatial_gate import SpatialGate
from wonderland.nn.mixers.token_mlp import TokenMLP

CASES = {
    "token mlp": lambda: TokenMLP(8, length=160, hidden=6),
    "spatial gate": lambda: SpatialGate(8, length=160, hidden=4),
    "fourier": lambda: Fourier(8),
    "pooling": lambda: Pooling(8),
    "pooling, centred": lambda: Pooling(8, window=5, causal=False),
    "pooling, plain mean": lambda: Pooling(8, window=4, subtract=False),
    "pooling, itself alone": lambda: Pooling(8, window=1),
    "shift": lambda: Shift(8),
    "shift both ways": lambda: Shift(8, causal=False),
    "deep sets": lambda: DeepSets(8),
    "deep sets, causal": lambda: DeepSets(8, causal=True),
    "mean pool": lambda: Pool(8, how="mean"),
    "max pool": lambda: Pool(8, how="max"),
    "last pool": lambda: Pool(8, how="last"),
    "first pool": lambda: Pool(8, how="first"),
    "attention pool": lambda: Pool(8, how="attention"),
    "sequence head": lambda: SequenceHead(8, outputs=3, hidden=5),
    "token head": lambda: TokenHead(8, outputs=3),
    "crf": lambda: CRF(8),
    "class token": lambda: ClassToken(8),
    "registers": lambda: Registers(8, count=3),
    "kernel regression": lambda: KernelRegression(trainable=True),
    "kernel regression, epanechnikov": lambda: KernelRegression(kernel="epanechnikov", width=4.0),
}


def _with_pairs(t: int) -> Example:
    """Queries as the rows of a batch, and known keys and values beside them."""
    keys, values = (Example.floats(5, width, seed=width).input for width in (2, 3))
    axes = {0: ("batch",), 1: (None,), 2: (None,), "output": ("batch",)}
    return Example((torch.cat([Example.floats(t, 2, seed=t).input, keys + 0.1]), keys, values), axes=axes)


def _longer(t: int) -> Example:
    return Example.floats(3, t, 8, seed=t, axes={0: ("batch", "time"), "output": ("batch",)})


EXAMPLES = {
    "class token": _longer,
    "registers": _longer,
    "kernel regression": _with_pairs,
    "kernel regression, epanechnikov": _with_pairs,
}
