"""The encoding of images as a torch program: any height and width, fitted as `predict` fits them, and what exports are tried on."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from wonderland.data.ports import Port, Preprocessing, Trial
from wonderland.data.tensor_resize import fit_tensor, grey_tensor

COUNT = 20
BATCHES = (1, 7, COUNT)


class ImageProgram(Preprocessing):
    """From pixels in colour, uint8 (rows, height, width, 3), to those of the model, uint8 (rows, c, h, w)."""

    def __init__(self, channels: int, height: int, width: int):
        about = f"pixels in colour, red, green, blue; fitted to {height} x {width} inside"
        super().__init__((Port("image", "uint8", ("rows", "height", "width", 3), about=about),))
        self.channels, self.height, self.width = channels, height, width

    def forward(self, *values: Tensor) -> Tensor:
        fitted = fit_tensor(values[0], self.height, self.width)
        return (grey_tensor(fitted) if self.channels == 1 else fitted).to(torch.uint8)


def image_trials(height: int, width: int) -> Iterator[Trial]:
    """Pictures of three sizes: that of the model, larger and wider, and tiny."""
    for h, w in ((height, width), (3 * height + 5, 7 * width + 2), (max(2, height // 3), max(4, width // 4))):
        pixels = odd_pictures(h, w)
        yield Trial.of_rows(pixels, {"image": pixels}, BATCHES)


def odd_pictures(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Pictures of noise, gradients, one colour, stripes and grey: uint8 (n, height, width, 3)."""
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 256, (COUNT, height, width, 3), dtype=np.uint8)
    pixels[0], pixels[1], pixels[2] = 0, 255, (255, 0, 0)
    pixels[3] = np.linspace(0, 255, width).astype(np.uint8)[None, :, None]
    pixels[4] = np.linspace(0, 255, height).astype(np.uint8)[:, None, None]
    pixels[5, ::2] = 0
    pixels[6] = pixels[6, ..., :1]
    pixels[7:12] = np.clip(generator.normal(128, 20, (5, height, width, 3)), 0, 255)
    return pixels
