r"""Boxes: rectangles as (left, top, right, bottom), how far two agree, anchors, and boxes as offsets from anchors.

Shapes: boxes (n, 4). Coordinates grow to the right and downwards. Book: D2L 14.3 to 14.5.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

VARIANCES = (0.1, 0.1, 0.2, 0.2)


def as_centres(boxes: Tensor) -> Tensor:
    """Corners to (centre x, centre y, width, height).

    >>> as_centres(torch.tensor([[0.0, 0.0, 2.0, 4.0]])).tolist()
    [[1.0, 2.0, 2.0, 4.0]]
    """
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(low + high) / 2, high - low], -1)


def as_corners(boxes: Tensor) -> Tensor:
    """(centre x, centre y, width, height) to corners.

    >>> as_corners(torch.tensor([[1.0, 2.0, 2.0, 4.0]])).tolist()
    [[0.0, 0.0, 2.0, 4.0]]
    """
    centre, size = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centre - size / 2, centre + size / 2], -1)


def area(boxes: Tensor) -> Tensor:
    """Width times height, 0 for boxes that are turned inside out.

    >>> area(torch.tensor([[0.0, 0.0, 2.0, 3.0], [2.0, 0.0, 1.0, 1.0]])).tolist()
    [6.0, 0.0]
    """
    return (boxes[..., 2:] - boxes[..., :2]).clamp_min(0).prod(-1)


def iou(a: Tensor, b: Tensor) -> Tensor:
    r"""The area that two boxes share over the area of both together, for all pairs.

    .. math:: J(A, B) = \frac{|A \cap B|}{|A \cup B|}

    Two empty boxes have 0. Shapes: (..., n, 4), (..., m, 4) -> (..., n, m).

    >>> iou(torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([[1.0, 0.0, 3.0, 2.0]]))
    tensor([[0.3333]])
    """
    return _parts(a, b)[0]


def generalised_iou(a: Tensor, b: Tensor) -> Tensor:
    r"""IoU less the empty share of the smallest box around both, in (-1, 1]: it has a gradient where boxes do not touch.

    .. math:: \mathrm{GIoU} = J(A, B) - \frac{|C| - |A \cup B|}{|C|}

    Shapes: (n, 4), (m, 4) -> (n, m). Paper: Rezatofighi et al., 2019.

    >>> generalised_iou(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.tensor([[2.0, 0.0, 3.0, 1.0]]))
    tensor([[-0.3333]])
    """
    ratio, union = _parts(a, b)
    around = area(_around(a, b))
    return ratio - (around - union) / around.clamp_min(torch.finfo(around.dtype).tiny)


def distance_iou(a: Tensor, b: Tensor) -> Tensor:
    r"""IoU less the squared distance of the centres over the squared diagonal of the box around both.

    Shapes: (n, 4), (m, 4) -> (n, m). Paper: Zheng et al., 2020.

    >>> distance_iou(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.tensor([[2.0, 0.0, 3.0, 1.0]]))
    tensor([[-0.4000]])
    """
    box = _around(a, b)
    diagonal = (box[..., 2:] - box[..., :2]).square().sum(-1)
    apart = (as_centres(a)[:, None, :2] - as_centres(b)[None, :, :2]).square().sum(-1)
    return iou(a, b) - apart / diagonal.clamp_min(torch.finfo(diagonal.dtype).tiny)


def anchors(
    rows: int, columns: int, *, sizes: Sequence[float], ratios: Sequence[float], height: float = 1.0, width: float = 1.0
) -> Tensor:
    r"""Boxes around the centre of each cell of a grid: each size with the first ratio, and the first size with each other ratio.

    A box of size s and ratio r is :math:`s \sqrt{r}` wide and :math:`s / \sqrt{r}` tall, both as parts of the height of the
    image. Shapes: -> (rows * columns * (len(sizes) + len(ratios) - 1), 4). Book: D2L 14.4.

    >>> anchors(1, 1, sizes=[0.5], ratios=[1.0]).tolist()
    [[0.25, 0.25, 0.75, 0.75]]
    """
    pairs = [(size, ratios[0]) for size in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
    wide = torch.tensor([size * math.sqrt(ratio) for size, ratio in pairs]) * height
    tall = torch.tensor([size / math.sqrt(ratio) for size, ratio in pairs]) * height
    ys = (torch.arange(rows) + 0.5) / rows * height
    xs = (torch.arange(columns) + 0.5) / columns * width
    y, x = torch.meshgrid(ys, xs, indexing="ij")
    centres = torch.stack([x, y], -1).reshape(-1, 1, 2).expand(-1, len(pairs), -1)
    return as_corners(torch.cat([centres, torch.stack([wide, tall], -1).expand(len(centres), -1, -1)], -1)).flatten(
        0, 1
    )


def encode(boxes: Tensor, around: Tensor, *, variances: Sequence[float] = VARIANCES) -> Tensor:
    r"""Boxes as offsets from their anchors: shifts in units of the anchor, logarithms of sizes, each over its spread.

    .. math:: \left( \frac{x - x_a}{w_a \sigma_x},\; \frac{y - y_a}{h_a \sigma_y},\; \frac{\log (w / w_a)}{\sigma_w},\;
        \frac{\log (h / h_a)}{\sigma_h} \right)

    Shapes: (n, 4), (n, 4) -> (n, 4). `decode` undoes it.

    >>> box = torch.tensor([[0.0, 0.0, 2.0, 4.0]])
    >>> encode(box, box).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    """
    given, anchor = as_centres(boxes), as_centres(around)
    shift = (given[..., :2] - anchor[..., :2]) / anchor[..., 2:]
    grow = (given[..., 2:].clamp_min(1e-12) / anchor[..., 2:]).log()
    return torch.cat([shift, grow], -1) / boxes.new_tensor(variances)


def decode(offsets: Tensor, around: Tensor, *, variances: Sequence[float] = VARIANCES) -> Tensor:
    """Offsets from anchors as boxes: what `encode` undoes.

    >>> decode(torch.zeros(1, 4), torch.tensor([[0.0, 0.0, 2.0, 4.0]])).tolist()
    [[0.0, 0.0, 2.0, 4.0]]
    """
    offsets, anchor = offsets * offsets.new_tensor(variances), as_centres(around)
    centre = offsets[..., :2] * anchor[..., 2:] + anchor[..., :2]
    size = offsets[..., 2:].clamp_max(20.0).exp() * anchor[..., 2:]
    return as_corners(torch.cat([centre, size], -1))


def assign(around: Tensor, boxes: Tensor, *, threshold: float = 0.5) -> Tensor:
    """For each anchor the number of its box, -1 for none: the best box above the threshold, and for each box its best anchor.

    Shapes: (n, 4), (m, 4) -> (n,). Book: D2L 14.4.

    >>> assign(torch.tensor([[0.0, 0.0, 1.0, 1.0], [5.0, 5.0, 6.0, 6.0]]), torch.tensor([[0.0, 0.0, 1.0, 2.0]])).tolist()
    [0, -1]
    """
    real = torch.ones(1, len(boxes), dtype=torch.bool, device=boxes.device)
    return match(around, boxes[None], real, positive=threshold, negative=threshold)[0]


def match(
    around: Tensor, boxes: Tensor, real: Tensor, *, positive: float = 0.5, negative: float = 0.4, force: bool = True
) -> Tensor:
    """For each anchor of each image the number of its box, -1 for background, -2 where it is neither and does not count.

    An anchor belongs to the box that it overlaps most, if their IoU is at least `positive`; it is background if no IoU is as
    large as `negative`. With `force`, each box also gets the anchor that it overlaps most, the best pairs first.
    `real` (b, m) marks the boxes that are not padding. All boxes of all images are matched at once.

    Shapes: around (n, 4) or (b, n, 4), boxes (b, m, 4) -> (b, n). Book: D2L 14.4. Paper: Ren et al., 2015.

    >>> around = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.45], [5.0, 5.0, 6.0, 6.0]])
    >>> match(around, torch.tensor([[[0.0, 0.0, 1.0, 1.0]]]), torch.tensor([[True]])).tolist()
    [[0, -2, -1]]
    """
    batch, count = boxes.shape[:2]
    anchors_count = around.shape[-2]
    if not count or not anchors_count:
        return torch.full((batch, anchors_count), -1, dtype=torch.int64, device=boxes.device)
    overlap = iou(around.to(boxes), boxes).masked_fill(~real[:, None], -1.0)
    best, index = overlap.max(2)
    matched = torch.where(best >= positive, index, torch.where(best >= negative, -2, -1))
    if force:
        row, anchor, box = _best_pairs(overlap, real)
        matched[row, anchor] = box
    return matched


def _best_pairs(overlap: Tensor, real: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs (image, anchor, box), each box with one anchor: those that taking the best pair that is left again and again gives.

    All boxes propose to their best anchor at once and every anchor keeps its best proposal; the others try their next one.
    As both sides rank pairs by the same number, this ends in the same pairs, after a few rounds.
    """
    batch, anchors_count, count = overlap.shape
    left = overlap.clone()
    order = torch.arange(count, device=overlap.device).expand(batch, -1)
    # Of more boxes than anchors, some find every anchor taken by a better one.
    for _ in range(min(count, anchors_count) * count + 1):
        value, choice = left.max(1)
        active = real & (value >= 0)
        offered = torch.where(active, value, -1.0)
        best = torch.full((batch, anchors_count), -1.0, dtype=overlap.dtype, device=overlap.device)
        best = best.scatter_reduce(1, choice, offered, "amax")
        wins = active & (offered == best.gather(1, choice))
        first = torch.full((batch, anchors_count), count, device=overlap.device)
        first = first.scatter_reduce(1, choice, torch.where(wins, order, count), "amin")
        kept = wins & (order == first.gather(1, choice))
        lost = active & ~kept
        if not lost.any():
            row, box = kept.nonzero(as_tuple=True)
            return row, choice[row, box], box
        row, box = lost.nonzero(as_tuple=True)
        left[row, choice[row, box], box] = -1.0
    raise AssertionError("every round rejects a pair, and there are no more pairs")


def _parts(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    low = torch.maximum(a[..., :, None, :2], b[..., None, :, :2])
    high = torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    shared = (high - low).clamp_min(0).prod(-1)
    union = area(a)[..., :, None] + area(b)[..., None, :] - shared
    return shared / union.clamp_min(torch.finfo(union.dtype).tiny), union


def _around(a: Tensor, b: Tensor) -> Tensor:
    low = torch.minimum(a[:, None, :2], b[None, :, :2])
    return torch.cat([low, torch.maximum(a[:, None, 2:], b[None, :, 2:])], -1)
