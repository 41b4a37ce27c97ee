"""Packed documents give what each gives alone, whatever mixes tokens."""

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from wonderland import nn
from wonderland.core import WonderlandError
from wonderland.data import PackedDocuments
from wonderland.models import Decoder, packed

MIXERS = {
    "attention": nn.Attention.spec(heads=2, position=nn.Rotary.spec()),
    "mamba": nn.Mamba.spec(),
    "gru": nn.GRU.spec(),
    "rwkv": nn.RWKV.spec(),
}


@pytest.mark.parametrize("name", MIXERS)
@pytest.mark.parametrize("position", [None, nn.Learned.spec(length=32)], ids=["bare", "learned"])
def test_a_document_among_others_is_a_document_alone(name, position):
    torch.manual_seed(0)
    model = Decoder(vocab=50, dim=16, depth=2, mixer=MIXERS[name], position=position).double()
    sizes = np.array([7, 1, 3, 12, 5, 5, 2, 9])
    documents = np.concatenate([[0], np.cumsum(sizes)])
    tokens = np.random.default_rng(0).integers(0, 50, documents[-1])
    rows = PackedDocuments(tokens, documents, context=16, size=2)
    batch = rows.take(range(len(rows.rows)))
    logits = packed(model, batch.tokens, batch.segments)
    assert (logits[batch.segments == 0] == 0).all()
    F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="sum").backward()
    together = {key: parameter.grad.clone() for key, parameter in model.named_parameters()}
    model.zero_grad()
    for r, row in enumerate(rows.rows):
        at = 0
        for span in row:
            begin, stop = rows.spans[span]
            alone = torch.as_tensor(tokens[begin:stop])[None]
            actual = model(alone)
            torch.testing.assert_close(logits[r, at : at + stop - begin], actual[0], rtol=1e-10, atol=1e-10)
            F.cross_entropy(actual[0, :-1], alone[0, 1:], reduction="sum").backward()
            at += int(stop - begin)
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(together[key], parameter.grad, rtol=1e-8, atol=1e-8)


def test_a_neighbour_is_never_felt():
    """Bit for bit: another neighbour, other padding, the same logits."""
    torch.manual_seed(0)
    model = Decoder(vocab=50, dim=16, depth=2)
    segments = torch.tensor([[1, 1, 1, 2, 2, 2, 0, 0]])
    one, two = torch.randint(0, 50, (1, 8)), torch.randint(0, 50, (1, 8))
    two[:, :3] = one[:, :3]
    assert (packed(model, one, segments)[:, :3] == packed(model, two, segments)[:, :3]).all()


def test_what_is_refused():
    model = Decoder(vocab=5, dim=8, depth=1)
    zeros = torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(WonderlandError, match=r"^packed got padding only: there is no document in these rows\.$"):
        packed(model, zeros, zeros)
    text = "packed takes tokens (b, t) and segments of the same shape, not (1, 4) and (1, 3)."
    with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
        packed(model, zeros, zeros[:, :3])
