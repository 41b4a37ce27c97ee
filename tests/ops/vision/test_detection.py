"""Boxes, suppression, RoI align, losses and average precision, against plain loops and pycocotools."""

import contextlib
import io
import sys
import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.ops.vision import (
    anchors,
    area,
    as_centres,
    as_corners,
    assign,
    average_precision,
    batched_nms,
    decode,
    dice_loss,
    distance_iou,
    encode,
    focal_loss,
    generalised_iou,
    iou,
    match,
    mean_iou,
    nms,
    precision_at_recalls,
    roi_align,
    soft_nms,
)


def random_boxes(count: int, seed: int, *, canvas: float = 100.0, largest: float = 30.0):
    draw = torch.Generator().manual_seed(seed)
    corner = torch.rand(count, 2, generator=draw) * canvas
    size = torch.rand(count, 2, generator=draw) * largest + 1
    return torch.cat([corner, corner + size], 1), torch.rand(count, generator=draw)


def plain_nms(boxes, scores, threshold):
    left, kept = scores.argsort(descending=True, stable=True).tolist(), []
    while left:
        best = left.pop(0)
        kept.append(best)
        left = [
            other
            for other in left
            if iou(boxes[best : best + 1].double(), boxes[other : other + 1].double()) <= threshold
        ]
    return kept


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("count", "largest"), [(0, 1.0), (1, 5.0), (60, 60.0), (200, 20.0)])
def test_suppression_is_that_of_a_plain_loop(count, largest, seed):
    boxes, scores = random_boxes(count, seed, largest=largest)
    assert nms(boxes, scores, 0.3).tolist() == plain_nms(boxes, scores, 0.3)


def test_suppression_block_by_block(monkeypatch):

    owner = sys.modules["wonderland.ops.vision.nms"]
    monkeypatch.setattr(owner, "PAIRS", 50)
    monkeypatch.setattr(owner, "BLOCK", 7)
    boxes, scores = random_boxes(80, 3, largest=50.0)
    assert owner.nms(boxes, scores, 0.4).tolist() == plain_nms(boxes, scores, 0.4)


def test_equal_boxes_and_equal_scores():
    boxes, scores = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).repeat(5000, 1), torch.ones(5000)
    assert nms(boxes, scores).tolist() == [0]
    assert nms(boxes[:3], torch.tensor([float("nan"), 0.5, 0.6])).tolist() == [2]


def test_ten_thousand_boxes_take_under_fifty_milliseconds():
    boxes, scores = random_boxes(10_000, 0, canvas=2000.0, largest=20.0)
    nms(boxes, scores)
    times = []
    for _ in range(5):
        start = time.process_time()
        nms(boxes, scores)
        times.append(time.process_time() - start)
    assert min(times) < 0.05


def test_groups_do_not_suppress_each_other():
    boxes, scores = random_boxes(100, 1, largest=60.0)
    groups = torch.arange(100) % 3
    alone = [
        row
        for group in range(3)
        for row in np.flatnonzero(groups == group)[nms(boxes[groups == group], scores[groups == group], 0.3)]
    ]
    assert sorted(batched_nms(boxes, scores, groups, 0.3).tolist()) == sorted(alone)


def test_soft_suppression_lowers_scores_by_overlap():
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.0], [9.0, 9.0, 10.0, 10.0]])
    rows, scores = soft_nms(boxes, torch.tensor([0.9, 0.8, 0.7]), sigma=0.5)
    assert rows.tolist() == [0, 2, 1]
    assert scores[2].item() == pytest.approx(0.8 * np.exp(-0.25 / 0.5), abs=1e-6)


def test_the_anchors_and_overlaps_of_d2l():
    # D2L 14.4: five boxes around each pixel of a 561 x 728 image.
    boxes = anchors(561, 728, sizes=[0.75, 0.5, 0.25], ratios=[1, 2, 0.5], height=1.0, width=728 / 561)
    assert boxes.shape == (2_042_040, 4)
    truth = torch.tensor([[0.1, 0.08, 0.52, 0.92], [0.55, 0.2, 0.9, 0.88]])
    guess = torch.tensor(
        [
            [0, 0.1, 0.2, 0.3],
            [0.15, 0.2, 0.4, 0.4],
            [0.63, 0.05, 0.88, 0.98],
            [0.66, 0.45, 0.8, 0.8],
            [0.57, 0.3, 0.92, 0.9],
        ]
    )
    assert assign(guess, truth).tolist() == [-1, 0, 1, -1, 1]


