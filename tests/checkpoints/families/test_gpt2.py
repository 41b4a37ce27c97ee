"""GPT-2 of transformers and our decoder are one function."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from wonderland.checkpoints.families.gpt2 import GPT2
from wonderland.checkpoints.families.in_memory import convert_weights, from_gpt2
from wonderland.core import WonderlandError
from wonderland.generation import sample


def gpt2(**options) -> GPT2LMHeadModel:
    config = GPT2Config(vocab_size=31, n_positions=24, n_embd=16, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
    for name, value in options.items():
        setattr(config, name, value)
    model = GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model


@pytest.mark.parametrize("options", [{}, {"activation_function": "relu", "n_inner": 24, "scale_attn_weights": False}])
def test_logits_and_gradients_are_equal(options):
    theirs = gpt2(**options)
    ours = from_gpt2(theirs)
    tokens = torch.randint(31, (2, 9))
    expected, actual = theirs(tokens).logits, ours(tokens)
    assert torch.allclose(actual, expected, atol=1e-5)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (actual * weight).sum().backward()
    gradients = convert_weights({name: parameter.grad for name, parameter in theirs.named_parameters()}, ours, GPT2)
    for name, parameter in ours.named_parameters():
        assert torch.allclose(parameter.grad, gradients[name], rtol=1e-4, atol=2e-4), name


def test_a_block_is_equal_with_its_gradients():
    theirs = gpt2().double()
    ours = from_gpt2(theirs)
    block, own = theirs.transformer.h[1], ours.stack.blocks[1]
    x = torch.randn(2, 7, 16, dtype=torch.float64, requires_grad=True)
    expected = block(x)
    expected = expected[0] if isinstance(expected, tuple) else expected
    actual = own(x)
    assert torch.allclose(actual, expected, atol=1e-10)
    weight = torch.randn_like(actual)
    (gradient,) = torch.autograd.grad((expected * weight).sum(), x)
    assert torch.allclose(torch.autograd.grad((actual * weight).sum(), x)[0], gradient, atol=1e-10)


def test_left_padding_gives_the_same_logits():
    theirs = gpt2()
    tokens = torch.randint(31, (2, 7))
    mask = torch.tensor([[True] * 7, [False] * 3 + [True] * 4])
    places = (mask.cumsum(1) - 1).clamp(min=0)
    expected = theirs(tokens, attention_mask=mask.long(), position_ids=places).logits
    assert torch.allclose(from_gpt2(theirs)(tokens, mask)[mask], expected[mask], atol=1e-5)


def test_greedy_text_is_equal():
    theirs = gpt2()
    tokens = torch.randint(31, (2, 5))
    theirs.generation_config.eos_token_id = None
    expected = theirs.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=8, do_sample=False, pad_token_id=0
    )
    assert torch.equal(sample(from_gpt2(theirs), tokens, 8, temperature=0), expected[:, 5:])


def test_mode_and_precision_are_kept_and_weights_are_copied():
    theirs = gpt2().double()
    ours = from_gpt2(theirs)
    assert ours.embedding.weight.dtype == torch.float64
    assert not ours.training
    assert from_gpt2(theirs.train()).training
    assert ours.head is None
    assert ours.embedding.weight.data_ptr() != theirs.transformer.wte.weight.data_ptr()


def test_scores_that_shrink_with_the_layer():
    theirs = gpt2(scale_attn_by_inverse_layer_idx=True)
    tokens = torch.randint(31, (2, 9))
    assert torch.allclose(from_gpt2(theirs)(tokens), theirs(tokens).logits, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"add_cross_attention": True},
            "config.json says add_cross_attention = true, but GPT-2 can be loaded only with false.",
        ),
        (
            {"activation_function": "laplace"},
            "config.json says activation_function = 'laplace', but GPT-2 can be loaded only with one of these activations: gelu, gelu_python, gelu_new, gelu_pytorch_tanh, gelu_fast, gelu_python_tanh, gelu_accurate, "
            "quick_gelu, relu, relu2, relu6, leaky_relu, silu, swish, hardswish, mish, tanh, sigmoid, linear.",
        ),
    ],
)
def test_what_cannot_be_converted_is_told(options, words):
    with pytest.raises(WonderlandError) as error:
        from_gpt2(gpt2(**options))
    assert str(error.value) == words
