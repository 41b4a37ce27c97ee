"""What a network looks at: maps point at what decides, sums are what they promise, and nothing is left changed."""

import pytest
import torch
from torch import nn

from wonderland import models
from wonderland.core import WonderlandError
from wonderland.understand import feature_maps, grad_cam, ideal_input, integrated_gradients, lesions, occlusion


class Corner(nn.Module):
    """A network whose class 1 is a bright upper left corner."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1, bias=False)
        nn.init.zeros_(self.conv.weight)
        self.conv.weight.data[0, 0, 1, 1] = 1.0

    def forward(self, x):
        maps = self.conv(x)
        return torch.stack([torch.zeros(len(x)), maps[:, 0, :8, :8].mean((1, 2))], 1)


def bright():
    x = torch.rand(2, 1, 16, 16) * 0.1
    x[:, :, 2:6, 2:6] = 1.0
    return x


@pytest.mark.parametrize("look", [grad_cam, occlusion, integrated_gradients])
def test_maps_point_at_what_decides(look):
    maps = look(Corner(), bright(), torch.tensor([1, 1]))
    assert maps.values.shape == (2, 16, 16)
    values = maps.values.clamp_min(0)
    assert values[:, 1:7, 1:7].sum() > 0.6 * values.sum()
    assert maps.overlaid(0).shape == (16, 16, 3)
    assert maps._repr_html_().count("<img") == 2


def test_integrated_gradients_sum_to_the_difference_of_scores():
    torch.manual_seed(0)
    net = models.ConvNet(3, 4, 12, 12, dim=8, depth=2).double().eval()
    x = torch.rand(3, 3, 12, 12) * 255
    target = torch.tensor([0, 1, 2])
    net = net.float()
    maps = integrated_gradients(net, x, target, steps=256)
    with torch.no_grad():
        gap = (net(x) - net(torch.zeros_like(x))).gather(1, target[:, None])[:, 0]
    assert torch.allclose(maps.values.sum((1, 2)), gap, atol=0.02 * gap.abs().max().item() + 1e-3)


def test_published_networks_can_be_looked_at_and_stay_as_they_were():
    net = models.ResNet(3, depths=[1, 1], dims=[8, 16])
    before = {key: value.clone() for key, value in net.state_dict().items()}
    x = torch.rand(2, 3, 32, 32)
    assert grad_cam(net, x).values.shape == (2, 32, 32)
    assert feature_maps(net, x, "stem.conv").shape == (2, 8, 16, 16)
    assert net.training
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


def test_an_ideal_input_raises_the_score():
    net = Corner()
    found = ideal_input(lambda x: net(x)[:, 1], (1, 16, 16), smooth=0.0)
    assert found[0, 0, :8, :8].mean() > 240
    assert found[0, 0, 8:, 8:].mean() < 180


def test_a_residual_network_without_one_of_its_blocks():
    net = models.ResNet(3, depths=[3, 1], dims=[8, 8]).eval()
    x = torch.rand(2, 3, 32, 32)
    blocks = {"stages.0.1": net.stages[0][1], "stages.0.2": net.stages[0][2]}
    with torch.no_grad():
        whole = net(x)
        found = lesions(net, lambda model: (model(x) - whole).abs().max().item(), blocks)
        assert torch.equal(net(x), whole)
    assert set(found) == set(blocks)
    assert all(value > 0 for value in found.values())


def test_refusals():
    with pytest.raises(WonderlandError, match=r"^There is no layer 'x'\. Some of them are conv\.$"):
        grad_cam(Corner(), bright(), layer="x")
    with pytest.raises(WonderlandError, match="This model has no convolution to look at"):
        grad_cam(nn.Linear(2, 2), torch.zeros(1, 2))
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    with pytest.raises(WonderlandError, match="Grad-CAM needs a layer whose output is a map"):
        grad_cam(net, torch.zeros(1, 1, 4, 4), layer="2")
