"""Each image is changed by its own numbers and by nothing else."""

import re

import numpy as np
import pytest
import torch

from wonderland.core import WonderlandError, uniform
from wonderland.data.augment import Augment


def images(n, c=1, h=8, w=8):
    return torch.randint(0, 256, (n, c, h, w), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 28, 28), (3, 33, 47)])
def test_an_image_does_not_depend_on_its_batch(shape):
    augment = Augment(shift=0.1, rotate=20, scale=0.2, flip=0.5, cutout=0.3)
    x, rows = images(70, *shape), np.arange(70)
    together = augment(x, uniform(1, 2, rows, augment.draws))
    for part in (slice(0, 1), slice(1, 4), slice(5, 70), slice(69, 70)):
        assert torch.equal(together[part], augment(x[part], uniform(1, 2, rows[part], augment.draws)))
    order = np.random.default_rng(0).permutation(70)
    assert torch.equal(together[order], augment(x[order], uniform(1, 2, order, augment.draws)))


def test_without_changes_the_image_is_unchanged():
    augment = Augment(shift=0, rotate=0, scale=0)
    x = images(3)
    assert torch.equal(augment(x, uniform(0, 0, np.arange(3), augment.draws)), x.float())


def test_a_flip_is_a_mirror_and_a_shift_moves():
    x = images(4, 3, 6, 10)
    still = np.full((4, Augment.draws), 0.5)
    mirrored = Augment(shift=0, rotate=0, scale=0, flip=1.0)(x, still)
    assert torch.allclose(mirrored, x.flip(3).float(), atol=1e-2)
    moved = still.copy()
    moved[:, 2] = 1.0  # a tenth of ten pixels to the left
    shifted = Augment(shift=0.1, rotate=0, scale=0)(x, moved)
    assert torch.allclose(shifted[..., :-1], x[..., 1:].float(), atol=1e-2)


def test_rotation_of_an_image_that_is_not_square():
    x = torch.zeros(1, 1, 9, 21)
    x[0, 0, 4, 13] = 255  # three pixels right of the centre
    numbers = np.full((1, Augment.draws), 0.5)
    numbers[0, 0] = 1.0
    turned = Augment(shift=0, rotate=90, scale=0)(x, numbers)[0, 0]
    row, column = divmod(int(turned.argmax()), 21)
    assert (abs(row - 4), column) == (3, 10)


def test_cutout_blanks_one_square():
    x = images(5)
    changed = (
        Augment(shift=0, rotate=0, scale=0, cutout=0.5)(x, uniform(0, 0, np.arange(5), Augment.draws)) != x.float()
    )
    assert (changed.sum((1, 2, 3)) <= 16).all()
    assert changed.any((1, 2, 3)).all()


def test_values_stay_in_range_and_differ_by_epoch():
    augment, x, rows = Augment(flip=0.5), images(8, 3, 16, 16), np.arange(8)
    first, second = (augment(x, uniform(0, epoch, rows, augment.draws)) for epoch in (0, 1))
    assert first.min() >= 0
    assert first.max() <= 255.01
    assert not torch.equal(first, second)


def test_defaults_mirror_photographs_only():
    assert Augment.for_images(3, 32, 32).flip == 0.5
    assert Augment.for_images(1, 28, 28).flip == 0
    assert Augment.for_images(3, 16, 16).flip == 0


def test_json_round_trip_and_errors():
    augment = Augment(shift=0.2, flip=0.5)
    assert Augment.from_json(augment.to_json()) == augment
    for value, sentence in [
        ({"shft": 0.1}, "Augment has no argument 'shft'. Did you mean 'shift'?"),
        ([1], "An augmentation is described by names and numbers."),
        ({"rotate": float("nan")}, "Augment's rotate must be a number from 0 to 180, not nan."),
        ({"flip": 2}, "Augment's flip must be a number from 0 to 1, not 2."),
        ({"shift": "1"}, "Augment's shift must be a number from 0 to 0.5, not '1'."),
        ({"scale": True}, "Augment's scale must be a number from 0 to 0.9, not True."),
    ]:
        with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
            Augment.from_json(value)
