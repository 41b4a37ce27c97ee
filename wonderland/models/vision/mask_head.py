"""The mask head of Mask R-CNN: from the features under a box to a mask over it, one for each class."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.ops.vision import roi_align

SIDE = 28


class MaskHead(nn.Module):
    """RoI align to 14 x 14, two convolutions, a transposed convolution to 28 x 28, and logits for each class.

    Shapes: features (b, dim, h, w), boxes (n, 4) in pixels, images (n,) -> (n, classes, 28, 28). Paper: He et al., 2017.

    >>> MaskHead(8, 3)(torch.zeros(1, 8, 9, 9), torch.tensor([[0.0, 0.0, 20.0, 30.0]]), torch.tensor([0]), 1 / 4).shape
    torch.Size([1, 3, 28, 28])
    """

    def __init__(self, dim: int, classes: int):
        super().__init__()
        self.body = nn.Sequential(
            ConvNorm(dim, dim), ConvNorm(dim, dim), nn.ConvTranspose2d(dim, dim, 2, stride=2), nn.ReLU()
        )
        self.scores = nn.Conv2d(dim, classes, 1)

    def forward(self, features: Tensor, boxes: Tensor, images: Tensor, scale: float) -> Tensor:
        return self.scores(self.body(roi_align(features, boxes, images, SIDE // 2, scale=scale, samples=1)))


def mask_targets(fields: Mapping[str, Tensor], boxes: Tensor, images: Tensor, owners: Tensor) -> Tensor:
    """The true mask in each of some boxes, read from the outline of the object that owns it.

    `fields` has outlines (b, m, 28, 28) over the boxes `origins` (b, m, 4) of the image before it was changed at random, and
    `places` (b, 2, 3), from pixels after to pixels before. Shapes: boxes (n, 4), images and owners (n,) -> (n, 28, 28).
    """
    steps = (torch.arange(SIDE, device=boxes.device, dtype=boxes.dtype) + 0.5) / SIDE
    size = boxes[:, 2:] - boxes[:, :2]
    xs, ys = (boxes[:, axis, None] + size[:, axis, None] * steps for axis in (0, 1))
    points = torch.stack([xs[:, None, :].expand(-1, SIDE, -1), ys[:, :, None].expand(-1, -1, SIDE)], -1)
    place, origin = fields["places"][images].to(boxes), fields["origins"][images, owners]
    before = points @ place[:, None, :, :2].transpose(2, 3) + place[:, None, None, :, 2]
    low, wide = origin[:, None, None, :2], (origin[:, 2:] - origin[:, :2])[:, None, None].clamp_min(1e-6)
    grid = 2 * (before - low) / wide - 1
    outline = fields["outlines"][images, owners][:, None].to(boxes)
    return (F.grid_sample(outline, grid, align_corners=False)[:, 0] >= 0.5).to(boxes.dtype)
