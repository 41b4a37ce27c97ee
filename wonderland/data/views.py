"""Several random views of each image: a data set of images becomes one of sets of images."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, mix
from wonderland.data.batches import random_numbers


def several_views(x: Tensor, augment: Any, count: int, *, seed: int = 0, epoch: int = 0, rows: Any = None) -> Tensor:
    """Each image changed at random `count` times; the label stays the one of the image.

    `augment` is a `PhotoAugment` or another one of `data`. View i of an image depends on (seed, epoch, row, i) alone; `rows` are the
    numbers of the images in their data set (0, 1, ... unless given). Shapes: x (b, c, h, w) -> (b, count, c, h, w).
    Book: Alice 10, exercise 1.

    >>> from wonderland.data import PhotoAugment
    >>> several_views(torch.zeros(2, 1, 8, 8), PhotoAugment(crop=0.3), 3).shape
    torch.Size([2, 3, 1, 8, 8])
    """
    if count < 1:
        raise WonderlandError(f"An image has at least one view, not {count}.")
    rows = np.arange(len(x)) if rows is None else np.asarray(rows)
    seeds = [mix(seed, view) for view in range(count)]
    return torch.stack([augment(x, random_numbers(augment, own, epoch, rows)) for own in seeds], 1)
