"""Style transfer: the losses are their formulas, and pixels move towards content and style."""

import pytest
import torch
from torch import nn

from wonderland import models
from wonderland.core import WonderlandError
from wonderland.models.vision.style import content_loss, gram, style_loss, total_variation


def test_losses_by_hand():
    maps = torch.randn(2, 3, 4, 5)
    by_hand = torch.einsum("bchw,bdhw->bcd", maps, maps) / (3 * 4 * 5)
    assert torch.allclose(gram(maps), by_hand, atol=1e-6)
    assert torch.equal(content_loss(maps, maps), torch.tensor(0.0))
    assert style_loss(maps, by_hand) < 1e-10
    turned = torch.flip(maps, (2, 3))  # the style does not know where things are
    assert style_loss(turned, by_hand) < 1e-10
    assert content_loss(turned, maps) > 0.1
    x = torch.arange(12.0).view(1, 1, 3, 4)
    assert total_variation(x).item() == 0.5 * (4 + 1)


def test_the_style_comes_nearer_and_the_network_stays_as_it_was():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, stride=2))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    content, style = torch.rand(1, 3, 16, 16) * 255, torch.rand(1, 3, 20, 12) * 80
    features = models.LayerOutputs(net, ["2"]), models.LayerOutputs(net, ["1", "2"])
    steps: list[int] = []
    made, record = models.style_transfer(
        content, style, features, steps=30, progress=lambda step, losses: steps.append(step)
    )
    assert made.shape == content.shape
    assert 0 <= made.min() <= made.max() <= 255
    assert record[-1]["style"] < 0.5 * record[0]["style"]
    assert steps == list(range(30))
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_refusals():
    with pytest.raises(WonderlandError, match=r"^There is no layer 'x'\. Some of them are 0\.$"):
        models.LayerOutputs(nn.Sequential(nn.ReLU()), ["x"])
    with pytest.raises(WonderlandError, match=r"^The style is one picture \(1, c, h, w\), not \(2, 3, 4, 4\)\.$"):
        models.style_transfer(torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 4, 4), (lambda x: [x], lambda x: [x]))
