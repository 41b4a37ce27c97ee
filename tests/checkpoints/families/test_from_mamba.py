"""Mamba of transformers and our decoder are one function."""

import pytest
import torch

from wonderland.checkpoints import from_mamba
from wonderland.core import WonderlandError

pytestmark = pytest.mark.filterwarnings("ignore")


def mamba(**options):
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(**{"vocab_size": 13, "hidden_size": 8, "state_size": 4, "num_hidden_layers": 2, **options})
    model = MambaForCausalLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_bias": True, "use_conv_bias": False, "expand": 1, "conv_kernel": 3, "time_step_rank": 2},
        {"tie_word_embeddings": False, "layer_norm_epsilon": 1e-3},
    ],
    ids=["plain", "biases", "own head"],
)
def test_logits_gradients_and_streams_are_equal(options):
    theirs = mamba(**options)
    ours, tokens = from_mamba(theirs), torch.randint(13, (2, 9))
    expected, actual = theirs(tokens).logits, ours(tokens)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (actual * weight).sum().backward()
    gradient = theirs.backbone.layers[1].mixer.in_proj.weight.grad
    torch.testing.assert_close(ours.stack.blocks[1].mixer.in_proj.weight.grad, gradient, rtol=1e-4, atol=2e-4)
    with torch.no_grad():
        _, state = ours.stream(tokens[:, :4])
        for index in range(4, 9):
            step, state = ours.stream(tokens[:, index : index + 1], state)
            torch.testing.assert_close(step[:, 0], expected[:, index], rtol=1e-4, atol=1e-5)


def test_what_cannot_be_converted_is_told():
    with pytest.raises(WonderlandError) as error:
        from_mamba(torch.nn.Linear(2, 2))
    assert str(error.value) == "from_mamba takes a MambaForCausalLM of transformers, not a Linear."
    with pytest.raises(WonderlandError) as error:
        from_mamba(mamba(hidden_act="gelu"))
    assert str(error.value) == (
        "config.json says hidden_act = 'gelu', but Mamba can be loaded only with 'silu' or 'swish'."
    )
