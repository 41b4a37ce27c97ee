"""What a network looks at: maps point at what decides, sums are what they promise, and nothing is left changed."""

import pytest
import torch
from torch import nn

from wonderland import models
from wonderland import nn as blocks
from wonderland.core import WonderlandError
from wonderland.ops.vision import receptive_field
from wonderland.understand import (
    attention_rollout,
    attention_weights,
    feature_maps,
    filters,
    grad_cam,
    ideal_input,
    integrated_gradients,
    lesions,
    occlusion,
    path_lengths,
    receptive_fields,
    residual_blocks,
)


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


def test_all_plain_blocks_are_removed_one_by_one_and_drawn():
    net = models.ResNet(3, depths=[2, 2], dims=[8, 16]).eval()
    found = lesions(net, lambda model: float(len(residual_blocks(model))))
    assert found == {"stages.0.0": 3.0, "stages.0.1": 3.0, "stages.1.1": 3.0}
    assert found._repr_html_().count("<tr>") == 4


def test_paths_are_counted_by_length():
    lengths = path_lengths(models.ResNet.resnet50(classes=2))
    assert lengths.total == 2**16
    assert lengths.counts[:7:3] == [1, 16, 120]
    assert lengths.mean == 24
    assert "65,536 paths through 0 to 48 layers" in lengths._repr_html_()
    squeezed = models.ResNet(2, depths=[1], dims=[8], squeeze=4, bottleneck=True)
    assert path_lengths(squeezed).counts == [1, 0, 0, 1]
    with pytest.raises(WonderlandError, match="This network has no residual blocks of nn"):
        path_lengths(models.LeNet())


def test_filters_and_maps_are_sheets_of_pictures():
    net = models.ResNet(3, depths=[1], dims=[8])
    colour = filters(net)
    assert colour.shape == (1, 8, 3, 7, 7)
    assert torch.equal(colour[0], net.stem.conv.conv.weight)
    assert colour.sheet().shape == (23, 23, 3)
    assert filters(net, "stages.0.0.convs.0.conv").shape == (8, 8, 3, 3)
    assert filters(models.LeNet()).shape == (1, 6, 5, 5)
    maps = feature_maps(net, torch.rand(2, 3, 32, 32), "stem")
    assert maps.sheet(1).shape == (26, 26)
    assert maps._repr_html_().count("<img") == 2
    with pytest.raises(WonderlandError, match="This layer is no convolution of images"):
        filters(net, "head")
    with pytest.raises(WonderlandError, match=r"^Layer 'head' gives no map \(b, c, h, w\): name another one\.$"):
        feature_maps(net, torch.rand(2, 3, 32, 32), "head")


def test_receptive_fields_have_the_size_of_the_calculator():
    torch.manual_seed(0)
    layers = [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 2, 1)]
    net = nn.Sequential(*[nn.Conv2d(1, 1, k, stride=s, padding=p, dilation=d) for k, s, p, d in layers])
    fields = receptive_fields(net, torch.randn(2, 1, 40, 40), ["0", "1", "2"])
    sides = [int((values.sum(0) > 0).sum()) for values in fields.values]
    assert sides == [field.side for field in receptive_field(layers)]
    assert fields._repr_html_().count("<img") == 3


@pytest.mark.parametrize("pool", ["token", "mean"])
def test_rollout_multiplies_attention(pool):
    torch.manual_seed(0)
    net = models.ViT(3, height=12, width=16, patch=4, dim=8, depth=2, heads=2, pool=pool, registers=2)
    x = torch.rand(2, 3, 12, 16)
    one, two = (0.5 * weights.mean(1) + 0.5 * torch.eye(weights.shape[-1]) for weights in attention_weights(net, x))
    extra = 2 + (pool == "token")
    whole = two @ one
    assert torch.allclose(whole.sum(-1), torch.ones(whole.shape[:2]), atol=1e-5)
    row = whole[:, 0] if pool == "token" else whole[:, extra:].mean(1)
    small = row[:, extra:].unflatten(1, (1, 3, 4))
    expected = nn.functional.interpolate(small, (12, 16), mode="bilinear", align_corners=False)[:, 0]
    assert torch.allclose(attention_rollout(net, x).values, expected, atol=1e-6)
    with pytest.raises(WonderlandError, match="Attention rollout is for a transformer whose tokens are patches"):
        attention_rollout(models.LeNet(), torch.zeros(1, 1, 28, 28))


def test_blocks_of_every_kind_are_residual():
    for block in (blocks.PreActivation(4, 4), blocks.NormFreeBlock(4, 4), blocks.InvertedResidual(4, 4)):
        assert list(residual_blocks(nn.Sequential(block))) == ["0"]


def test_refusals():
    with pytest.raises(WonderlandError, match=r"^There is no layer 'x'\. Some of them are conv\.$"):
        grad_cam(Corner(), bright(), layer="x")
    with pytest.raises(WonderlandError, match="This model has no convolution to look at"):
        grad_cam(nn.Linear(2, 2), torch.zeros(1, 2))
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    with pytest.raises(WonderlandError, match="Grad-CAM needs a layer whose output is a map"):
        grad_cam(net, torch.zeros(1, 1, 4, 4), layer="2")
