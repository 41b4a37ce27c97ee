"""ConvNet: any image size, normalised inside, learns, and is the same after saving."""

import re

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import Spec, WonderlandError, flatten, load_tensors, save_tensors, unflatten
from wonderland.models.convnet import ConvNet


@pytest.mark.parametrize(
    ("channels", "height", "width"),
    [(1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 64, 48), (3, 100, 130), (1, 1, 1), (1, 2, 40)],
)
def test_any_image_size(channels, height, width):
    arguments = ConvNet.for_data(500, channels, height, width, 4)
    net = ConvNet(**arguments).eval()
    x = torch.randint(0, 256, (2, channels, height, width), dtype=torch.uint8)
    assert net(x).shape == (2, 4)
    assert net(x).isfinite().all()


def test_size_follows_the_data():
    sizes = [
        sum(p.numel() for p in ConvNet(**ConvNet.for_data(n, 3, 32, 32, 10)).parameters())
        for n in (1000, 50_000, 200_000)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[2]


def test_bytes_and_floats_are_the_same_and_normalised_inside():
    net = ConvNet(3, 2, 8, 8, mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.1]).eval()
    x = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    assert torch.equal(net(x), net(x.float()))
    seen = []
    net.stem.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    net(x)
    expected = (x.float() / 255 - torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)) / torch.tensor([0.2, 0.2, 0.1]).view(
        3, 1, 1
    )
    assert torch.allclose(seen[0], expected, atol=1e-5)


def test_rows_are_independent_in_use():
    net = ConvNet(1, 3, 8, 8).double().eval()
    for block in net.blocks:
        torch.nn.init.normal_(block.conv_out.weight, std=0.1)
    x = torch.randint(0, 256, (5, 1, 8, 8), dtype=torch.uint8)
    assert torch.allclose(net(x)[3:4], net(x[3:4]), atol=1e-10)


def test_saved_and_built_again(tmp_path):
    spec = ConvNet.spec(**ConvNet.for_data(100, 1, 8, 8, 3), mean=[0.3], std=[0.2])
    net = spec.build()
    net(torch.rand(8, 1, 8, 8) * 255)
    save_tensors(tmp_path / "m.safetensors", net.state_dict(), {})
    again = Spec.from_json(spec.to_json()).build()
    again.load_state_dict(load_tensors(tmp_path / "m.safetensors")[0])
    x = torch.rand(2, 1, 8, 8) * 255
    assert torch.equal(net.eval()(x), again.eval()(x))


def steps(net, optimizer, numbers):
    for number in numbers:
        draw = torch.Generator().manual_seed(number)
        x, y = torch.rand(16, 3, 24, 24, generator=draw) * 255, torch.randint(0, 3, (16,), generator=draw)
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def test_training_continues_to_the_bit(tmp_path):
    arguments = ConvNet.for_data(100, 3, 24, 24, 3)
    straight, first, second = (ConvNet(**arguments) for _ in range(3))
    first.load_state_dict(straight.state_dict())
    whole, before, after = (
        torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True) for net in (straight, first, second)
    )
    steps(straight, whole, range(6))
    steps(first, before, range(3))
    tensors, skeleton = flatten({"net": dict(first.state_dict()), "optimizer": before.state_dict()})
    save_tensors(tmp_path / "c.safetensors", tensors, {"skeleton": skeleton})
    tensors, meta = load_tensors(tmp_path / "c.safetensors")
    state = unflatten(tensors, meta["skeleton"])
    second.load_state_dict(state["net"])
    after.load_state_dict(state["optimizer"])
    steps(second, after, range(3, 6))
    assert all(weight.is_contiguous() for weight in straight.parameters())
    assert all(
        torch.equal(one, two)
        for one, two in zip(straight.state_dict().values(), second.state_dict().values(), strict=True)
    )


def test_it_learns():
    torch.manual_seed(0)
    y = torch.arange(64) % 2
    x = torch.rand(64, 1, 8, 8) * 100
    x[y == 1, :, 2:6, 3] += 155
    net = ConvNet(1, 2, 8, 8, dim=8, depth=2, stages=2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
    for _ in range(12):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    assert (net.eval()(x).argmax(1) == y).float().mean() > 0.95


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"classes": 0}, "ConvNet needs classes to be a whole number of at least 1, not 0."),
        ({"dim": -3}, "ConvNet needs dim to be a whole number of at least 1, not -3."),
        (
            {"depth": 1, "stages": 2},
            "ConvNet needs at least one block for each stage and at most 8 stages, not depth=1, stages=2.",
        ),
        ({"stem": 3}, "ConvNet's stem, the stride of the first convolution, is 1, 2 or 4, not 3."),
        ({"mean": [0.1, 0.2]}, "ConvNet needs one mean for each of the 1 channels, not 2."),
        ({"std": [0.0]}, "ConvNet needs every std to be above 0."),
    ],
)
def test_refusals(arguments, sentence):
    with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
        ConvNet(**{"channels": 1, "classes": 2, "height": 8, "width": 8, **arguments})
