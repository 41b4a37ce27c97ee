"""Faster R-CNN in a small form: proposals from anchors, then a class and a better box from the features under each; masks as well."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.vision.detector import AnchorGrid, Detector, anchor_sizes, rows_of, suppressed
from wonderland.models.vision.image_model import Numbers
from wonderland.models.vision.mask_head import MaskHead, mask_targets
from wonderland.models.vision.pyramid import Pyramid, padded
from wonderland.models.vision.tiny_ssd import hardest
from wonderland.nn.contract.arguments import at_least_one
from wonderland.ops.vision import batched_nms, decode, encode, match, roi_align

CONSIDERED, TOO_CLOSE, CELLS = 400, 0.7, 7


@part
class FasterRCNN(Detector):
    """Stage one scores anchors as object or not and moves them; of each image the best `proposals` are kept whose IoU is at most
    0.7. Stage two reads the features under each (RoI align, 7 x 7), and predicts its class, background among them, and its box.

    In training, the true boxes are added to the proposals. With `masks`, a third head predicts the mask in each box, as Mask R-CNN
    does. Maps and anchors are those of `RetinaNet`; features are read from the finest map.

    Shapes: x (b, channels, h, w) -> probabilities (b, proposals, classes), boxes (b, proposals, 4).
    Book: D2L 14.8. Papers: Ren et al., 2015; He et al., 2017.

    >>> net = FasterRCNN(3, dim=8, levels=2, proposals=5)
    >>> [tuple(found.shape) for found in net(torch.zeros(1, 3, 64, 64))]
    [(1, 5, 3), (1, 5, 4)]
    """

    no_export = "A detector of two stages looks again at a number of places that depends on the picture: RetinaNet and TinySSD can be exported."

    smallest = 8

    def __init__(
        self, classes: int = 20, channels: int = 3, *, finest: int = 8, levels: int = 4, anchor_size: float | int = 24.0,
        anchor_ratios: Sequence[float | int] = (1.0, 2.0, 0.5), dim: int = 32, proposals: int = 48, width: int = 256,
        masks: bool = False, mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        at_least_one("FasterRCNN", dim=dim, proposals=proposals, width=width)
        out = 2 * dim
        self.finest, self.proposals = finest, proposals
        self.pyramid = Pyramid(channels, finest=finest, levels=levels, dim=dim, out=out)
        self.grid = AnchorGrid(self.pyramid.strides, anchor_sizes(anchor_size, levels), anchor_ratios)
        self.first = nn.Conv2d(out, out, 3, padding=1)
        self.objectness = nn.Conv2d(out, self.grid.each, 1)
        self.first_offsets = nn.Conv2d(out, self.grid.each * 4, 1)
        self.second = nn.Sequential(
            nn.Flatten(), nn.Linear(out * CELLS**2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.class_scores, self.box_offsets = nn.Linear(width, classes + 1), nn.Linear(width, 4)
        for layer in (self.objectness, self.first_offsets, self.class_scores, self.box_offsets):
            nn.init.normal_(layer.weight, std=0.01)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
        self.mask_head = MaskHead(out, classes) if masks else None

    def maps(self, x: Tensor) -> Tensor:
        """The finest map of the pyramid."""
        return self.pyramid(padded(self.read(x), self.pyramid.stride))[0]

    def stage_one(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The finest map, objectness (b, n), offsets (b, n, 4) and anchors (n, 4)."""
        x = padded(self.read(x), self.pyramid.stride)
        maps = self.pyramid(x)
        features = [F.relu(self.first(level)) for level in maps]
        scores = torch.cat([rows_of(self.objectness(level), self.grid.each)[:, :, 0] for level in features], 1)
        offsets = torch.cat([rows_of(self.first_offsets(level), self.grid.each) for level in features], 1)
        return maps[0], scores, offsets, self.grid(maps, x.shape[2], x.shape[3])

    @torch.no_grad()
    def proposed(self, scores: Tensor, offsets: Tensor, around: Tensor, height: int, width: int) -> Tensor:
        """The best boxes of each image that are apart from each other: (b, proposals, 4); empty boxes where there are fewer."""
        batch = len(scores)
        best, place = scores.topk(min(CONSIDERED, scores.shape[1]), 1)
        index = place[:, :, None].expand(-1, -1, 4)
        boxes = decode(offsets.gather(1, index), around[place])
        boxes = torch.minimum(boxes.clamp_min(0), boxes.new_tensor([width, height, width, height]))
        image = torch.arange(batch, device=boxes.device)[:, None].expand_as(place).flatten()
        kept = batched_nms(boxes.flatten(0, 1), best.flatten(), image, TOO_CLOSE)
        image = image[kept]
        order = image.argsort(stable=True)  # within an image, best first
        image, kept = image[order], kept[order]
        count = torch.bincount(image, minlength=batch)
        rank = torch.arange(len(kept), device=boxes.device) - (count.cumsum(0) - count)[image]
        few = rank < self.proposals
        proposals = boxes.new_zeros(batch, self.proposals, 4)
        proposals[image[few], rank[few]] = boxes.flatten(0, 1)[kept[few]]
        return proposals

    def stage_two(self, features: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (b, p, classes + 1), background first, and offsets (b, p, 4) from the proposals (b, p, 4)."""
        batch, count = boxes.shape[:2]
        image = torch.arange(batch, device=boxes.device).repeat_interleave(count)
        read = roi_align(features, boxes.flatten(0, 1), image, CELLS, scale=1 / self.finest, samples=1)
        hidden = self.second(read)
        return self.class_scores(hidden).unflatten(0, (batch, count)), self.box_offsets(hidden).unflatten(
            0, (batch, count)
        )

    def candidates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        probabilities, boxes, _ = self._candidates(x)
        return probabilities, boxes

    def _candidates(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features, scores, offsets, around = self.stage_one(x)
        proposals = self.proposed(scores, offsets, around, x.shape[2], x.shape[3])
        logits, moved = self.stage_two(features, proposals)
        real = (proposals[..., 2:] > proposals[..., :2]).all(2, keepdim=True)
        return logits.softmax(2)[:, :, 1:] * real, decode(moved, proposals), features

    def detect(
        self, x: Tensor, *, least: float = 0.05, overlap: float = 0.5, most: int = 100
    ) -> list[dict[str, Tensor]]:
        """Boxes as every detector gives them, and with `masks` the `masks` (k, 28, 28) in them, as probabilities."""
        probabilities, boxes, features = self._candidates(x)
        detections = suppressed(probabilities, boxes, (x.shape[2], x.shape[3]), least=least, overlap=overlap, most=most)
        if self.mask_head is None:
            return detections
        count = torch.tensor([len(row["boxes"]) for row in detections], device=x.device)
        image = torch.arange(len(detections), device=x.device).repeat_interleave(count)
        label = torch.cat([row["classes"] for row in detections])
        drawn = self.mask_head(features, torch.cat([row["boxes"] for row in detections]), image, 1 / self.finest)
        chosen = drawn[torch.arange(len(drawn), device=x.device), label].sigmoid().split(count.tolist())
        return [row | {"masks": masks} for row, masks in zip(detections, chosen, strict=True)]

    def losses(self, x: Tensor, boxes: Tensor, labels: Tensor, **more: Tensor) -> dict[str, Tensor]:
        features, scores, offsets, around = self.stage_one(x)
        real = labels >= 0
        owner = match(around, boxes, real, positive=0.6, negative=0.3)
        row, anchor = (owner >= 0).nonzero(as_tuple=True)
        mine, count = owner[row, anchor], max(1, int((owner >= 0).sum()))
        plain = F.binary_cross_entropy_with_logits(scores, (owner >= 0).to(scores), reduction="none")
        plain = plain.masked_fill(owner == -2, 0.0)
        counted = (owner >= 0) | hardest(plain.detach(), owner >= 0, 3)
        losses = {
            "objects": (plain * counted).sum() / (4 * count),
            "proposals": F.smooth_l1_loss(
                offsets[row, anchor], encode(boxes[row, mine], around[anchor]), reduction="sum"
            )
            / (4 * count),
        }
        proposals = self.proposed(scores, offsets, around, x.shape[2], x.shape[3])
        proposals = torch.cat([proposals, boxes.masked_fill(~real[:, :, None], 0.0)], 1)
        owner = match(proposals, boxes, real, positive=0.5, negative=0.5, force=False)
        logits, moved = self.stage_two(features, proposals)
        row, place = (owner >= 0).nonzero(as_tuple=True)
        mine = owner[row, place]
        goal = torch.zeros_like(owner)
        goal[row, place] = labels[row, mine] + 1
        full = (proposals[..., 2:] > proposals[..., :2]).all(2)
        count, positive = max(1, len(row)), owner >= 0
        plain = (
            F.cross_entropy(logits.flatten(0, 1), goal.flatten(), reduction="none")
            .view_as(goal)
            .masked_fill(~full, 0.0)
        )
        counted = positive | hardest(plain.detach(), positive, 3)
        losses["classes"] = (plain * counted).sum() / (2 * count)
        wanted = encode(boxes[row, mine], proposals[row, place])
        losses["boxes"] = F.smooth_l1_loss(moved[row, place], wanted, reduction="sum") / (2 * count)
        if self.mask_head is not None and "outlines" in more and len(row):
            drawn = self.mask_head(features, proposals[row, place], row, 1 / self.finest)
            truth = mask_targets(more, proposals[row, place], row, mine)
            chosen = drawn[torch.arange(len(row), device=x.device), labels[row, mine]]
            losses["masks"] = F.binary_cross_entropy_with_logits(chosen, truth)
        return losses
