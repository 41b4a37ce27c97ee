"""Networks of images: any size they promise, plain loops, normalisation inside, names in text, sentences for what does not fit."""

import re

import pytest
import torch
import torch.nn.functional as F

from wonderland import models, nn
from wonderland.core import Spec, WonderlandError, parse_spec
from wonderland.models.vision.anynet import design_space, spread
from wonderland.models.vision.fcn import bilinear_kernel
from wonderland.models.vision.image_model import ImageModel
from wonderland.models.vision.regnet import regular_stages

SMALL = {
    "AlexNet": ({"hidden": 16, "dims": [4, 8, 8, 8, 8], "dropout": 0}, (63, 80)),
    "AnyNet": ({"depths": [1, 1], "dims": [8, 16], "group_widths": [4], "dim": 8}, (1, 9)),
    "ConvMixer": ({"dim": 8, "depth": 2}, (2, 9)),
    "ConvNeXt": ({"depths": [1, 1], "dims": [8, 16], "layer_scale": 1.0}, (8, 21)),
    "DenseNet": ({"depths": [2, 2], "growth": 4}, (1, 30)),
    "GoogLeNet": ({"dropout": 0}, (1, 33)),
    "MetaFormer": ({"depths": [1, 1], "dims": [8, 16], "layer_scale": 1.0}, (3, 33)),
    "MobileNetV2": ({"width": 0.25, "dropout": 0}, (1, 33)),
    "NiN": ({"dims": [8, 8, 8], "dropout": 0, "channels": 3}, (67, 70)),
    "NormFreeResNet": ({"depths": [1, 1], "dims": [8, 16]}, (1, 17)),
    "RegNet": ({"depth": 3, "initial": 8, "slope": 8, "factor": 2, "group_width": 8, "squeeze": 0.25}, (1, 17)),
    "ResNeXt": ({"depths": [1, 1], "dims": [8, 16], "groups": 2}, (1, 17)),
    "ResNet": ({"depths": [1, 1], "dims": [8, 16]}, (1, 17)),
    "VGG": ({"depths": [1, 2], "dims": [8, 16], "hidden": 8, "dropout": 0}, (4, 17)),
    "ViT": ({"height": 16, "width": 16, "patch": 4, "dim": 16, "depth": 2, "heads": 2}, (4, 22)),
}


def small(name: str, **more):
    torch.manual_seed(0)
    return getattr(models, name)(**{"classes": 4, **SMALL[name][0], **more})


@pytest.mark.parametrize("name", sorted(SMALL))
def test_any_size_from_the_smallest(name):
    net = small(name).eval()
    for side in SMALL[name][1]:
        x = torch.randint(0, 256, (2, 3, side, side + 3), dtype=torch.uint8)
        assert net(x).shape == (2, 4)
        assert net(x).isfinite().all()
        if name != "NiN":  # which has its classes before the mean
            assert net.features(x).shape == (2, net.head.in_features)
        assert net.maps(x).dim() == 4


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_plain_loop_learns(name):
    net, side = small(name), max(32, SMALL[name][1][0])
    side = 70 if side > 32 else 16 if name == "ViT" else 32
    x, y = torch.randn(8, 3, side, side) * 0.1, torch.arange(8) % 4
    x += y.view(-1, 1, 1, 1) * torch.linspace(0, 1, side)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.02
    assert all(value.grad is not None for value in net.parameters())


@pytest.mark.parametrize("name", sorted(SMALL))
def test_saved_as_a_spec_and_built_again(name):
    spec = getattr(models, name).spec(**{"classes": 4, **SMALL[name][0], "mean": [0.5] * 3, "std": [0.2] * 3})
    net, again = spec.build(), Spec.from_json(spec.to_json()).build()
    again.load_state_dict(net.state_dict())
    side = max(16, SMALL[name][1][0])
    x = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)
    assert torch.equal(net.eval()(x), again.eval()(x))
    assert torch.allclose(net(x), net(x.float()))


