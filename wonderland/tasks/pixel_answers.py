"""Answers of an exported segmentation: the class of each pixel in the size of the picture, shares of classes, and unsure pixels."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.data.tensor_canvas import sizes_on_canvas, spread_to


class PixelAnswers(nn.Module):
    """Logits on the canvas (b, classes, h, w), and pictures (b, height, width, 3), as what `Segmentation.predictions` computes.

    `mask` has the class of each pixel of the picture. `share` is the share of the pixels of each class, `unsure` that of pixels with more
    than one class in their set, and the prediction is the class with the most pixels, background aside.
    """

    names = ("prediction", "share", "unsure", "mask", "probabilities")
    reads_inputs = True

    def __init__(self, task: Any, trust: Any, level: float):
        super().__init__()
        self.classes, self.background = task.classes, int(task.background)
        self.temperature, self.threshold = trust.temperature, trust.threshold(level)

    def forward(self, logits: Tensor, x: Tensor, pictures: Tensor) -> tuple[Tensor, ...]:
        chances = torch.softmax(logits / self.temperature, 1)
        own = spread_to(
            chances, pictures.shape[1], pictures.shape[2], *sizes_on_canvas(pictures, logits.shape[2], logits.shape[3])
        )
        mask = own.argmax(1)
        kinds = torch.arange(len(self.classes), device=mask.device)
        counts = (mask.flatten(1)[:, None] == kinds[:, None]).sum(2)
        objects = counts[:, self.background :]
        best = torch.where(objects.sum(1) > 0, objects.argmax(1) + self.background, torch.zeros_like(counts[:, 0]))
        unsure = ((own >= self.threshold).sum(1) > 1).flatten(1).double().mean(1)
        return best, counts.double() / counts.sum(1, keepdim=True), unsure, mask, own
