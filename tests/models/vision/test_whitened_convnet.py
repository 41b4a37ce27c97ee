import json

import pytest
import torch

from wonderland import models, optim
from wonderland.core import Spec, WonderlandError


def test_it_begins_as_the_identity_and_keeps_its_first_filters():
    net = models.WhitenedConvNet(4, widths=[8, 16])
    first = net.stages[1].first.weight
    torch.testing.assert_close(first[:8, :, 1, 1], torch.eye(8))
    learned = {name for name, parameter in net.named_parameters() if parameter.requires_grad}
    assert "whitening.bias" in learned
    assert not any("filters" in name or name.endswith("norms.0.weight") for name in learned)
    spec = models.WhitenedConvNet.spec(
        classes=4, widths=[8, 16], directions=torch.eye(12).tolist(), crops=1, mean=[0.5] * 3, std=[0.2] * 3
    )
    again = Spec.from_json(json.loads(json.dumps(spec.to_json()))).build()
    assert again(torch.zeros(2, 3, 8, 8, dtype=torch.uint8)).shape == (2, 4)


def test_evaluation_averages_over_crops_and_mirror_images():
    torch.manual_seed(0)
    net = models.WhitenedConvNet(4, widths=[8, 16], crops=1, mirror=True).eval()
    x = torch.rand(3, 3, 16, 16)
    views = net.views(x)
    assert len(views) == 6
    torch.testing.assert_close(views[1][:, :, 1:, 1:], x[:, :, :-1, :-1])
    torch.testing.assert_close(views[2][:, :, :-1, :-1], x[:, :, 1:, 1:])
    torch.testing.assert_close(views[5], views[2].flip(-1))
    torch.testing.assert_close(net(x), sum(net.head(net.features(view)) for view in views) / 6)
    assert torch.equal(net.train()(x), net.head(net.features(x)))


def test_sizes_that_cannot_be():
    with pytest.raises(WonderlandError, match=r"WhitenedConvNet cannot be built with widths=\[\], crops=0"):
        models.WhitenedConvNet(3, widths=[])
    with pytest.raises(WonderlandError, match="WhitenedConvNet reads images of at least 8 x 8 pixels, not 4 x 4"):
        models.WhitenedConvNet(3, widths=[4, 4])(torch.zeros(1, 3, 4, 4))


def test_filters_are_moved_by_muon_and_the_rest_by_adamw():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4, 6))
    twin = torch.nn.Linear(4, 6)
    twin.load_state_dict(net[2].state_dict())
    optimizer = optim.FilterMuon(net.parameters(), lr=0.2, others=0.05, weight_decay=0.1)
    reference = torch.optim.AdamW(twin.parameters(), lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    for _ in range(3):
        net(torch.randn(5, 2, 3, 3)).square().sum().backward()
        before = net[0].weight.detach().clone()
        gradients = [parameter.grad.clone() for parameter in net[2].parameters()]
        optimizer.step()
        for parameter, gradient in zip(twin.parameters(), gradients, strict=True):
            parameter.grad = gradient
        reference.step()
        moved = net[0].weight.detach() - before * 2 / before.norm()
        values = torch.linalg.svdvals(moved.flatten(1) / 0.2)
        assert values.min() > 0.2
        assert values.max() < 1.3
        optimizer.zero_grad()
    torch.testing.assert_close(twin.weight, net[2].weight)
    torch.testing.assert_close(twin.bias, net[2].bias)
