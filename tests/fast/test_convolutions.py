"""Fused convolutions in use: the numbers of torch's layers, after every change of a weight, and only where nothing observes the layers."""

import copy

import pytest
import torch

from wonderland import fast, models, nn
from wonderland.fast import convolutions, entry

pytestmark = pytest.mark.skipif(not convolutions.available(), reason="this torch has no fused convolutions")


def trained(net, *, side=32):
    """A network whose norms have seen something."""
    torch.manual_seed(0)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.weight, 1.0, 0.2)
            torch.nn.init.normal_(module.bias, 0.0, 0.2)
    net.train()
    for _ in range(2):
        net(torch.randn(4, 3, side, side))
    return net.eval()


def agree(net, x):
    """Plain torch, which gradients ask for, beside the fused form."""
    plain = net(x).detach()
    with torch.no_grad():
        assert torch.allclose(net(x), plain, atol=1e-5, rtol=1e-4)
    with torch.inference_mode():
        assert torch.allclose(net(x), plain, atol=1e-5, rtol=1e-4)


NETS = {
    "basic": lambda: models.ResNet(5, depths=[1, 2], dims=[8, 16]),
    "bottleneck": lambda: models.ResNet(5, depths=[1, 1], dims=[8, 16], bottleneck=True, stem="small"),
    "gated": lambda: models.ResNet(5, depths=[1, 1], dims=[8, 16], squeeze=4),
    "grouped": lambda: models.ResNeXt(5, depths=[1, 1], dims=[8, 16], groups=2),
    "inverted": lambda: models.MobileNetV2(5, width=0.25, dropout=0),
}


@pytest.mark.parametrize("name", sorted(NETS))
def test_values_are_those_of_torch(name):
    net = trained(NETS[name]())
    agree(net, torch.randn(1, 3, 32, 32))
    agree(net, torch.randn(3, 3, 33, 40))


def test_it_is_used_for_blocks_and_layers():
    net, x = trained(NETS["basic"]()), torch.randn(2, 8, 8, 8)
    with torch.no_grad():
        assert entry.images(net.stages[0][0], x) is not None
        assert entry.images(net.stages[0][0].convs[0], x) is not None
        assert entry.images(trained(NETS["gated"]()).stages[0][0], x) is None  # its layers are fused, the block is not
        net.stages[0][0].convs[0].register_forward_hook(lambda *_: None)
        assert entry.images(net.stages[0][0], x) is None
        assert entry.images(net.stages[0][0].convs[0], x.double()) is None
        assert entry.images(net.stages[0][0].convs[0], x[:0]) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda conv, norm: conv.weight.data[3].mul_(3),
        lambda conv, norm: torch.nn.init.normal_(conv.weight),
        lambda conv, norm: norm.running_var.mul_(2),
        lambda conv, norm: norm.bias.data.add_(1),
        lambda conv, norm: setattr(conv, "weight", torch.nn.Parameter(torch.randn_like(conv.weight))),
        lambda conv, norm: setattr(norm, "eps", 0.1),
    ],
)
def test_a_change_of_the_layer_is_noticed(change):
    net, x = trained(NETS["basic"]()), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        before = net(x)
        block = net.stages[1][1].convs[0]
        change(block.conv, block.norm)
        after = net(x)
    assert not torch.allclose(after, before, atol=1e-4)
    agree(net, x)


def test_a_training_step_is_noticed_and_copies_are_their_own():
    net, x = trained(NETS["basic"]()), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        before = net(x)
    twin = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(x).square().sum().backward()
    optimizer.step()
    agree(net, x)
    with torch.no_grad():
        assert torch.allclose(twin(x), before, atol=1e-5)


def test_other_forms_stay_plain():
    class Own(nn.ConvNorm):
        """A layer of the user's."""

        def forward(self, x):
            return super().forward(x) + 1

    layer, x = Own(3, 4).eval(), torch.randn(1, 3, 6, 6)
    with torch.no_grad():
        assert torch.allclose(layer(x), torch.relu(layer.norm(layer.conv(x))) + 1, atol=1e-6)
        assert entry.images(layer, x) is None
    assert fast.table.rule_of(nn.ConvNorm(3, 4)).images is not None


def test_what_hooks_saw_is_not_overwritten():
    net, x = NETS["basic"]().train(), torch.randn(2, 3, 32, 32)
    kept = []
    block = net.stages[0][0]
    block.convs[0].norm.register_forward_hook(lambda _, inputs, output: kept.append((output, output.clone())))
    block.convs.register_forward_hook(lambda _, inputs, output: kept.append((output, output.clone())))
    net(x).sum().backward()
    assert len(kept) == 2
    assert all(torch.equal(seen, copied) for seen, copied in kept)
    assert (kept[0][0] < 0).any()


def test_weights_larger_than_the_maps_of_a_batch_are_used_as_they_are():
    """Folding them would copy them at each call; the values stay those of torch."""
    net = trained(models.ResNet(5, depths=[1, 2], dims=[8, 64]))
    wide = net.stages[1][1].convs[1]
    x = torch.randn(16, 3, 32, 32)
    agree(net, x)
    with torch.no_grad():
        assert entry.images(net.stages[1][1], torch.randn(16, 64, 4, 4)) is not None
    assert wide not in convolutions._CACHE
    agree(net, x[:2])
    assert wide in convolutions._CACHE