def test_overlap_family():
    a, b = random_boxes(20, 0)[0], random_boxes(30, 1)[0]
    inside, general, far = iou(a, b), generalised_iou(a, b), distance_iou(a, b)
    assert ((general <= inside + 1e-6) & (general > -1)).all()
    assert ((far <= inside + 1e-6) & (far > -1)).all()
    assert torch.allclose(iou(a, a).diagonal(), torch.ones(20))
    assert torch.allclose(generalised_iou(a, a).diagonal(), torch.ones(20), atol=1e-6)
    assert torch.allclose(as_corners(as_centres(a)), a, atol=1e-5)
    assert area(torch.tensor([[3.0, 3.0, 1.0, 4.0]])).item() == 0


def test_offsets_there_and_back():
    a, b = random_boxes(40, 0)[0], random_boxes(40, 1)[0]
    assert torch.allclose(decode(encode(a, b), b), a, atol=1e-3)


def test_roi_align_of_a_plane_is_its_value_at_the_centre_of_each_cell():
    y, x = torch.meshgrid(torch.arange(12.0), torch.arange(16.0), indexing="ij")
    maps = torch.stack([x, y])[None].repeat(2, 1, 1, 1) + torch.tensor([0.0, 100.0]).view(2, 1, 1, 1)
    boxes = torch.tensor([[2.0, 3.0, 8.0, 9.0], [1.0, 1.0, 5.0, 9.0]], requires_grad=True)
    found = roi_align(maps, boxes, torch.tensor([0, 1]), 3)
    centres = torch.tensor([3.0, 5.0, 7.0]) - 0.5
    assert torch.allclose(found[0, 0], centres.expand(3, 3), atol=1e-5)
    assert torch.allclose(found[0, 1], (centres + 1).view(3, 1).expand(3, 3), atol=1e-5)
    assert found[1].mean() > 100
    found.sum().backward()
    assert boxes.grad is not None


def test_focal_and_dice():
    scores, target = torch.randn(50), (torch.rand(50) > 0.5).float()
    plain = F.binary_cross_entropy_with_logits(scores, target, reduction="none")
    assert torch.allclose(focal_loss(scores, target, gamma=0.0, alpha=None), plain)
    sure = focal_loss(torch.tensor([6.0]), torch.ones(1), alpha=None)
    assert sure.item() < 1e-4 * F.binary_cross_entropy_with_logits(torch.tensor([6.0]), torch.ones(1)).item()
    mask = torch.zeros(1, 1, 4, 4)
    mask[..., :2] = 1
    assert dice_loss(mask, 1 - mask).item() == pytest.approx(1 - 1 / 17)


def test_mean_iou_ignores_and_leaves_out_absent_classes():
    truth, found = torch.tensor([[[0, 0, 1, 255]]]), torch.tensor([[[0, 1, 1, 2]]])
    result = mean_iou(found, truth, 3)
    assert result["by_class"][:2] == [0.5, 0.5]
    assert result["mean"] == 0.5
    assert result["accuracy"] == pytest.approx(2 / 3)


def scene(seed: int):
    """Images with true boxes, and guesses near some of them."""
    found, truth = [], []
    for image in range(12):
        draw = torch.Generator().manual_seed(100 * seed + image)
        boxes, _ = random_boxes(int(torch.randint(0, 9, (1,), generator=draw)), 100 * seed + image, canvas=80.0)
        labels = torch.randint(0, 3, (len(boxes),), generator=draw)
        truth.append({"boxes": boxes, "classes": labels})
        noisy = boxes + torch.randn(boxes.shape, generator=draw) * 2.0
        extra, _ = random_boxes(4, 7000 + image, canvas=80.0)
        both = torch.cat([noisy, extra])
        both[:, 2:] = torch.maximum(both[:, 2:], both[:, :2] + 1)
        classes = torch.cat([labels, torch.randint(0, 3, (4,), generator=draw)])
        scores = (torch.rand(len(both), generator=draw) * 10).round() / 10  # with equal scores among them
        found.append({"boxes": both, "classes": classes, "scores": scores})
    return found, truth


