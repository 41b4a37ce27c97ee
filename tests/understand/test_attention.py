"""The attention weights of whole models: each layer's are those that its outputs come from."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.models import Decoder, Encoder, EncoderDecoder, Seq2Seq
from wonderland.nn import AdditiveSelfAttention, Attention, GatedAttentionUnit, HardAttention, Mamba, Rotary
from wonderland.understand import attention_maps


def test_a_decoder_of_many_attentions():
    mixers = [
        Attention.spec(heads=2, position=Rotary.spec()), AdditiveSelfAttention.spec(), HardAttention.spec(heads=2),
        GatedAttentionUnit.spec(key_dim=4), Mamba.spec(state_size=2),
    ]  # fmt: skip
    model = Decoder(vocab=9, dim=8, depth=5, mixer=mixers, channel=False)
    tokens, mask = torch.randint(9, (2, 6)), torch.arange(6) < torch.tensor([[6], [4]])
    before = model(tokens, mask)
    maps = attention_maps(model, tokens, mask)
    assert list(maps) == [f"stack.blocks.{i}.mixer" for i in range(4)]
    assert [tuple(weights.shape) for weights in maps.values()] == [
        (2, 2, 6, 6),
        (2, 1, 6, 6),
        (2, 2, 6, 6),
        (2, 1, 6, 6),
    ]
    for name, weights in maps.items():
        assert (weights[1, :, 4:] == 0).all()
        assert (weights.triu(1) == 0).all()
        if "3" not in name:  # the gated unit has no softmax
            torch.testing.assert_close(weights[0].sum(-1), torch.ones_like(weights[0, ..., 0]))
    torch.testing.assert_close(model(tokens, mask), before)
    assert all("whole" not in vars(module) and not module._forward_hooks for module in model.modules())


def test_layers_that_share_their_weights_have_their_uses_apart():
    model = Encoder(vocab=9, dim=8, depth=3, mixer=Attention.spec(heads=2), groups=1)
    maps = attention_maps(model, torch.randint(9, (1, 5)))
    assert list(maps) == [f"stack.blocks.0.mixer{use}" for use in ("", ", use 2", ", use 3")]


def test_an_encoder_decoder_and_its_context():
    model = EncoderDecoder(vocab=9, dim=8, depth=1, heads=2)
    source, target = torch.randint(9, (2, 7)), torch.randint(9, (2, 4))
    maps = attention_maps(model, source, target, torch.arange(7) < torch.tensor([[7], [3]]))
    cross = maps["decoder.blocks.0.cross"]
    assert cross.shape == (2, 2, 4, 7)
    torch.testing.assert_close(cross.sum(-1), torch.ones(2, 2, 4))
    assert (cross[1, ..., 3:] == 0).all()
    assert set(maps) == {"encoder.blocks.0.mixer", "decoder.blocks.0.mixer", "decoder.blocks.0.cross"}


def test_a_recurrent_decoder_has_a_row_for_each_step():
    """The context of a step is the mean of the encoder's outputs with these weights."""
    model = Seq2Seq(source_vocab=9, vocab=9, dim=4, state_size=6, attention=True).eval()
    source, target = torch.randint(9, (2, 5)), torch.randint(9, (2, 3))
    weights = attention_maps(model, source, target)["attention"]
    assert weights.shape == (2, 1, 3, 5)
    states, read, _ = model.prepare(source)
    torch.testing.assert_close(weights[:, 0, :1] @ read[1], model.attention.answer(states[-1][0].unsqueeze(1), read))


def test_a_model_without_attention_is_told():
    with pytest.raises(WonderlandError) as error:
        attention_maps(Decoder(vocab=9, dim=8, depth=1, mixer=Mamba.spec()), torch.randint(9, (1, 4)))
    assert str(error.value) == "This Decoder has no layer with attention weights."
