"""Augmentation of photographs: by an image's own numbers alone, with boxes and masks that move along."""

import numpy as np
import pytest
import torch

from wonderland.core import Spec, WonderlandError, uniform
from wonderland.data.photo_augment import POLICY, PhotoAugment, averaged

EVERYTHING = PhotoAugment(
    crop=0.5, stretch=0.3, flip=0.5, rotate=20, shear=0.2, shift=0.1, brightness=0.3, contrast=0.3, saturation=0.3, noise=5,
    erase=0.2, policy=2,
)  # fmt: skip


def numbers(augment, count=6, epoch=0):
    return uniform(0, epoch, np.arange(count), augment.draws)


def pictures(count=6, channels=3, height=20, width=28):
    return torch.randint(
        0, 256, (count, channels, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_comes_out_the_same_whatever_its_batch_mates(channels):
    x, drawn = pictures(channels=channels), numbers(EVERYTHING)
    together = EVERYTHING(x, drawn)
    for row in range(len(x)):
        assert torch.equal(EVERYTHING(x[row : row + 1], drawn[row : row + 1])[0], together[row])
    assert not torch.equal(EVERYTHING(x, numbers(EVERYTHING, epoch=1)), together)
    assert together.min() >= 0
    assert together.max() <= 255


def test_nothing_asked_nothing_changed():
    augment = PhotoAugment()
    assert torch.equal(augment(pictures(), numbers(augment)), pictures().float())


def test_a_flip_is_a_flip():
    augment = PhotoAugment(flip=1.0)
    x = pictures()
    assert torch.allclose(augment(x, numbers(augment)), x.float().flip(3), atol=1e-2)
    masks = torch.randint(0, 4, (6, 20, 28))
    assert torch.equal(augment.masks(masks, numbers(augment)), masks.flip(2))
    moved, kept = augment.boxes(torch.tensor([[2.0, 3.0, 10.0, 9.0]]), numbers(augment)[0], 20, 28)
    assert torch.allclose(moved, torch.tensor([[18.0, 3.0, 26.0, 9.0]]), atol=1e-4)
    assert kept.tolist() == [True]


@pytest.mark.parametrize(
    "augment",
    [
        PhotoAugment(crop=0.6, stretch=0.4),
        PhotoAugment(rotate=30),
        PhotoAugment(shear=0.3, shift=0.2),
        PhotoAugment(policy=3),
    ],
)
def test_boxes_and_masks_move_with_the_image(augment):
    height, width = 60, 80
    boxes = torch.tensor([[20.0, 15.0, 50.0, 40.0]])
    x = torch.zeros(8, 1, height, width)
    x[:, :, 15:40, 20:50] = 200
    masks = (x[:, 0] > 0).long()
    drawn = numbers(augment, 8)
    still = PhotoAugment(**{**vars(augment), "brightness": 0})
    images, moved = still(x, drawn), still.masks(masks, drawn, outside=9)
    for row in range(8):
        bright = images[row, 0] > images[row].max() / 2
        inside = moved[row] == 1
        if not inside.any():
            continue
        agree = (bright & inside).sum() / inside.sum()
        assert agree > 0.9 or bool((images[row].std() < 1).item())
        box, kept = still.boxes(boxes, drawn[row], height, width)
        rows, columns = inside.nonzero(as_tuple=True)
        edges = torch.tensor([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]).float()
        assert (box[0] - edges).abs().max() < 2.5
        assert kept.dtype == torch.bool


def test_boxes_that_leave_the_image_are_told():
    augment = PhotoAugment(shift=0.5)
    drawn = np.full((1, augment.draws), 0.5)
    drawn[0, 3] = 1.0
    _, kept = augment.boxes(torch.tensor([[1.0, 1.0, 9.0, 9.0], [70.0, 1.0, 79.0, 9.0]]), drawn[0], 60, 80)
    assert kept.tolist() == [False, True]


def test_a_policy_uses_every_change():
    augment = PhotoAugment(policy=2)
    names = {name for array, _ in augment.picked(numbers(augment, 400)) for name in array}
    assert names == set(POLICY)


def test_it_is_saved_with_a_recipe():
    assert Spec.from_json(EVERYTHING.as_spec().to_json()).build() == EVERYTHING


def test_averaging_over_views():
    seen = []

    def model(x):
        seen.append(x)
        return x.float().mean((2, 3))

    x = pictures()
    assert averaged(model, x).shape == (6, 3)
    assert torch.equal(seen[1], x.flip(3))
    seen.clear()
    averaged(model, x, shift=2)
    assert len(seen) == 10
    assert all(view.shape == x.shape for view in seen)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rotate": 200}, "PhotoAugment's rotate must be a number from 0 to 180, not 200."),
        ({"policy": 2.5}, "PhotoAugment's policy must be a whole number from 0 to 8, not 2.5."),
        ({"crop": 1}, "PhotoAugment's crop must leave something: give less than 1."),
    ],
)
def test_refusals(arguments, sentence):
    with pytest.raises(WonderlandError) as error:
        PhotoAugment(**arguments)
    assert str(error.value) == sentence


def test_bright_pixels_stay_bright():
    """Brightness and contrast end at white; only a policy with solarize turns highlights dark."""
    augment = PhotoAugment(brightness=0.5, contrast=0.5)
    x = torch.full((8, 3, 4, 4), 230, dtype=torch.uint8)
    x[:, :, :2] = 20
    numbers = np.full((8, augment.draws), 0.99)
    light = augment(x, numbers)
    assert (light[:, :, 2:] == 255).all()
    assert (light[:, :, :2] < 40).all()
