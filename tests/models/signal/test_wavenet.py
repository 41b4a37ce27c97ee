"""WaveNet: the laws of a language model, equal generation with and without its cache, and its equation."""

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.models import WaveNet, generate_wave


def net(**more):
    torch.manual_seed(0)
    return WaveNet(vocab=12, dim=6, depth=3, stacks=2, skip=5, **more).double().eval()


def tokens(b=2, t=40):
    return torch.randint(0, 12, (b, t), generator=torch.Generator().manual_seed(1))


def test_fed_piece_by_piece_it_equals_the_whole():
    for model in (net(), net(conditions=3).given(torch.tensor([0, 2]))):
        x = tokens()
        whole, pieces, state = model(x), [], None
        for piece in x.split([1, 7, 2, 30], 1):
            out, state = model.stream(piece, state)
            pieces.append(out)
        torch.testing.assert_close(torch.cat(pieces, 1), whole)


def test_its_receptive_field_is_what_it_says():
    model, x = net(), tokens(1)
    assert model.receptive_field == 15
    changed = x.clone()
    changed[0, 10] = (changed[0, 10] + 1) % 12
    moved = (model(x) != model(changed)).any(-1)[0].nonzero()[:, 0].tolist()
    assert (moved[0], moved[-1]) == (10, 10 + 15 - 1)


def test_its_first_layer_is_its_equation():
    torch.manual_seed(3)
    model, x = WaveNet(vocab=5, dim=4, depth=1, skip=3).double(), torch.tensor([[1, 2, 4]])
    h = model.embedding(x)[0]
    earlier = torch.cat([torch.zeros(1, 4, dtype=h.dtype), h[:-1]])
    weight, bias = model.gates[0].weight, model.gates[0].bias
    inner = torch.cat([earlier, h], 1) @ weight.T + bias
    z = torch.tanh(inner[:, :4]) * torch.sigmoid(inner[:, 4:])
    skipped = (z @ model.outs[0].weight.T + model.outs[0].bias)[:, 4:]
    torch.testing.assert_close(model(x)[0], model.second(model.first(skipped.relu()).relu()))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("begun", [1, 4, 30])
def test_the_cache_changes_nothing(begun, temperature):
    model = net(conditions=2).given(torch.tensor([1, 0]))
    begin = tokens(2, begun)
    cached = generate_wave(model, 50, begin=begin, temperature=temperature, seed=2)
    plain = generate_wave(model, 50, begin=begin, temperature=temperature, seed=2, cached=False)
    assert torch.equal(cached, plain)


def test_it_is_rebuilt_from_its_spec_and_refuses_conditions_that_it_has_not():
    spec = WaveNet.spec(vocab=12, dim=6, depth=3)
    assert Spec.from_json(spec.to_json()).build().receptive_field == 8
    with pytest.raises(
        WonderlandError, match=r"This WaveNet has 0 conditions: give numbers below that, or build it with more\."
    ):
        net().given(torch.tensor([0]))
