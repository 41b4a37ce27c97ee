"""Clips as inputs of an exported model: frames of any height and width, fitted as `predict` fits them, and clips to try it on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.data.decode import conform
from wonderland.data.ports import Port, Preprocessing, Trial
from wonderland.data.tensor_resize import fit_tensor, grey_tensor
from wonderland.kinds.clip.clips import Clips

COUNT = 6
BATCHES = (1, 4, COUNT)


class ClipProgram(Preprocessing):
    """From frames in colour, uint8 (rows, frames, height, width, 3), to those of the model, uint8 (rows, frames, c, side, side)."""

    def __init__(self, frames: int, channels: int, side: int):
        about = f"{frames} frames spread evenly over the clip, red, green, blue; fitted to {side} x {side} inside"
        super().__init__((Port("clip", "uint8", ("rows", frames, "height", "width", 3), about=about),))
        self.frames, self.channels, self.side = frames, channels, side

    def forward(self, *values: Tensor) -> Tensor:
        fitted = fit_tensor(values[0].flatten(0, 1), self.side, self.side)
        fitted = grey_tensor(fitted) if self.channels == 1 else fitted
        return fitted.to(torch.uint8).unflatten(0, (-1, self.frames))


def clip_trials(encoder: Any) -> Iterator[Trial]:
    """Clips of three sizes: noise, one colour, gradients that move, black and grey."""
    side = encoder.side
    for height, width in ((side, side), (3 * side + 5, 5 * side + 2), (max(2, side // 2), side)):
        frames = odd_clips(encoder.frames, height, width)
        shape = (encoder.channels, side, side)
        pixels = np.stack([np.stack([conform(frame, *shape) for frame in clip]) for clip in frames])
        source = Clips(pixels, [str(i) for i in range(COUNT)], name="clips", origin={"memory": "clips"})
        yield Trial.of_rows(source, {"clip": frames}, BATCHES)


def odd_clips(frames: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Clips in colour, uint8 (n, frames, height, width, 3)."""
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 256, (COUNT, frames, height, width, 3), dtype=np.uint8)
    pixels[0], pixels[1] = 0, (255, 0, 0)
    for t in range(frames):
        pixels[2, t] = np.roll(np.linspace(0, 255, width).astype(np.uint8), t)[None, :, None]
    pixels[3] = pixels[3, ..., :1]
    return pixels
