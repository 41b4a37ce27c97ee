"""RWKV of transformers and our decoder are one function."""

import pytest
import torch

from wonderland.checkpoints import from_rwkv
from wonderland.core import WonderlandError

pytestmark = pytest.mark.filterwarnings("ignore")


def rwkv(**options):
    from transformers import RwkvConfig, RwkvForCausalLM

    config = RwkvConfig(**{"vocab_size": 13, "hidden_size": 8, "num_hidden_layers": 3, "context_length": 32, **options})
    model = RwkvForCausalLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"attention_hidden_size": 6, "intermediate_size": 7},
        {"rescale_every": 1},
        {"layer_norm_epsilon": 1e-3, "tie_word_embeddings": True},
    ],
    ids=["plain", "other widths", "rescaled", "tied"],
)
def test_logits_gradients_and_streams_are_equal(options):
    theirs, tokens = rwkv(**options), torch.randint(13, (2, 9))
    before = from_rwkv(theirs)
    theirs(tokens, use_cache=False)
    ours = from_rwkv(theirs)  # evaluation has rescaled the weights by now
    expected = theirs(tokens, use_cache=False).logits
    torch.testing.assert_close(before(tokens), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours(tokens), expected, rtol=1e-5, atol=1e-5)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (ours(tokens) * weight).sum().backward()
    gradient = theirs.rwkv.blocks[1].attention.key.weight.grad
    torch.testing.assert_close(ours.stack.blocks[1].mixer.key.weight.grad, gradient, rtol=1e-4, atol=2e-4)
    with torch.no_grad():
        _, state = ours.stream(tokens[:, :4])
        for index in range(4, 9):
            step, state = ours.stream(tokens[:, index : index + 1], state)
            torch.testing.assert_close(step[:, 0], expected[:, index], rtol=1e-4, atol=1e-5)


def test_what_cannot_be_converted_is_told():
    with pytest.raises(WonderlandError) as error:
        from_rwkv(torch.nn.Linear(2, 2))
    assert str(error.value) == "from_rwkv takes a RwkvForCausalLM of transformers, not a Linear."
