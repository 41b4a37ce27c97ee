"""RoI align: the features under a box, sampled to one size whatever the size of the box."""

import torch
import torch.nn.functional as F
from torch import Tensor


def roi_align(
    maps: Tensor, boxes: Tensor, images: Tensor, size: int, *, scale: float = 1.0, samples: int = 2
) -> Tensor:
    """The mean of bilinear samples in each of `size` x `size` cells of each box.

    `boxes` (n, 4) are in pixels of the image, `scale` is the map's size over the image's, `images` (n,) says to which row of
    `maps` (b, c, h, w) a box belongs; `samples` are taken in each direction of a cell. Pixel centres lie at half coordinates
    (the aligned form). Samples outside the map count as its border, or as 0 from one pixel away on.

    Shapes: -> (n, c, size, size). Book: D2L 14.8. Paper: He et al., 2017 (Mask R-CNN).

    >>> roi_align(torch.ones(1, 3, 8, 8), torch.tensor([[1.0, 1.0, 5.0, 5.0]]), torch.tensor([0]), 2).shape
    torch.Size([1, 3, 2, 2])
    """
    height, width = maps.shape[2:]
    low, high = boxes[:, :2] * scale - 0.5, boxes[:, 2:] * scale - 0.5
    steps = (torch.arange(size * samples, device=maps.device, dtype=maps.dtype) + 0.5) / (size * samples)
    xs, ys = (low[:, axis, None] + (high - low)[:, axis, None] * steps for axis in (0, 1))
    outside = ((ys < -1) | (ys > height))[:, :, None] | ((xs < -1) | (xs > width))[:, None, :]
    grid = torch.stack(
        [
            ((xs.clamp(0, width - 1) * 2 + 1) / width - 1)[:, None, :].expand(-1, size * samples, -1),
            ((ys.clamp(0, height - 1) * 2 + 1) / height - 1)[:, :, None].expand(-1, -1, size * samples),
        ],
        -1,
    )
    # Boxes of one image are sampled together, stacked below each other.
    sampled_maps = maps.new_zeros(len(boxes), maps.shape[1], size * samples, size * samples)
    for image in images.unique().tolist():
        rows = (images == image).nonzero(as_tuple=True)[0]
        sampled = F.grid_sample(maps[image : image + 1], grid[rows].flatten(0, 1)[None], align_corners=False)
        sampled_maps = sampled_maps.index_copy(0, rows, sampled[0].unflatten(1, (len(rows), -1)).transpose(0, 1))
    sampled_maps = sampled_maps.masked_fill(outside[:, None], 0.0)
    return F.avg_pool2d(sampled_maps, samples)
