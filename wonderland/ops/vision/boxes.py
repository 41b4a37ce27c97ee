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

    Two empty boxes have 0. Shapes: (n, 4), (m, 4) -> (n, m).

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
    found = torch.full((len(around),), -1, dtype=torch.int64, device=around.device)
    if not len(boxes):
        return found
    overlap = iou(around, boxes)
    best, index = overlap.max(1)
    found = torch.where(best >= threshold, index, found)
    for _ in range(min(len(boxes), len(around))):  # one round for each box: the best pair that is left is made sure of
        place = int(overlap.argmax())
        row, column = divmod(place, overlap.shape[1])
        found[row] = column
        overlap[row], overlap[:, column] = -1.0, -1.0
    return found


def _parts(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = (high - low).clamp_min(0).prod(-1)
    union = area(a)[:, None] + area(b)[None] - shared
    return shared / union.clamp_min(torch.finfo(union.dtype).tiny), union


def _around(a: Tensor, b: Tensor) -> Tensor:
    low = torch.minimum(a[:, None, :2], b[None, :, :2])
    return torch.cat([low, torch.maximum(a[:, None, 2:], b[None, :, 2:])], -1)
