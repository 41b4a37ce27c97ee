"""Models that take tokens."""

from wonderland.laws import Example
from wonderland.models.decoder import Decoder
from wonderland.nn.attention import Attention
from wonderland.nn.mlp import MLP
from wonderland.nn.pooling import Pooling
from wonderland.nn.positions import Learned

SMALL = {"vocab": 6, "dim": 4, "depth": 1, "channel": MLP.spec(hidden=4)}

CASES = {
    "decoder": lambda: Decoder(**SMALL),
    "decoder with learned positions": lambda: Decoder(
        **SMALL, mixer=Attention.spec(heads=2), position=Learned.spec(length=300), tie=False
    ),
    "decoder, norm after": lambda: Decoder(**SMALL, mixer=Pooling.spec(), placement="post", dropout=0.5),
}
EXAMPLES = dict.fromkeys(CASES, lambda length: Example.tokens(3, length, vocab=6, seed=length))
