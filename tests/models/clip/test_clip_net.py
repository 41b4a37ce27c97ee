"""Models of clips: a convolution over time and space is its sum, specs rebuild models, every weight learns."""

import pytest
import torch
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.models import ClipConvNet, ClipSequenceNet

SPECS = [
    ClipConvNet.spec(outputs=3, channels=2, dim=4),
    ClipConvNet.spec(outputs=3, channels=2, dim=4, factored=True),
    ClipSequenceNet.spec(outputs=3, channels=2, dim=8),
]


def clips():
    return torch.randint(0, 256, (2, 6, 2, 12, 12), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


@pytest.mark.parametrize("spec", SPECS, ids=["3-D", "(2+1)-D", "sequence"])
def test_it_is_rebuilt_from_its_spec_and_every_weight_learns(spec):
    model = Spec.from_json(spec.to_json()).build()
    model(clips()).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())
    with pytest.raises(
        WonderlandError, match=r"takes clips \(batch, frames, 2, height, width\), not \(2, 6, 1, 12, 12\)\."
    ):
        model(clips()[:, :, :1])


def test_a_convolution_over_time_and_space_is_its_sum():
    model = ClipConvNet(3, 2, dim=4, depth=1)
    conv = next(module for module in model.modules() if isinstance(module, nn.Conv3d))
    x = torch.randn(1, 2, 6, 12, 12)
    out = conv(x)
    padded = nn.functional.pad(x, (1, 1, 1, 1, 1, 1))
    for t, i, j in ((0, 0, 0), (3, 2, 4), (5, 5, 5)):
        window = padded[0, :, t : t + 3, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        torch.testing.assert_close(out[0, :, t, i, j], (conv.weight * window).sum((1, 2, 3, 4)))
