"""Models that take tokens."""

import torch

from wonderland.laws import Example
from wonderland.models.decoder import Decoder
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.pooling import Pooling
from wonderland.nn.norms.norm import RMSNorm
from wonderland.nn.positions import Learned, RelativeBuckets

SMALL = {"vocab": 6, "dim": 4, "depth": 1, "channel": MLP.spec(hidden=4)}

CASES = {
    "decoder": lambda: Decoder(**SMALL),
    "decoder with learned positions": lambda: Decoder(
        **SMALL, mixer=Attention.spec(heads=2), position=Learned.spec(length=300), tie=False
    ),
    "decoder, norm after": lambda: Decoder(**SMALL, mixer=Pooling.spec(), placement="post", dropout=0.5),
    "encoder without a first norm": lambda: Encoder(**SMALL, position=False, placement="pre", first_norm=False),
    "encoder with narrow embeddings": lambda: Encoder(**SMALL, position=Learned.spec(length=300), embed_dim=5),
    "encoder": lambda: Encoder(**SMALL, position=Learned.spec(length=300), segments=2, separator=3),
    "encoder-decoder": lambda: EncoderDecoder(
        **SMALL,
        mixer=Attention.spec(heads=1),
        position=False,
        relative=RelativeBuckets.spec(buckets=4, farthest=20),
        norm=RMSNorm.spec(),
        scale="head",
    ).given(torch.tensor([[3, 1, 4]])),
}
EXAMPLES = dict.fromkeys(CASES, lambda length: Example.tokens(3, length, vocab=6, seed=length))