def test_pixels_are_standardised_inside():
    net = small("ResNet", mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.1]).eval()
    plain = small("ResNet").eval()
    x = torch.randint(0, 256, (2, 3, 20, 20), dtype=torch.uint8)
    by_hand = (x / 255 - torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)) / torch.tensor([0.2, 0.2, 0.1]).view(3, 1, 1)
    assert torch.allclose(net(x), plain(by_hand), atol=1e-4)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("ResNet.resnet50(classes=7)", models.ResNet.spec(depths=[3, 4, 6, 3], bottleneck=True, classes=7)),
        ("models.ConvNeXt.tiny", models.ConvNeXt.spec(depths=[3, 3, 9, 3], dims=[96, 192, 384, 768])),
        ("ResNet.resnet18(stem='small')", models.ResNet.spec(depths=[2, 2, 2, 2], stem="small")),
    ],
)
def test_a_published_size_can_be_named_in_text(text, same):
    assert parse_spec(text, folders=("models",)) == same


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "LeNet.d3l()",
            "LeNet has no size 'd3l'. Its published sizes are d2l, unpadded.",
        ),
        ("ConvNet.for_data()", "ConvNet has no size 'for_data'. It has no published sizes."),
        ("ResNet.__init__()", None),
        ("ResNet.spec(classes=3)", None),
        (
            "ResNet.resnet18(3)",
            "Arguments of models.ResNet.resnet18 need their names: write ResNet.resnet18(name=value, ...).",
        ),
        ("ResNet.resnet18(colour=3)", "models.ResNet has no argument 'colour'."),
    ],
)
def test_what_is_no_published_size_is_refused(text, sentence):
    with pytest.raises(WonderlandError) as error:
        parse_spec(text, folders=("models",))
    assert sentence is None or str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: models.AlexNet()(torch.zeros(1, 3, 28, 28)),
            "AlexNet reads images of at least 63 x 63 pixels, not 28 x 28: enlarge them, or choose another model.",
        ),
        (
            lambda: models.LeNet(10, 1, 8, 8),
            "LeNet reads images of at least 12 x 12 pixels, not 8 x 8: enlarge them, or choose another model.",
        ),
        (
            lambda: small("ResNet")(torch.zeros(1, 2, 28, 28)),
            "ResNet takes images (batch, 3, height, width), not (1, 2, 28, 28).",
        ),
        (lambda: models.ResNet(10, activation="mid"), "ResNet's activation is 'pre' or 'post', not 'mid'."),
        (lambda: models.ResNet(10, stem="tiny"), "A stem is 'large' or 'small', not 'tiny'."),
        (
            lambda: models.ResNet(10, activation="pre", squeeze=4),
            "ResNet has squeeze and width with activation='post' only.",
        ),
        (
            lambda: models.ResNet(10, depths=[1], dims=[4, 8]),
            "ResNet needs one depth (1 to 1000) and one width for each of at most 16 stages, not depths=[1], dims=[4, 8].",
        ),
        (
            lambda: models.VGG(10, depths=[1], dims=[4, 8]),
            "VGG needs one depth and one width for each block, not 1 and 2.",
        ),
        (lambda: models.LeNet(pool="sum"), "LeNet pools by 'mean' or 'max', not 'sum'."),
        (lambda: models.ViT(pool="last"), "ViT pools by 'token', 'mean', 'both', not 'last'."),
        (
            lambda: models.ViT(height=8, width=8),
            "An image of 8 x 8 pixels holds no patch of 16 x 16: take smaller patches.",
        ),
        (
            lambda: models.MLPMixer(3, 3, 8, 8, patch=4, dim=4, depth=1)(torch.zeros(1, 3, 12, 8)),
            "This MLPMixer knows 2 x 2 patches by their place, and the image has 3 x 2: resize it.",
        ),
        (
            lambda: models.AnyNet(dims=[30, 30], depths=[1, 1], group_widths=[4]),
            "Stage 1 has 30 channels inside its blocks, which groups of 4 do not divide.",
        ),
        (
            lambda: models.AnyNet(dims=[8, 8], depths=[1, 1], group_widths=[4, 4, 4]),
            "AnyNet's group_widths are one number from 1, or one for each of the 2 stages, not [4, 4, 4].",
        ),
        (
            lambda: models.RegNet(depth=0),
            "RegNet cannot be built with depth=0, initial=24, slope=24.48, factor=2.54, group_width=16: depth is 1 to 1000, "
            "initial at least 8, slope at least 0, factor above 1.",
        ),
        (
            lambda: models.FCN(3, trunk=nn.MLP.spec(dim=3)),
            "FCN needs a network of images for its trunk, and nn.MLP is none.",
        ),
        (
            lambda: models.FCN(3, trunk=models.NiN.spec()),
            "FCN needs a trunk with one linear layer for its head, and models.NiN has another.",
        ),
        (lambda: models.ResNet(10, mean=[0.1] * 3), "Pixels needs both mean and std, or neither."),
        (
            lambda: models.ResNet(10, mean=[0.1], std=[0.1]),
            "Pixels needs one mean for each of the 3 channels, not 1.",
        ),
        (lambda: models.ResNet(10, mean=[0.1] * 3, std=[0.0] * 3), "Pixels needs every std to be above 0."),
        (
            lambda: nn.BottleneckBlock(8, 8, width=6, groups=4),
            "BottleneckBlock cannot be built with width=6, groups=4, squeeze_after=3: groups divide the width, and "
            "squeeze_after is 2 or 3.",
        ),
        (lambda: nn.MapPooling(8, window=2), "MapPooling takes an odd window of at least 1 pixel, not window=2."),
        (
            lambda: nn.Inception(8, 4, [2], [2, 4], 4),
            "Inception's three and five are pairs of widths, and wide is odd.",
        ),
    ],
)
def test_refusals(build, sentence):
    with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
        build()


