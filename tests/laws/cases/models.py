"""Models that take tokens."""

import torch

from wonderland.laws import Example
from wonderland.models.decoder import Decoder
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier
from wonderland.nn.attention import Attention
from wonderland.nn.mlp import MLP
from wonderland.nn.norm import RMSNorm
from wonderland.nn.pooling import Pooling
from wonderland.nn.positions import Learned, RelativeBuckets

SMALL = {"vocab": 6, "dim": 4, "depth": 1, "channel": MLP.spec(hidden=4)}

SOURCE = torch.tensor([[3, 1, 4, 1, 5]])
BUCKETS = RelativeBuckets.spec(buckets=8, farthest=20)
BERT = Encoder.spec(vocab=6, dim=4, depth=1, channel=MLP.spec(hidden=4), position=Learned.spec(length=300))

CASES = {
    "decoder": lambda: Decoder(**SMALL),
    "decoder with learned positions": lambda: Decoder(
        **SMALL, mixer=Attention.spec(heads=2), position=Learned.spec(length=300), tie=False
    ),
    "decoder, norm after": lambda: Decoder(**SMALL, mixer=Pooling.spec(), placement="post", dropout=0.5),
    "encoder": lambda: Encoder(**SMALL, position=Learned.spec(length=300), segments=2, separator=3),
    "encoder, norm before, one bias for all layers": lambda: Encoder(
        **{**SMALL, "depth": 2}, mixer=Attention.spec(heads=2), position=False, relative=BUCKETS, placement="pre",
        norm=RMSNorm.spec(), embed_norm=False,
    ),
    "encoder of sets": lambda: Encoder(**SMALL, position=False),
    "encoder-decoder": lambda: EncoderDecoder(**SMALL, placement="post").given(SOURCE),
    "encoder-decoder, norm before, one bias for all layers": lambda: EncoderDecoder(
        **{**SMALL, "depth": 2}, mixer=Attention.spec(heads=2, scale=1.0), position=False, relative=BUCKETS,
        norm=RMSNorm.spec(), scale="head",
    ).given(SOURCE),
    "encoder-decoder, nothing shared": lambda: EncoderDecoder(
        **SMALL, target_vocab=6, target_depth=2, position=Learned.spec(length=300), share=False, tie=False, scale="none",
    ).given(SOURCE, torch.tensor([[False, True, True, True, False]])),
    "sequence classifier": lambda: SequenceClassifier(BERT, 3, pad=None),
    "sequence classifier with a pooler": lambda: SequenceClassifier(
        Encoder.spec(vocab=6, dim=4, depth=1, pooler=True, position=Learned.spec(length=300)), 3, pool="summary", pad=None
    ),
    "sequence classifier on a decoder": lambda: SequenceClassifier(
        Decoder.spec(**SMALL), 3, pool="last", hidden=4, pad=None
    ),
    "token classifier": lambda: TokenClassifier(BERT, 3, pad=None),
    "span finder": lambda: SpanFinder(BERT, pad=None),
    "masked language model": lambda: MaskedLM(BERT, pad=None),
}  # fmt: skip
EXAMPLES = dict.fromkeys(CASES, lambda length: Example.tokens(3, length, vocab=6, seed=length))
