"""Hooks are heard wherever a module stands, in the whole sequence, in pieces and in single steps."""

import pytest
import torch

from wonderland import models, nn
from wonderland.nn.contract.hooks import call_with_hooks, has_no_hooks

SOURCE, TOKENS = torch.randint(20, (2, 6)), torch.randint(20, (2, 5))
CONTAINERS = (torch.nn.ModuleList, torch.nn.ParameterList)
MODELS = {
    "attention": lambda: models.Decoder(vocab=20, dim=8, depth=2, mixer=nn.Attention.spec(heads=2)),
    "mamba": lambda: models.Decoder(vocab=20, dim=8, depth=2, mixer=nn.Mamba.spec(), norm=nn.RMSNorm.spec()),
    "rwkv": lambda: models.Decoder(vocab=20, dim=8, depth=2, mixer=nn.RWKV.spec(), embed_norm=nn.LayerNorm.spec()),
    "gru": lambda: models.Decoder(vocab=20, dim=8, depth=2, mixer=nn.GRU.spec()),
}


def streamed(model, pieces):
    found, state = [], None
    for piece in pieces:
        y, state = model.stream(piece, state)
        found.append(y)
    return torch.cat(found, 1)


@pytest.mark.parametrize("name", MODELS)
def test_every_module_is_heard_once_however_tokens_come(name):
    model, said = MODELS[name]().eval(), []
    inner = {at: one for at, one in model.named_modules() if at and not isinstance(one, CONTAINERS)}
    for at, one in inner.items():
        one.register_forward_hook(lambda module, given, found, at=at: said.append((at, tuple(found.shape[:2]))))
    model(TOKENS)
    assert sorted(said) == sorted((at, (2, 5)) for at in inner)
    with torch.no_grad():
        for pieces in ((TOKENS[:, :3], TOKENS[:, 3:]), TOKENS.split(1, 1)):
            said.clear()
            streamed(model, pieces)
            assert sorted(said) == sorted((at, tuple(piece.shape)) for at in inner for piece in pieces)


@pytest.mark.parametrize("place", ["stack.blocks.0", "stack.blocks.1.mixer", "stack.blocks.0.norms.0", "embedding"])
def test_what_a_hook_changes_is_changed_in_the_whole_and_in_steps(place):
    model = MODELS["attention"]().eval()
    with torch.no_grad():
        plain = model(TOKENS)
        hook = model.get_submodule(place).register_forward_hook(lambda module, given, found: 2 * found)
        whole = model(TOKENS)
        assert not torch.allclose(whole, plain)
        torch.testing.assert_close(streamed(model, TOKENS.split(1, 1)), whole)
        torch.testing.assert_close(streamed(model, (TOKENS[:, :2], TOKENS[:, 2:])), whole)
        hook.remove()
        torch.testing.assert_close(model(TOKENS), plain)
        before = model.get_submodule(place).register_forward_pre_hook(lambda module, given: (given[0] * 1,))
        torch.testing.assert_close(model(TOKENS), plain)
        before.remove()


def test_slopes_are_heard():
    model, said = MODELS["attention"](), []
    mixer = model.stack.blocks[0].mixer
    mixer.register_full_backward_hook(lambda module, given, found: said.append(found[0].shape))
    model(TOKENS).sum().backward()
    assert said == [(2, 5, 8)]


def test_encoders_and_their_decoders():
    said = []
    model = models.EncoderDecoder(vocab=20, dim=8, depth=2).eval()
    for at, one in model.named_modules():
        if at in ("encoder", "decoder", "encoder.blocks.0", "decoder.blocks.1", "decoder.blocks.0.cross"):
            one.register_forward_hook(lambda module, given, found, at=at: said.append(at))
    model(SOURCE, TOKENS)
    assert sorted(said) == ["decoder", "decoder.blocks.0.cross", "decoder.blocks.1", "encoder", "encoder.blocks.0"]
    said.clear()
    model.stream(TOKENS, model.prepare(SOURCE))
    assert sorted(said) == ["decoder", "decoder.blocks.0.cross", "decoder.blocks.1", "encoder", "encoder.blocks.0"]


def test_a_forward_of_its_own_comes_back():
    layer = torch.nn.Linear(2, 2)
    assert has_no_hooks(layer)
    layer.register_forward_hook(lambda module, given, found: found + 1)
    own = layer.forward = lambda x: x
    assert call_with_hooks(layer, torch.zeros(2), lambda x: x + 5).tolist() == [6, 6]
    assert layer.forward is own
    del layer.forward
    assert call_with_hooks(layer, torch.zeros(2), lambda x: (x + 5, "state"))[1] == "state"
    assert "forward" not in vars(layer)
    with pytest.raises(ZeroDivisionError):
        call_with_hooks(layer, torch.zeros(2), lambda x: 1 / 0)
    assert "forward" not in vars(layer)
