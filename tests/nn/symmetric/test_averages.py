"""Averages over groups and frames: what was not symmetric is, to rounding, in values and for gradients too."""

import pytest
import torch
from torch import nn as tnn

from wonderland import laws, models, nn
from wonderland.core import Spec, WonderlandError
from wonderland.laws import Example

LENET = models.LeNet.spec(channels=2, height=12, width=12, activation="relu", pool="max")


def averaged(group: str, *, equivariant: bool) -> nn.GroupAverage:
    torch.manual_seed(0)
    inner = nn.ConvNorm.spec(dim=2, out=3) if equivariant else LENET
    return nn.GroupAverage(inner, group=group, equivariant=equivariant).double().eval()


@pytest.mark.parametrize("equivariant", [False, True])
def test_rotations_of_images_are_followed(equivariant):
    module = averaged("rotations", equivariant=equivariant)
    x = torch.randn(2, 2, 12, 12, dtype=torch.float64)
    image = ("batch", None, "height", "width")
    example = Example((x,), axes={0: image, "output": image if equivariant else ("batch", None)})
    assert [verdict.outcome for verdict in laws.check(module, example)] == ["holds"]
    assert laws.rotation_equivariance(module.inner, example).outcome == "broken"


@pytest.mark.parametrize("group", ["mirrors", "both"])
def test_mirror_images_are_followed(group):
    x = torch.randn(2, 2, 12, 12, dtype=torch.float64)
    invariant, equivariant = (averaged(group, equivariant=kind) for kind in (False, True))
    assert torch.allclose(invariant(x.flip(-1)), invariant(x), atol=1e-12)
    assert torch.allclose(equivariant(x.flip(-1)), equivariant(x).flip(-1), atol=1e-12)
    assert not torch.allclose(invariant.inner(x.flip(-1)), invariant.inner(x), atol=1e-3)


@pytest.mark.parametrize("equivariant", [False, True])
def test_frames_follow_every_motion_of_points(equivariant):
    torch.manual_seed(1)
    module = nn.FrameAverage(nn.MLP.spec(dim=3), equivariant=equivariant).double()
    x, shift = torch.randn(2, 6, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    motion = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))[0]
    still, moved = module(x), module(x @ motion + shift)
    assert torch.allclose(moved, still @ motion + shift if equivariant else still, atol=1e-9)
    assert not torch.allclose(module.inner(x @ motion), module.inner(x), atol=1e-3)
    module(x).sum().backward()
    assert all(value.grad.isfinite().all() for value in module.parameters())


def test_an_average_is_built_again_from_its_spec():
    spec = nn.GroupAverage.spec(inner=nn.ConvNorm.spec(dim=1, out=2), group="both", equivariant=True)
    again = Spec.from_json(spec.to_json()).build()
    assert isinstance(again.inner, nn.ConvNorm)
    assert isinstance(again, tnn.Module)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: nn.GroupAverage(nn.ConvNorm.spec(dim=1, out=2), group="all"),
            "GroupAverage knows the groups mirrors, rotations, both, not 'all'.",
        ),
        (
            lambda: averaged("rotations", equivariant=True)(torch.zeros(1, 2, 4, 6)),
            "GroupAverage over rotations takes square images (b, c, h, w), not (1, 2, 4, 6).",
        ),
        (
            lambda: averaged("mirrors", equivariant=True)(torch.zeros(2, 4, 6)),
            "GroupAverage takes images (b, c, h, w), not (2, 4, 6).",
        ),
        (
            lambda: nn.FrameAverage(nn.MLP.spec(dim=8))(torch.zeros(1, 2, 8)),
            "FrameAverage takes points (b, n, d) in at most 6 dimensions, not (1, 2, 8).",
        ),
    ],
)
def test_refusals(build, sentence):
    with pytest.raises(WonderlandError) as error:
        build()
    assert str(error.value) == sentence
