"""Models of signals: padding is never read, specs rebuild them, every weight learns."""

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.models import MelConvNet, SpectrogramTransformer, WaveConvNet

SPECS = [
    MelConvNet.spec(outputs=3, channels=16, dim=4, depth=2),
    WaveConvNet.spec(outputs=3, channels=2, dim=4, depth=2, width=9, stride=3),
    SpectrogramTransformer.spec(outputs=3, channels=16, length=40, patch=4, dim=8, depth=1, heads=2),
]


def signals(spec, steps=30):
    return torch.randn(3, steps, spec.arguments["channels"], generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_padding_is_never_read(spec):
    model = spec.build().double().eval()
    for norm in model.modules():
        if hasattr(norm, "running_mean"):
            norm.running_mean.normal_()
    x = signals(spec).double()
    alone = model(x)
    padded = torch.cat([x, torch.full((3, 10, x.shape[2]), torch.nan, dtype=x.dtype)], 1)
    torch.testing.assert_close(model(padded), alone)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_it_is_rebuilt_from_its_spec_and_every_weight_learns(spec):
    model = Spec.from_json(spec.to_json()).build()
    model(signals(spec)).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_another_number_of_channels_is_refused():
    with pytest.raises(WonderlandError, match=r"MelConvNet takes signals \(batch, steps, 16\), not \(3, 30, 2\)."):
        SPECS[0].build()(torch.zeros(3, 30, 2))
    with pytest.raises(WonderlandError, match=r"SpectrogramTransformer reads 40 frames, not 41."):
        SPECS[2].build()(torch.zeros(3, 41, 16))