def test_pre_activation_adds_to_a_clean_shortcut():
    net = models.ResNet(3, depths=[2, 2], dims=[4, 8], activation="pre", bottleneck=True).eval()
    block = net.stages[0][1]
    torch.nn.init.zeros_(block.convs[-1].weight)
    x = torch.randn(1, 16, 5, 5)
    assert torch.equal(block(x), x)


@pytest.mark.parametrize("pool", ["token", "mean", "both"])
def test_vit_pools_and_registers(pool):
    net = models.ViT(4, 3, 16, 16, patch=4, dim=16, depth=2, heads=2, pool=pool, registers=3).eval()
    patches, extra = net.tokens(torch.zeros(2, 3, 16, 16))
    assert patches.shape == (2, 16, 16)
    assert extra.shape[1] == 3 + (pool != "mean")
    assert net(torch.zeros(2, 3, 16, 16)).shape == (2, 4)


def test_vit_positions_are_interpolated():
    net = models.ViT(4, 3, 16, 16, patch=4, dim=16, depth=1, heads=2).eval()
    with torch.no_grad():
        net.positions.copy_(torch.ones_like(net.positions))
    assert torch.allclose(net.places((7, 3)), torch.ones(22, 16), atol=1e-5)


@pytest.mark.parametrize("mixer", [nn.Attention, nn.Mamba, nn.Fourier, nn.LSTM, nn.Pooling, nn.LinearAttention, nn.GRU])
def test_metaformer_takes_any_mixer(mixer):
    net = models.MetaFormer(4, depths=[1, 1], dims=[8, 16], mixer=mixer.spec())
    net(torch.randn(2, 3, 32, 32)).sum().backward()
    assert all(value.grad is not None for value in net.parameters())


def test_fcn_begins_as_bilinear_interpolation():
    up = torch.nn.ConvTranspose2d(1, 1, 4, stride=2, padding=1, bias=False)
    up.weight.data = bilinear_kernel(1, 4)
    x = torch.rand(1, 1, 6, 6)
    same = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    assert torch.allclose(up(x)[..., 2:-2, 2:-2], same[..., 2:-2, 2:-2], atol=1e-6)


def test_masks_have_the_size_of_the_image():
    x = torch.randn(2, 3, 45, 70)
    assert models.UNet(3, dim=4, depth=3)(x).shape == (2, 3, 45, 70)
    trunk = models.ResNet.spec(depths=[1, 1, 1, 1], dims=[4, 4, 8, 8])
    assert models.FCN(3, trunk=trunk)(x).shape == (2, 3, 45, 70)


