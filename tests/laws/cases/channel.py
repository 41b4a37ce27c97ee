"""Channel mixers and norms: one token at a time."""

from wonderland.nn.channel.glu import GLU
from wonderland.nn.channel.kan import KAN
from wonderland.nn.channel.maxout import Maxout
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.channel.monet import MONet
from wonderland.nn.norms.norm import LayerNorm, NoNorm, RMSNorm, ZeroCentredRMSNorm

CASES = {
    "mlp": lambda: MLP(8),
    "mlp with bias": lambda: MLP(8, expansion=2, activation="relu", bias=True, dropout=0.5),
    "glu": lambda: GLU(8),
    "glu sigmoid, no output matrix": lambda: GLU(8, gate="sigmoid", project=False),
    "bilinear": lambda: GLU(8, gate="identity", hidden=5, bias=True),
    "maxout": lambda: Maxout(8, pieces=3),
    "maxout with hidden units": lambda: Maxout(8, hidden=5, bias=False),
    "kan": lambda: KAN(8, grid=3),
    "kan of two layers, degree 2": lambda: KAN(8, hidden=3, grid=4, degree=2, span=1),
    "monet": lambda: MONet(8),
    "monet with shift": lambda: MONet(8, shift=True),
    "layer norm": lambda: LayerNorm(8),
    "layer norm without bias": lambda: LayerNorm(8, bias=False),
    "rms norm": lambda: RMSNorm(8),
    "no norm": lambda: NoNorm(8),
    "rms norm with a gain around 1": lambda: ZeroCentredRMSNorm(8),
}
