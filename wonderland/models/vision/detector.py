"""The base of detectors: candidates with probabilities, losses for boxes, and non-maximum suppression."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.models.vision.image_model import ImageModel, Numbers
from wonderland.ops.over_time import is_exporting
from wonderland.ops.vision import anchors, batched_nms

BEFORE_SUPPRESSION = 1000


class Detector(ImageModel):
    """From images to boxes: `candidates` of every image, `losses` for training, `detect` for predictions.

    `classes` counts the kinds of objects, without background. Boxes are (left, top, right, bottom) in pixels.
    """

    def __init__(self, classes: int, channels: int, mean: Numbers, std: Numbers):
        super().__init__(classes, channels, mean, std)
        if classes < 1:
            raise WonderlandError(f"{type(self).__name__} needs at least one class, not {classes}.")
        self.classes = classes

    @abstractmethod
    def candidates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities (b, n, classes) and boxes (b, n, 4) of all candidates."""

    @abstractmethod
    def losses(self, x: Tensor, boxes: Tensor, labels: Tensor, **more: Tensor) -> dict[str, Tensor]:
        """Losses by name for true boxes (b, m, 4) and their classes (b, m), -1 for padding. `more` may hold outlines."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.candidates(x)

    def detect(
        self, x: Tensor, *, least: float = 0.05, overlap: float = 0.5, most: int = 100
    ) -> list[dict[str, Tensor]]:
        """For each image `boxes` (k, 4), `scores` (k,) and `classes` (k,), best first, after non-maximum suppression in each class."""
        probabilities, boxes = self.candidates(x)
        return suppressed(probabilities, boxes, (x.shape[2], x.shape[3]), least=least, overlap=overlap, most=most)


def suppressed(
    probabilities: Tensor, boxes: Tensor, size: tuple[int, int], *, least: float, overlap: float, most: int
) -> list[dict[str, Tensor]]:
    """The best candidates of each image: at most 1,000 above `least`, suppressed within each class, all images at once.

    Shapes: probabilities (b, n, classes), boxes (b, n, 4).
    """
    batch, _, classes = probabilities.shape
    flat = probabilities.flatten(1)
    scores, place = flat.topk(min(BEFORE_SUPPRESSION, flat.shape[1]), 1)
    box = boxes.gather(1, (place // classes)[:, :, None].expand(-1, -1, 4))
    box = torch.minimum(box.clamp_min(0), box.new_tensor([size[1], size[0], size[1], size[0]]))
    real = (scores >= least) & ((box[..., 2:] - box[..., :2]).amin(2) > 0)
    image, column = real.nonzero(as_tuple=True)
    box, score, label = box[image, column], scores[image, column], place[image, column] % classes
    kept = batched_nms(box, score, image * classes + label, overlap)
    image = image[kept]
    detections = []
    for row in range(batch):
        mine = kept[image == row][:most]
        detections.append({"boxes": box[mine], "scores": score[mine], "classes": label[mine]})
    return detections


class AnchorGrid:
    """Anchors of several maps, kept for each size of image.

    `sizes` (a list for each map) are in pixels, or as `parts` of the height of the image; `ratios` are widths over heights.
    """

    def __init__(
        self, strides: Sequence[int], sizes: Sequence[Sequence[float]], ratios: Sequence[float], *, parts: bool = False
    ):
        self.strides, self.sizes, self.ratios, self.parts = strides, sizes, ratios, parts
        self.each = len(sizes[0]) + len(ratios) - 1
        self._kept: dict[tuple[int, int], Tensor] = {}

    def __call__(self, maps: Sequence[Tensor], height: int, width: int) -> Tensor:
        """Anchors (n, 4) in pixels for maps of an image of this size, finest first."""
        key = (height, width)
        if is_exporting() and key not in self._kept:
            return self._made(maps, height, width)
        if key not in self._kept:
            self._kept = {key: self._made(maps, height, width)}
        return self._kept[key].to(maps[0].device)

    def _made(self, maps: Sequence[Tensor], height: int, width: int) -> Tensor:
        grids = []
        for features, sizes in zip(maps, self.sizes, strict=True):
            scaled = [size if self.parts else size / height for size in sizes]
            grids.append(
                anchors(
                    features.shape[2], features.shape[3], sizes=scaled, ratios=self.ratios, height=height, width=width
                )
            )
        return torch.cat(grids)


def anchor_sizes(smallest: float, levels: int) -> list[list[float]]:
    """Two sizes for each map: the smallest times powers of the square root of two.

    >>> anchor_sizes(10.0, 2)
    [[10.0, 14.142135623730951], [20.0, 28.284271247461902]]
    """
    return [[smallest * 2**level, smallest * 2 ** (level + 0.5)] for level in range(levels)]


def rows_of(maps: Tensor, each: int) -> Tensor:
    """A map of predictions (b, each * k, h, w) as one row for each anchor: (b, h * w * each, k)."""
    return maps.permute(0, 2, 3, 1).reshape(maps.shape[0], -1, maps.shape[1] // each)
