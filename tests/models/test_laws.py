"""The laws of models with heads and with two sides, as the battery tries them: the slow half of its cases."""

import pytest
import torch

from tests.laws.battery import Case, judged, unclaimed, unproven
from wonderland.laws import Example
from wonderland.models import (
    Decoder,
    Encoder,
    EncoderDecoder,
    MaskedLM,
    SequenceClassifier,
    SpanFinder,
    TokenClassifier,
)
from wonderland.nn import MLP, Attention, Learned, RelativeBuckets, RMSNorm

SMALL = {"vocab": 6, "dim": 4, "depth": 1, "channel": MLP.spec(hidden=4)}
SOURCE = torch.tensor([[3, 1, 4, 1, 5]])
BUCKETS = RelativeBuckets.spec(buckets=8, farthest=20)
BERT = Encoder.spec(**SMALL, position=Learned.spec(length=300))
POOLED = Encoder.spec(**SMALL, position=Learned.spec(length=300), pooler=True)
MODELS = {
    "encoder, norm before, one bias for all layers": lambda: Encoder(
        **{**SMALL, "depth": 2}, mixer=Attention.spec(heads=2), position=False, relative=BUCKETS, placement="pre",
        norm=RMSNorm.spec(), embed_norm=False,
    ),
    "encoder of sets": lambda: Encoder(**SMALL, position=False),
    "encoder-decoder, norm after": lambda: EncoderDecoder(**SMALL, placement="post").given(SOURCE),
    "encoder-decoder, one bias for all layers": lambda: EncoderDecoder(
        **{**SMALL, "depth": 2}, mixer=Attention.spec(heads=2, scale=1.0), position=False, relative=BUCKETS,
        norm=RMSNorm.spec(), scale="head",
    ).given(SOURCE),
    "encoder-decoder, nothing shared": lambda: EncoderDecoder(
        **SMALL, target_vocab=6, target_depth=2, position=Learned.spec(length=300), share=False, tie=False, scale="none",
    ).given(SOURCE, torch.tensor([[False, True, True, True, False]])),
    "sequence classifier": lambda: SequenceClassifier(BERT, 3, pad=None),
    "sequence classifier with a pooler": lambda: SequenceClassifier(POOLED, 3, pool="summary", pad=None),
    "sequence classifier on a decoder": lambda: SequenceClassifier(
        Decoder.spec(**SMALL), 3, pool="last", hidden=4, pad=None
    ),
    "token classifier": lambda: TokenClassifier(BERT, 3, pad=None),
    "span finder": lambda: SpanFinder(BERT, pad=None),
    "masked language model": lambda: MaskedLM(BERT, pad=None),
}  # fmt: skip
CASES = [
    Case(name, build, lambda length: Example.tokens(3, length, vocab=6, seed=length)) for name, build in MODELS.items()
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_claim_is_kept_and_nothing_is_left_unsaid(case):
    block, verdicts = case.build(), []
    for law in case.promises():
        lengths = (7,) if law in ("compiles", "determinism", "save_load", "gradients") else (1, 2, 7)
        verdicts += judged(case, law, lengths, block=block)
    broken = [str(verdict) for verdict in verdicts if not verdict]
    assert not broken, "\n".join(broken)
    assert not unproven(case, verdicts, block)
    assert not unclaimed(case)
