"""RetinaNet: a pyramid of maps, one head for the classes and one for the boxes of every anchor, and the focal loss."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.vision.detector import AnchorGrid, Detector, anchor_sizes, rows_of
from wonderland.models.vision.image_model import Numbers
from wonderland.models.vision.pyramid import Pyramid, padded
from wonderland.nn.contract.arguments import at_least_one
from wonderland.ops.vision import decode, encode, focal_loss, match

RARE = 0.01  # the share of positive anchors that the first probabilities assume


@part
class RetinaNet(Detector):
    r"""Every anchor of every map gets a probability of each class and offsets to a box.

    .. math:: L = \frac{1}{n_+} \Bigl( \sum_{a} \mathrm{FL}(p_a, y_a) + \sum_{a\, \text{positive}} \mathrm{smooth}_{L_1}(t_a - t_a^*) \Bigr)

    Maps begin at stride `finest`; there are `levels` of them, with two sizes of anchors each from `anchor_size` pixels on, and
    the widths over heights `anchor_ratios`. The heads have `depth` convolutions and are shared by all maps.

    Shapes: x (b, channels, h, w) -> probabilities (b, n, classes), boxes (b, n, 4). Paper: Lin et al., 2017 (focal loss).

    >>> net = RetinaNet(3, dim=8, levels=2)
    >>> [tuple(found.shape) for found in net(torch.zeros(1, 3, 64, 64))]
    [(1, 320, 3), (1, 320, 4)]
    """

    smallest = 8

    def __init__(
        self, classes: int = 20, channels: int = 3, *, finest: int = 8, levels: int = 4, anchor_size: float | int = 24.0,
        anchor_ratios: Sequence[float | int] = (1.0, 2.0, 0.5), dim: int = 32, depth: int = 2, mean: Numbers = None,
        std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        at_least_one("RetinaNet", dim=dim, depth=depth)
        out = 2 * dim
        self.pyramid = Pyramid(channels, finest=finest, levels=levels, dim=dim, out=out)
        self.grid = AnchorGrid(self.pyramid.strides, anchor_sizes(anchor_size, levels), anchor_ratios)
        self.class_head, self.box_head = tower(out, depth), tower(out, depth)
        self.class_scores = nn.Conv2d(out, self.grid.each * classes, 3, padding=1)
        self.box_offsets = nn.Conv2d(out, self.grid.each * 4, 3, padding=1)
        for layer in (self.class_scores, self.box_offsets):
            nn.init.normal_(layer.weight, std=0.01)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
        assert self.class_scores.bias is not None
        nn.init.constant_(self.class_scores.bias, -math.log((1 - RARE) / RARE))

    def maps(self, x: Tensor) -> Tensor:
        """The finest map of the pyramid."""
        return self.pyramid(padded(self.read(x), self.pyramid.stride))[0]

    def raw(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (b, n, classes), offsets (b, n, 4) and anchors (n, 4)."""
        x = padded(self.read(x), self.pyramid.stride)
        maps = self.pyramid(x)
        logits = [rows_of(self.class_scores(self.class_head(features)), self.grid.each) for features in maps]
        offsets = [rows_of(self.box_offsets(self.box_head(features)), self.grid.each) for features in maps]
        return torch.cat(logits, 1), torch.cat(offsets, 1), self.grid(maps, x.shape[2], x.shape[3])

    def candidates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        logits, offsets, around = self.raw(x)
        return logits.sigmoid(), decode(offsets, around)

    def losses(self, x: Tensor, boxes: Tensor, labels: Tensor, **more: Tensor) -> dict[str, Tensor]:
        logits, offsets, around = self.raw(x)
        owner = match(around, boxes, labels >= 0, positive=0.5, negative=0.4)
        row, anchor = (owner >= 0).nonzero(as_tuple=True)
        mine = owner[row, anchor]
        wanted = torch.zeros_like(logits)
        wanted[row, anchor, labels[row, mine]] = 1.0
        counted = (owner != -2)[:, :, None]
        positives = max(1, len(row))
        classes = (focal_loss(logits, wanted) * counted).sum() / positives
        goal = encode(boxes[row, mine], around[anchor])
        return {"classes": classes, "boxes": F.smooth_l1_loss(offsets[row, anchor], goal, reduction="sum") / positives}


def tower(dim: int, depth: int) -> nn.Sequential:
    """Convolutions with group norm, which does not mix the statistics of the maps that share them."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Conv2d(dim, dim, 3, padding=1, bias=False), nn.GroupNorm(math.gcd(8, dim), dim), nn.ReLU()]
    return nn.Sequential(*layers)
