"""The options of DeBERTa-v2: with and without distances, buckets, and matrices of their own."""

import pytest
import torch
import transformers

from tests.checkpoints.families.oracle import VOCAB, batch, places
from wonderland.checkpoints import load_pretrained, outline
from wonderland.core import WonderlandError

SIZES = {
    "vocab_size": VOCAB, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20,
    "max_position_embeddings": 24,
}  # fmt: skip
VARIANTS = [
    {},
    {"pos_att_type": ["c2p"]},
    {"relative_attention": True, "pos_att_type": "c2p|p2c", "type_vocab_size": 2},
    {"relative_attention": True, "pos_att_type": ["p2c"], "max_relative_positions": 5, "share_att_key": True},
    {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8, "max_relative_positions": 12},
]


def made(folder, options):
    torch.manual_seed(0)
    model = transformers.DebertaV2Model(transformers.DebertaV2Config(**SIZES, **options)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("options", VARIANTS)
def test_features_are_equal(options, tmp_path):
    model, (tokens, mask) = made(tmp_path, options), batch(3, "", "right", 20)
    with torch.no_grad():
        expected = model(tokens, attention_mask=mask.long(), position_ids=places(mask)).last_hidden_state
        torch.testing.assert_close(load_pretrained(tmp_path)(tokens, mask)[mask], expected[mask], rtol=1e-5, atol=1e-5)


def test_a_convolution_beside_the_first_layer_is_refused(tmp_path):
    made(tmp_path, {"conv_kernel_size": 3})
    with pytest.raises(WonderlandError) as error:
        outline(tmp_path)
    assert str(error.value) == (
        "config.json says conv_kernel_size = 3, but DeBERTa-v2 can be loaded only with 0 or null."
    )
