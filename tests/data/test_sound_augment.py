"""Augmentation of sound: each example by its own numbers, ends kept, nothing changed where nothing is asked."""

import numpy as np
import pytest
import torch

from wonderland.core import WonderlandError, uniform
from wonderland.data import MelAugment, WaveAugment


def examples(channels):
    x = torch.randn(4, 30, channels, generator=torch.Generator().manual_seed(0))
    x[1, 20:] = torch.nan
    return x


@pytest.mark.parametrize(("augment", "channels"), [(MelAugment(), 8), (WaveAugment(), 1)])
def test_an_example_does_not_depend_on_its_batch(augment, channels):
    x, numbers = examples(channels), uniform(0, 1, np.arange(4), augment.draws)
    together = augment(x, numbers)
    for i in range(4):
        torch.testing.assert_close(
            augment(x[i : i + 1], numbers[i : i + 1])[0], together[i], rtol=0, atol=0, equal_nan=True
        )
    assert not torch.equal(together.nan_to_num(), x.nan_to_num())
    ended = together[..., 0].isnan().long()
    assert (ended.diff(dim=1) >= 0).all()  # NaN stands at the end only
    assert not together[:, 0].isnan().any()


def test_without_changes_nothing_changes():
    x = examples(8)
    plain = MelAugment(shift=0, stretch=0, warp=0, gain=0, colour=0, noise=0, times=0, bands=0)
    torch.testing.assert_close(plain(x, uniform(0, 0, np.arange(4), plain.draws)), x, equal_nan=True)
    plain = WaveAugment(shift=0, stretch=0, gain=0, noise=0)
    torch.testing.assert_close(plain(x, uniform(0, 0, np.arange(4), plain.draws)), x, equal_nan=True)


def test_each_change_is_what_it_says():
    x = torch.arange(10.0)[None, :, None].expand(1, 10, 4).contiguous()
    numbers = np.full((1, MelAugment.draws), 0.5)
    none = {"shift": 0, "stretch": 0, "warp": 0, "gain": 0, "colour": 0, "noise": 0, "times": 0, "bands": 0}
    late = MelAugment(**none | {"shift": 0.5})(x, np.where(np.arange(17) == 1, 0.999999, numbers))
    torch.testing.assert_close(late[0, :, 0], torch.tensor([0.0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), atol=1e-4, rtol=0)
    fast = MelAugment(**none | {"stretch": 1.0})(x, np.where(np.arange(17) == 0, 1 - 1e-12, numbers))
    torch.testing.assert_close(fast[0, :5, 0], torch.arange(5) * 2.0, atol=1e-4, rtol=0)
    assert fast[0, 5:].isnan().all()
    masked = MelAugment(**none | {"bands": 0.9})(x + 1, numbers)
    assert (masked == 0).all(1).any()
    with pytest.raises(WonderlandError, match=r"MelAugment's warp must be a number from 0 to 0.5, not 2."):
        MelAugment(warp=2)
