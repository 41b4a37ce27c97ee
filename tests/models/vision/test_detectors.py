"""Detectors: they find what they were shown, are trained from padded boxes, and are those of the papers in shape."""

import numpy as np
import pytest
import torch

from tests.kinds.image.scenes import scenes
from wonderland import models
from wonderland.core import WonderlandError
from wonderland.data.moving import in_pixels
from wonderland.models.vision.mask_head import mask_targets
from wonderland.ops.vision import iou, match

ANCHORS = {"finest": 4, "levels": 2, "anchor_size": 8.0, "anchor_ratios": [1.0, 2.2]}


def batch(count=8):
    pictures, boxes, _ = zip(*scenes(count), strict=True)
    table = torch.tensor(np.array(boxes))
    padding = torch.zeros(count, 1, 4), torch.full((count, 1), -1)
    x = torch.from_numpy(np.stack(pictures))[:, None]
    return x, torch.cat([table[:, :, :4].float(), padding[0]], 1), torch.cat([table[:, :, 4], padding[1]], 1)


@pytest.mark.parametrize("name", ["RetinaNet", "TinySSD", "FasterRCNN"])
def test_detectors_find_what_they_were_shown(name):
    torch.manual_seed(0)
    x, boxes, labels = batch(4)
    known = {**ANCHORS, "dim": 8, "mean": [0.3], "std": [0.25]}
    net = {
        "RetinaNet": lambda: models.RetinaNet(2, 1, **known),
        "TinySSD": lambda: models.TinySSD(2, 1, **known),
        "FasterRCNN": lambda: models.FasterRCNN(2, 1, width=48, proposals=8, **known),
    }[name]()
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    for _ in range(50):
        optimizer.zero_grad()
        sum(net.losses(x, boxes, labels).values()).backward()
        optimizer.step()
    found = net.detect(x, least=0.3)
    right = 0
    for row, box, label in zip(found, boxes, labels, strict=True):
        overlap = iou(box[:2], row["boxes"]) * (label[:2, None] == row["classes"])
        right += int((overlap.amax(1) > 0.5).sum()) if len(row["boxes"]) else 0
    assert right >= 6


def test_padding_and_batch_mates_change_no_box():
    torch.manual_seed(0)
    x, boxes, labels = batch(3)
    net = models.RetinaNet(2, 1, dim=8, **ANCHORS).eval()
    together = net.detect(x.float(), least=0.0, most=5)
    alone = net.detect(x[1:2].float(), least=0.0, most=5)[0]
    torch.testing.assert_close(together[1]["boxes"], alone["boxes"])
    with torch.no_grad():
        full = net.losses(x.float(), boxes, labels)
        cut = net.losses(x.float(), boxes[:, :2], labels[:, :2])
    assert full["boxes"] == cut["boxes"]


def test_the_network_of_the_book():
    net = models.TinySSD.d2l(classes=1)
    sides = [found.shape[2] for found in net.features_of(torch.zeros(1, 3, 256, 256))]
    assert sides == [32, 16, 8, 4, 1]
    with pytest.raises(WonderlandError, match="TinySSD begins at stride 4, 8, 16 or 32"):
        models.TinySSD(1, finest=7)
    with pytest.raises(WonderlandError, match="needs at least one class, not 0"):
        models.RetinaNet(0)


def test_an_image_without_boxes_teaches_background():
    torch.manual_seed(0)
    for name in ("RetinaNet", "TinySSD", "FasterRCNN"):
        net = getattr(models, name)(2, 1, dim=8, **ANCHORS)
        losses = net.losses(torch.zeros(2, 1, 32, 32), torch.zeros(2, 0, 4), torch.zeros(2, 0, dtype=torch.int64))
        assert all(torch.isfinite(loss) for loss in losses.values())
        sum(losses.values()).backward()


def test_masks_follow_their_boxes():
    torch.manual_seed(0)
    x, boxes, labels = batch(2)
    net = models.FasterRCNN(2, 1, dim=8, masks=True, proposals=4, **ANCHORS)
    outlines = torch.zeros(2, 3, 28, 28, dtype=torch.uint8)
    outlines[:, :, :, :14] = 1  # the left half of every object
    more = {"outlines": outlines, "origins": boxes, "places": torch.eye(2, 3).expand(2, -1, -1)}
    assert "masks" in net.losses(x.float(), boxes, labels, **more)
    found = net.eval().detect(x.float(), least=0.0, most=3)
    assert found[0]["masks"].shape == (3, 28, 28)
    mirror = in_pixels(np.array([[[-1.0], [0], [0]], [[0], [1.0], [0]]]), 32, 32).float()
    here, first = boxes[0, :1], torch.tensor([0])
    assert mask_targets(more, here, first, first)[0, :, :14].all()
    left, top, right, bottom = here[0].tolist()
    flipped = torch.tensor([[32 - right, top, 32 - left, bottom]])
    turned = mask_targets(more | {"places": mirror.expand(2, -1, -1)}, flipped, first, first)[0]
    assert turned[:, 14:].all()
    assert not turned[:, :14].any()


def test_matching_uses_no_more_than_the_boxes_that_are_real():
    around = torch.tensor([[0.0, 0.0, 4.0, 4.0], [4.0, 4.0, 8.0, 8.0]])
    boxes = torch.tensor([[[0.0, 0.0, 4.0, 4.0], [4.0, 4.0, 8.0, 8.0]]])
    assert match(around, boxes, torch.tensor([[True, False]])).tolist() == [[0, -1]]
    assert match(around, boxes[:, :0], torch.zeros(1, 0, dtype=torch.bool)).tolist() == [[-1, -1]]
