"""What is inside a convolutional network, as sheets of small pictures: its filters, and the maps of its layers."""

import base64
import io
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.understand.hooks import evaluating, layer_of

SHOWN = 64


@dataclass(frozen=True)
class MapSheet:
    """Small pictures side by side: `values` (rows, n, h, w), or (rows, n, 3, h, w) in colour. It draws itself in a notebook.

    `shape` and indexing are those of `values`.
    """

    values: Tensor
    title: str = ""

    @property
    def shape(self) -> torch.Size:
        return self.values.shape

    def __getitem__(self, place: Any) -> Tensor:
        return self.values[place]

    def pixels(self, row: int, place: int) -> np.ndarray:
        """One picture, its values spread over black to white: uint8 (h, w) or (h, w, 3)."""
        picture = self.values[row, place].detach().float()
        low, high = picture.amin(), picture.amax()
        bright = ((picture - low) / (high - low).clamp_min(1e-12) * 255).round().to(torch.uint8).numpy()
        return bright.transpose(1, 2, 0) if bright.ndim == 3 else bright

    def sheet(self, row: int = 0) -> np.ndarray:
        """The pictures of a row in a square grid with a line between them: uint8."""
        pictures = [self.pixels(row, place) for place in range(min(SHOWN, self.values.shape[1]))]
        columns = int(np.ceil(np.sqrt(len(pictures))))
        tall, wide = pictures[0].shape[0] + 1, pictures[0].shape[1] + 1
        shape = (tall * -(-len(pictures) // columns) - 1, wide * columns - 1, *pictures[0].shape[2:])
        sheet = np.full(shape, 255, np.uint8)
        for index, picture in enumerate(pictures):
            top, left = tall * (index // columns), wide * (index % columns)
            sheet[top : top + tall - 1, left : left + wide - 1] = picture
        return sheet

    def _repr_html_(self) -> str:
        images = "".join(
            f"<img style='width:240px;margin:4px;image-rendering:pixelated' alt='{escape(self.title)} {row}' "
            f"src='data:image/png;base64,{png(self.sheet(row))}'>"
            for row in range(min(len(self.values), 8))
        )
        return f"<p>{escape(self.title)}</p>{images}"


def filters(model: nn.Module, layer: str | None = None) -> MapSheet:
    """The kernels of a convolution, by its name (the first one unless given): one row, in colour where it reads three channels.

    Kernels of other layers have a row for each of the first 8 outputs, with a picture for each channel that they read.
    Book: Alice 7.1.

    >>> filters(nn.Conv2d(3, 5, 7)).shape
    torch.Size([1, 5, 3, 7, 7])
    """
    chosen = layer_of(model, layer) if layer is not None else None
    if chosen is None:
        chosen = next((module for module in model.modules() if isinstance(module, nn.Conv2d)), None)
    if not isinstance(chosen, nn.Conv2d):
        raise WonderlandError("This layer is no convolution of images, so it has no filters to show: name another one.")
    weight = chosen.weight.detach()
    title = f"{weight.shape[0]} filters of {weight.shape[2]} x {weight.shape[3]}"
    if weight.shape[1] == 3:
        return MapSheet(weight[None], title)
    return MapSheet(weight.transpose(0, 1) if weight.shape[1] == 1 else weight[:8], title)


def feature_maps(model: nn.Module, x: Tensor, layer: str) -> MapSheet:
    """What a layer, by its name, gives for some images: a row of maps for each image.

    Shapes: x (b, c, h, w) -> values (b, d, h', w'). Book: Alice 7.1.

    >>> feature_maps(nn.Sequential(nn.Conv2d(1, 3, 3)), torch.zeros(1, 1, 5, 5), "0").shape
    torch.Size([1, 3, 3, 3])
    """
    kept: list[Any] = []
    hook = layer_of(model, layer).register_forward_hook(lambda _, inputs, output: kept.append(output))
    try:
        with torch.no_grad(), evaluating(model):
            model(x)
    finally:
        hook.remove()
    if not kept or not isinstance(kept[-1], Tensor) or kept[-1].dim() != 4:
        raise WonderlandError(f"Layer {layer!r} gives no map (b, c, h, w): name another one.")
    return MapSheet(kept[-1], f"maps of {layer}")


def png(pixels: np.ndarray) -> str:
    """Pixels as the text of a PNG in base 64."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