@pytest.mark.parametrize("seed", range(4))
def test_average_precision_is_that_of_pycocotools(seed):
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    found, truth = scene(seed)

    def wide(box):
        left, top, right, bottom = box.double().tolist()
        return [left, top, right - left, bottom - top]

    marks = [
        {"image_id": i + 1, "category_id": int(c) + 1, "bbox": wide(b), "area": wide(b)[2] * wide(b)[3], "iscrowd": 0}
        for i, row in enumerate(truth)
        for b, c in zip(row["boxes"], row["classes"], strict=True)
    ]
    guesses = [
        {"image_id": i + 1, "category_id": int(c) + 1, "bbox": wide(b), "score": float(s)}
        for i, row in enumerate(found)
        for b, c, s in zip(row["boxes"], row["classes"], row["scores"], strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        theirs = coco.COCO()
        theirs.dataset = {
            "info": {},
            "images": [{"id": i + 1} for i in range(len(truth))],
            "annotations": [{**mark, "id": number + 1} for number, mark in enumerate(marks)],
            "categories": [{"id": c + 1, "name": str(c)} for c in range(3)],
        }
        theirs.createIndex()
        run = evaluation.COCOeval(theirs, theirs.loadRes(guesses), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    ours = average_precision(found, truth)
    assert ours["ap"] == pytest.approx(run.stats[0], abs=1e-9)
    assert ours["ap50"] == pytest.approx(run.stats[1], abs=1e-9)
    assert ours["ap75"] == pytest.approx(run.stats[2], abs=1e-9)


def test_refusals():
    sentence = r"^Suppression takes boxes \(n, 4\) and a score for each, not \(3, 4\) and \(2,\)\.$"
    with pytest.raises(WonderlandError, match=sentence):
        nms(torch.zeros(3, 4), torch.zeros(2))


def test_matching_equals_taking_the_best_pair_again_and_again():
    """All images at once, with padding, against a plain loop over the pairs of each image."""
    draw = torch.Generator().manual_seed(0)
    around = torch.rand(40, 4, generator=draw, dtype=torch.float64).sort(1).values[:, [0, 1, 2, 3]] * 10
    boxes = torch.rand(3, 7, 4, generator=draw, dtype=torch.float64).sort(2).values * 10
    boxes[0, 1] = boxes[0, 0]  # two equal boxes want the same anchors
    real = torch.rand(3, 7, generator=draw) < 0.8
    found = match(around, boxes, real, positive=0.5, negative=0.3)
    for row in range(3):
        overlap = iou(around, boxes[row]).masked_fill(~real[row], -1.0)
        best, index = overlap.max(1)
        wanted = torch.where(best >= 0.5, index, torch.where(best >= 0.3, -2, -1))
        for _ in range(int(real[row].sum())):
            anchor, box = divmod(int(overlap.argmax()), 7)
            wanted[anchor] = box
            overlap[anchor], overlap[:, box] = -1.0, -1.0
        assert found[row].tolist() == wanted.tolist()


def test_precision_at_recalls_has_the_mean_that_average_precision_has():
    draw = torch.Generator().manual_seed(1)
    truth = [
        {"boxes": torch.rand(3, 4, generator=draw).sort(1).values * 9, "classes": torch.tensor([0, 1, 0])}
        for _ in range(4)
    ]
    found = [{**row, "boxes": row["boxes"] + 0.2, "scores": torch.rand(3, generator=draw)} for row in truth]
    told = average_precision(found, truth, thresholds=[0.5])
    assert precision_at_recalls(found, truth, 0).mean() == pytest.approx(told["by_class"][0], abs=1e-12)