def test_design_spaces():
    assert design_space([1, 2, 1], [8, 16, 24], [4], [1]) == "E"
    assert design_space([2, 1, 1], [8, 16, 24], [4], [1]) == "D"
    assert design_space([1, 2, 1], [8, 24, 16], [4], [1]) == "C"
    assert design_space([1, 2, 1], [8, 16, 24], [4, 8, 8], [1]) == "B"
    assert design_space([1, 2, 1], [8, 16, 24], [4], [1, 2, 1]) == "A"
    assert models.AnyNet(depths=[2, 1], dims=[8, 8], group_widths=[4, 8]).space == "B"
    assert torch.equal(spread(torch.tensor([0.5, 0.1]), torch.tensor([0.3])), torch.tensor([0.5]))


def test_regnet_widths_follow_a_line():
    depths, dims = regular_stages(16, 48, 27.89, 2.09, 8)
    assert (depths, dims) == ([1, 3, 6, 6], [48, 104, 208, 440])


def test_every_network_of_images_is_nameable_by_fit():
    from wonderland.kinds.image.generated import GENERATORS
    from wonderland.kinds.image.kind import KIND

    named = {name.split(".")[1] for name in KIND.models} - set(GENERATORS)
    every = {
        name
        for name in models.__all__
        if isinstance(getattr(models, name), type) and issubclass(getattr(models, name), ImageModel)
    }
    assert named == every | {"ConvNet"}


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda: models.LeNet.d2l(), (1, 28, 28)),
        (lambda: models.AlexNet.d2l(hidden=8), (1, 67, 67)),
        (lambda: models.NiN(10, 1, dims=[4, 4, 4]), (1, 70, 70)),
        (lambda: models.GoogLeNet.d2l(), (1, 32, 32)),
        (lambda: models.DenseNet.d2l(stem="small"), (1, 16, 16)),
        (lambda: models.AnyNet(10, 1), (1, 16, 16)),
        (lambda: models.VGG(10, 1, depths=[1, 1], dims=[4, 8], grid=2, hidden=8), (1, 8, 8)),
        (
            lambda: models.ResNeXt(10, 1, depths=[1, 1], dims=[8, 16], groups=2, group_width=4, stem="small"),
            (1, 16, 16),
        ),
        (lambda: models.RegNet(10, 1, depth=4, initial=8, slope=8, factor=2, group_width=8, dim=8), (1, 32, 32)),
        (lambda: models.MLPMixer(10, 1, 8, 8, patch=4, dim=8, depth=1), (1, 8, 8)),
    ],
)
def test_the_forms_of_the_books_run(build, shape):
    assert build().eval()(torch.zeros(2, *shape)).shape == (2, 10)


def test_stem_body_and_head_are_apart():
    x = torch.randn(2, 3, 32, 32)
    for net in (models.AnyNet(10, 3, depths=[1, 1], dims=[8, 16], group_widths=[4]), small("ResNet")):
        net.eval()
        body = net.maps(x)
        assert torch.equal(net.features(x), body.mean((2, 3)))
        assert torch.equal(net(x), net.head(net.features(x)))
        assert net.stem(x).shape[2] > body.shape[2]


def test_blocks_of_the_books_by_hand():
    x = torch.randn(2, 3, 9, 9)
    dense = nn.DenseBlock(3, depth=2, growth=4)
    assert torch.equal(dense(x)[:, :3], x)
    block = nn.BasicBlock(3, 3).eval()
    first = F.relu(F.conv2d(x, block.convs[0].conv.weight, padding=1) / (1 + 1e-5) ** 0.5)
    second = F.conv2d(first, block.convs[1].conv.weight, padding=1) / (1 + 1e-5) ** 0.5
    assert torch.allclose(block(x), F.relu(x + second), atol=1e-5)
    gate = nn.SqueezeExcitation(3, hidden=2)
    means = x.mean((2, 3))
    hidden = F.relu(means @ gate.inward.weight.flatten(1).t() + gate.inward.bias)
    weights = torch.sigmoid(hidden @ gate.outward.weight.flatten(1).t() + gate.outward.bias)
    assert torch.allclose(gate(x), x * weights[:, :, None, None], atol=1e-6)


def test_patches_are_a_linear_map_of_flattened_squares():
    part, x = nn.Patches(3, 5, patch=4), torch.randn(2, 3, 8, 12)
    squares = F.unfold(x, 4, stride=4).transpose(1, 2)
    assert torch.allclose(part(x), squares @ part.project.weight.flatten(1).t() + part.project.bias, atol=1e-5)
