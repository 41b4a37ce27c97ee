"""The resize of exported models equals that of the decoder in every pixel, in colour and grey, at any size."""

import numpy as np
import pytest
import torch

from wonderland.data.decode import conform
from wonderland.data.tensor_resize import fit_tensor, grey_tensor

SIZES = [
    (1, 1, 5, 3),
    (9, 9, 9, 9),
    (65, 52, 40, 44),
    (97, 11, 30, 45),
    (20, 60, 31, 8),
    (400, 333, 13, 21),
    (9, 300, 4, 8),
]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_pixels_equal_those_of_the_decoder(size):
    h, w, height, width = size
    image = np.random.default_rng(h).integers(0, 256, (h, w, 3), dtype=np.uint8)
    colour = fit_tensor(torch.from_numpy(image)[None], height, width)
    assert (colour[0].numpy() == conform(image, 3, height, width)).all()
    assert (grey_tensor(colour)[0].numpy() == conform(image, 1, height, width)).all()
