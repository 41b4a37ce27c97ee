"""Pictures of two coloured shapes beside or above each other, and captions that say what is where."""

import numpy as np
import torch
from torch import Tensor

COLOURS = {"red": (0.9, 0.1, 0.1), "green": (0.1, 0.8, 0.2), "blue": (0.2, 0.3, 0.9), "yellow": (0.9, 0.9, 0.1)}
SHAPES = ("square", "circle", "cross")
PLACES = ("left of", "above")
WORDS = ["<pad>", "<start>", "<end>", "a", *COLOURS, *SHAPES, "left", "of", "above"]
SIDE, LENGTH = 24, 11


def drawn(shape: str) -> np.ndarray:
    """A shape as a mask (9, 9)."""
    y, x = np.mgrid[-4:5, -4:5]
    return {
        "square": np.maximum(abs(x), abs(y)) <= 3,
        "circle": x * x + y * y <= 14,
        "cross": (abs(x) <= 1) | (abs(y) <= 1),
    }[shape]


def pictures(count: int, seed: int) -> tuple[Tensor, Tensor, list[str]]:
    """Pictures (n, 3, 24, 24), captions as tokens (n, 11), and as texts."""
    draw = np.random.default_rng(seed)
    images, tokens, captions = np.zeros((count, 3, SIDE, SIDE), np.float32), np.zeros((count, LENGTH), np.int64), []
    for row in range(count):
        place, things = str(draw.choice(PLACES)), []
        for second in (0, 1):
            colour, shape = str(draw.choice(list(COLOURS))), str(draw.choice(SHAPES))
            near, across = 2 + 11 * second + int(draw.integers(0, 2)), int(draw.integers(2, SIDE - 11))
            top, left = (across, near) if place == "left of" else (near, across)
            images[row, :, top : top + 9, left : left + 9] += (
                drawn(shape) * np.array(COLOURS[colour], np.float32)[:, None, None]
            )
            things.append(f"a {colour} {shape}")
        captions.append(f"{things[0]} {place} {things[1]}")
        ids = [1, *(WORDS.index(word) for word in captions[-1].split()), 2]
        tokens[row, : len(ids)] = ids
    noise = draw.normal(0, 0.05, images.shape).astype(np.float32)
    return torch.from_numpy(images + noise), torch.from_numpy(tokens), captions
