"""Pictures on a canvas as inputs of an exported detector or segmentation, of any height and width; and what exports are tried on."""

from collections.abc import Iterator

import torch
from torch import Tensor

from wonderland.data.ports import Port, Preprocessing, Trial
from wonderland.data.tensor_canvas import placed_tensor
from wonderland.data.tensor_resize import grey_tensor
from wonderland.kinds.image.canvas import GREY
from wonderland.kinds.image.program import odd_pictures

BATCHES = (1, 7, 20)


class CanvasProgram(Preprocessing):
    """From pixels in colour, uint8 (rows, height, width, 3), to the canvas of the model, uint8 (rows, c, h, w), and the pictures themselves."""

    model_inputs = 1

    def __init__(self, channels: int, height: int, width: int):
        about = f"pixels in colour, red, green, blue; scaled to fit into {height} x {width} inside"
        super().__init__((Port("image", "uint8", ("rows", "height", "width", 3), about=about),))
        self.channels, self.height, self.width = channels, height, width

    def forward(self, *values: Tensor) -> tuple[Tensor, Tensor]:
        placed = placed_tensor(values[0], self.height, self.width, outside=GREY)
        placed = grey_tensor(placed) if self.channels == 1 else placed
        return placed.to(torch.uint8), values[0]


def canvas_trials(height: int, width: int) -> Iterator[Trial]:
    """Pictures of three sizes: that of the canvas, larger and wider, and small and tall."""
    for h, w in ((height, width), (height + 5, 3 * width + 2), (max(9, height // 2), max(8, width // 3))):
        pixels = odd_pictures(h, w)
        yield Trial.of_rows(pixels, {"image": pixels}, BATCHES)
