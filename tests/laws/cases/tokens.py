"""Token mixers that are neither attention, recurrence nor convolution; heads that read a sequence."""

from wonderland.nn.deep_sets import DeepSets
from wonderland.nn.fourier import Fourier
from wonderland.nn.heads import Pool, SequenceHead, TokenHead
from wonderland.nn.pooling import Pooling
from wonderland.nn.shift import Shift
from wonderland.nn.spatial_gate import SpatialGate
from wonderland.nn.token_mlp import TokenMLP

CASES = {
    "token mlp": lambda: TokenMLP(8, length=160, hidden=6),
    "spatial gate": lambda: SpatialGate(8, length=160, hidden=4),
    "fourier": lambda: Fourier(8),
    "pooling": lambda: Pooling(8),
    "pooling, centred": lambda: Pooling(8, window=5, causal=False),
    "pooling, plain mean": lambda: Pooling(8, window=4, subtract=False),
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
}
