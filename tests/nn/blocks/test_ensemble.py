import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn import MemberDropout, MemberEmbeddings, MemberLinear, PeriodicNumbers


def test_each_member_is_a_linear_layer_of_its_own():
    layer = MemberLinear(3, 4, 5).double()
    x = torch.randn(3, 7, 4, dtype=torch.float64)
    for member in range(3):
        torch.testing.assert_close(layer(x)[member], F.linear(x[member], layer.weight[member].T, layer.bias[member, 0]))
    assert torch.autograd.gradcheck(lambda x: layer(x), x.requires_grad_())


def test_dropout_keeps_the_mean_has_the_rate_asked_and_rests_in_evaluation():
    layer = MemberDropout([0.0, 0.25, 0.5])
    x = torch.ones(3, 400, 500)
    found = layer(x)
    assert torch.equal(found[0], x[0])
    for member, rate in ((1, 0.25), (2, 0.5)):
        assert (found[member] == 0).float().mean().item() == pytest.approx(rate, abs=0.005)
        assert found[member].mean().item() == pytest.approx(1, abs=0.01)
        assert found[member].max().item() == pytest.approx(1 / (1 - rate))
    assert not torch.equal(found, layer(x))
    assert torch.equal(layer.eval()(x), x)
    with pytest.raises(WonderlandError, match="Dropout probabilities lie between 0 and 1"):
        MemberDropout([1.5])


def test_dropout_is_a_function_of_the_seed():
    layer, x = MemberDropout([0.3]), torch.randn(1, 5, 7)
    torch.manual_seed(3)
    one = layer(x)
    torch.manual_seed(3)
    assert torch.equal(one, layer(x))


def test_periodic_numbers_by_hand():
    layer = PeriodicNumbers(numbers=2, dim=3, sigmas=[0.5, 1.0], frequencies=4).double()
    z = torch.randn(2, 3, 2, dtype=torch.float64)
    found = layer(z)
    assert torch.equal(found[..., :2], z * layer.scale)
    for m in range(2):
        for b in range(3):
            for p in range(2):
                waves = torch.cos(2 * math.pi * layer.frequency[m, p, 0] * z[m, b, p] + layer.phase[m, p, 0])
                mixed = waves @ layer.weight[m, p] + layer.bias[m, p, 0]
                torch.testing.assert_close(found[m, b, 2 + 2 * p : 4 + 2 * p], mixed)
    assert torch.autograd.gradcheck(lambda z: layer(z), z.requires_grad_())


def test_embeddings_of_members_and_columns_are_apart():
    layer = MemberEmbeddings(2, [3, 4], 2)
    codes = torch.tensor([[2.0, 3.0], [0.0, 1.0]]).expand(2, 2, 2)
    found = layer(codes)
    table = layer.weight.view(2, 7, 2)
    for m in range(2):
        torch.testing.assert_close(found[m, 0], torch.cat([table[m, 2], table[m, 3 + 3]]))
        torch.testing.assert_close(found[m, 1], torch.cat([table[m, 0], table[m, 3 + 1]]))


def test_members_do_not_touch_each_other():
    net = nn.Sequential(PeriodicNumbers(2, 4, [0.1, 0.5]), MemberLinear(2, 8, 3))
    x = torch.randn(2, 5, 2, requires_grad=True)
    net(x)[0].sum().backward()
    assert (x.grad[1] == 0).all()
    assert (x.grad[0] != 0).any()
