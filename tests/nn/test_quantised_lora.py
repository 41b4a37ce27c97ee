"""LoRA on 8-bit weights: how far the weights are rounded, and that gradients are those of the rounded layer."""

import torch
from torch import nn

from wonderland import models
from wonderland.core import Spec
from wonderland.nn import LoRA, QuantisedLoRA


def test_weights_are_rounded_by_at_most_half_a_step_of_their_group():
    layer = nn.Linear(150, 7)
    quantised = QuantisedLoRA(layer, group=64)
    assert quantised.layer.codes.dtype == torch.int8
    assert quantised.layer.scales.shape == (7, 3)
    step = quantised.layer.scales.repeat_interleave(64, 1)[:, :150]
    assert ((layer.weight - quantised.layer.weight).abs() <= step / 2 * (1 + 1e-5)).all()


def test_outputs_and_gradients_are_those_of_lora_on_the_rounded_layer():
    torch.manual_seed(0)
    layer = nn.Linear(10, 6)
    quantised = QuantisedLoRA(layer, rank=3)
    rounded = nn.Linear(10, 6)
    rounded.load_state_dict({"weight": quantised.layer.weight, "bias": layer.bias})
    plain = LoRA(rounded, rank=3)
    with torch.no_grad():
        plain.down.copy_(quantised.down)
        for adapter in (plain, quantised):
            adapter.up.copy_(torch.arange(18.0).view(6, 3) / 18)
    x = torch.randn(4, 10, requires_grad=True)
    answers = [adapter(x) for adapter in (quantised, plain)]
    torch.testing.assert_close(answers[0], answers[1])
    for adapter, y in zip((quantised, plain), answers, strict=True):
        adapter.grads = torch.autograd.grad(y.square().sum(), [x, adapter.down, adapter.up])
    for ours, theirs in zip(quantised.grads, plain.grads, strict=True):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(quantised.merged()(x), answers[0])


def test_a_model_is_adapted_saved_by_its_spec_and_merged():
    model = models.Decoder(vocab=9, dim=16, depth=1)
    spec = models.Decoder.spec(vocab=9, dim=16, depth=1)
    adapted = models.adapt(model, QuantisedLoRA.spec(rank=2))
    arguments = {"model": spec, "adapter": QuantisedLoRA.spec(rank=2), "where": [], "also": []}
    again = Spec("models.adapted", arguments).build()
    again.load_state_dict(adapted.state_dict())
    tokens = torch.randint(9, (2, 5))
    torch.testing.assert_close(again(tokens), adapted(tokens))
    torch.testing.assert_close(models.merge(adapted)(tokens), adapted(tokens))
    assert {name.rsplit(".", 1)[1] for name, value in adapted.named_parameters() if value.requires_grad} == {
        "down",
        "up",
    }
