import numpy as np
import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.data import Batches, CropAugment

X = torch.arange(6 * 2 * 5 * 7, dtype=torch.int64).remainder(251).to(torch.uint8).view(6, 2, 5, 7)


def test_crops_are_windows_of_the_reflected_image():
    augment = CropAugment(pixels=2)
    numbers = augment.numbers(3, 1, np.arange(6))
    moved = augment(X, numbers)
    padded = torch.nn.functional.pad(X.float(), [2] * 4, mode="reflect").to(torch.uint8)
    for i, (down, right) in enumerate(np.floor(numbers[:, :2] * 5).astype(int)):
        assert torch.equal(moved[i], padded[i, :, down : down + 5, right : right + 7])
    assert torch.equal(augment(X[2:3], numbers[2:3]), moved[2:3])


def test_alternating_flips_show_both_sides_in_two_epochs():
    augment = CropAugment(pixels=0, flip="alternating")
    even, odd, later = (augment(X, augment.numbers(0, epoch, np.arange(6))) for epoch in (0, 1, 2))
    assert torch.equal(even, odd.flip(-1))
    assert torch.equal(even, later)
    flipped = [not torch.equal(a, b) for a, b in zip(even, X, strict=True)]
    assert any(flipped)
    assert not all(flipped)


def test_cutout_leaves_a_square_and_batches_use_the_numbers():
    augment = CropAugment(pixels=0, cutout=3)
    out = augment(X, augment.numbers(0, 0, np.arange(6)))
    changed = (out != X).any(1).flatten(1).sum(1)
    assert (changed <= 9).all()
    assert (changed > 0).all()
    flips = CropAugment(pixels=1, flip="alternating")
    batches = Batches(X, torch.arange(6), size=6, augment=flips)
    index = batches.indices(1, 0)
    assert torch.equal(batches.batch(1, 0)["x"], flips(X[index], flips.numbers(0, 1, index)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"flip": "often"}, "CropAugment's flip is one of none, random, alternating, not 'often'."),
        ({"pixels": 65}, "CropAugment's pixels is a whole number from 0 to 64, not 65."),
        ({"cutout": 1.5}, "CropAugment's cutout is a whole number from 0 to 256, not 1.5."),
    ],
)
def test_arguments_that_cannot_be(arguments, sentence):
    with pytest.raises(WonderlandError, match=f"^{sentence}$"):
        CropAugment(**arguments)
