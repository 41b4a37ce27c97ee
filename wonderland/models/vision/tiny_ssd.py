"""TinySSD: predictions from maps of falling resolution, each for larger boxes."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part, published
from wonderland.models.vision.detector import AnchorGrid, Detector, anchor_sizes, rows_of
from wonderland.models.vision.image_model import Numbers
from wonderland.models.vision.pyramid import padded
from wonderland.nn.contract.arguments import at_least_one
from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.ops.vision import decode, encode, match

BOOK_SIZES = ([0.2, 0.272], [0.37, 0.447], [0.54, 0.619], [0.71, 0.79], [0.88, 0.961])
HARD = 3  # background anchors that count, for each positive one


@part
class TinySSD(Detector):
    r"""Blocks of two convolutions that halve the map; from stride `finest` on, each map has a class and offsets for its anchors.

    .. math:: L = \frac{1}{n_+} \Bigl( \sum_{a} -\log p_{a, y_a} + \sum_{a\, \text{positive}} \mathrm{smooth}_{L_1}(t_a - t_a^*) \Bigr)

    Class 0 of the softmax is background; of the background anchors, the three times as many as there are positive ones with the
    largest loss count. Anchors are those of `RetinaNet`; without `anchor_size` they are those of the book, as parts of the
    height. `TinySSD.d2l` is the network of the book: five maps, the last of one pixel.

    Shapes: x (b, channels, h, w) -> probabilities (b, n, classes), boxes (b, n, 4). Book: D2L 14.7. Paper: Liu et al., 2016.

    >>> net = TinySSD.d2l(classes=1)
    >>> [tuple(found.shape) for found in net(torch.zeros(1, 3, 256, 256))]
    [(1, 5444, 1), (1, 5444, 4)]
    """

    smallest = 8

    def __init__(
        self, classes: int = 1, channels: int = 3, *, finest: int = 8, levels: int = 4, anchor_size: float | int | None = None,
        anchor_ratios: Sequence[float | int] = (1.0, 2.0, 0.5), dim: int = 16, last: str = "halved", mean: Numbers = None,
        std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        at_least_one("TinySSD", dim=dim)
        if finest not in (4, 8, 16, 32) or not 1 <= levels <= 5 or last not in ("halved", "pooled"):
            raise WonderlandError(
                f"TinySSD begins at stride 4, 8, 16 or 32, has 1 to 5 levels, and last is halved or pooled, not finest={finest}, "
                f"levels={levels}, last={last!r}."
            )
        before = finest.bit_length() - 1
        halved = before + levels - (2 if last == "pooled" else 1)
        widths = [min(dim << place, 8 * dim) for place in range(halved)]
        self.blocks = nn.ModuleList(halving(a, b) for a, b in zip([channels, *widths[:-1]], widths, strict=True))
        self.first, self.pooled = before - 1, last == "pooled"
        self.stride = 1 << halved
        sizes = list(BOOK_SIZES[:levels]) if anchor_size is None else anchor_sizes(anchor_size, levels)
        self.grid = AnchorGrid(
            [finest << place for place in range(levels)], sizes, anchor_ratios, parts=anchor_size is None
        )
        given = widths[self.first :] + ([widths[-1]] if self.pooled else [])
        self.class_scores = nn.ModuleList(
            nn.Conv2d(width, self.grid.each * (classes + 1), 3, padding=1) for width in given
        )
        self.box_offsets = nn.ModuleList(nn.Conv2d(width, self.grid.each * 4, 3, padding=1) for width in given)

    @classmethod
    @published
    def d2l(cls, **more: Any):
        """The network of D2L 14.7 for images of 256 x 256 pixels."""
        return cls(**{"finest": 8, "levels": 5, "dim": 16, "last": "pooled", **more})

    def features_of(self, x: Tensor) -> list[Tensor]:
        """The maps that predictions are made from, finest first."""
        maps = []
        for place, block in enumerate(self.blocks):
            x = block(x)
            if place >= self.first:
                maps.append(x)
        return [*maps, F.adaptive_max_pool2d(x, 1)] if self.pooled else maps

    def maps(self, x: Tensor) -> Tensor:
        """The finest map."""
        return self.features_of(padded(self.read(x), self.stride))[0]

    def raw(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (b, n, classes + 1) with background first, offsets (b, n, 4) and anchors (n, 4)."""
        x = padded(self.read(x), self.stride)
        maps = self.features_of(x)
        logits = [
            rows_of(layer(features), self.grid.each) for layer, features in zip(self.class_scores, maps, strict=True)
        ]
        offsets = [
            rows_of(layer(features), self.grid.each) for layer, features in zip(self.box_offsets, maps, strict=True)
        ]
        return torch.cat(logits, 1), torch.cat(offsets, 1), self.grid(maps, x.shape[2], x.shape[3])

    def candidates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        logits, offsets, around = self.raw(x)
        return logits.softmax(2)[:, :, 1:], decode(offsets, around)

    def losses(self, x: Tensor, boxes: Tensor, labels: Tensor, **more: Tensor) -> dict[str, Tensor]:
        logits, offsets, around = self.raw(x)
        owner = match(around, boxes, labels >= 0, positive=0.5, negative=0.5)
        positive = owner >= 0
        row, anchor = positive.nonzero(as_tuple=True)
        mine = owner[row, anchor]
        goal = torch.zeros_like(owner)
        goal[row, anchor] = labels[row, mine] + 1
        plain = F.cross_entropy(logits.flatten(0, 1), goal.flatten(), reduction="none").view_as(goal)
        counted = positive | hardest(plain.detach(), positive, HARD)
        count = max(1, len(row))
        wanted = encode(boxes[row, mine], around[anchor])
        offset = F.smooth_l1_loss(offsets[row, anchor], wanted, reduction="sum") / count
        return {"classes": (plain * counted).sum() / count, "boxes": offset}


def hardest(loss: Tensor, positive: Tensor, times: int) -> Tensor:
    """The background anchors of each image with the largest loss: `times` as many as positive ones, at least `times`.

    >>> hardest(torch.tensor([[3.0, 1.0, 2.0, 0.5]]), torch.tensor([[True, False, False, False]]), 1).tolist()
    [[False, False, True, False]]
    """
    order = loss.masked_fill(positive, -1.0).argsort(dim=1, descending=True, stable=True)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(loss.shape[1], device=loss.device).expand_as(order))
    wanted = positive.sum(1, keepdim=True).clamp_min(1) * times
    return (rank < wanted) & ~positive


def halving(dim: int, out: int) -> nn.Sequential:
    """Two convolutions with batch norm, and the largest of each 2 x 2 pixels."""
    return nn.Sequential(ConvNorm(dim, out), ConvNorm(out, out), nn.MaxPool2d(2))
