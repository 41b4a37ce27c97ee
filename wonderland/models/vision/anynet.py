"""AnyNet: a design space, stem, body and head, of which RegNet is what remains when bad designs are cut away."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming, linear_head
from wonderland.models.vision.resnet import check_stages
from wonderland.nn.vision.conv_norm import ConvNorm
from wonderland.nn.vision.residual_blocks import BottleneckBlock


@part
class AnyNet(ImageModel):
    """A 3 x 3 stem, stages of grouped bottlenecks that halve the map first, the mean over the map, one linear layer.

    `depths`, `dims`, `group_widths` and `bottlenecks` have one number for each stage: blocks, channels, channels in a
    group, and how many times narrower a block is inside; the last two may have one for all. `squeeze` is the width of a
    squeeze-and-excitation network as a part of a block's input (RegNetY), None for none. `dim` is the width of the stem.

    The default is RegNetX-32 of D2L, two stages with groups of 16. `space` says in which of the design spaces A to E it lies: E keeps all the rules, A none of them.

    Shapes: x (b, channels, h, w) -> (b, classes). Book: D2L 8.8. Paper: Radosavovic et al., 2020.

    >>> net = AnyNet(10, depths=[1, 2], dims=[8, 16], group_widths=[4], dim=8)
    >>> net(torch.zeros(2, 3, 32, 32)).shape, net.space
    (torch.Size([2, 10]), 'E')
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depths: Sequence[int] = (4, 6),
        dims: Sequence[int] = (32, 80), group_widths: Sequence[int] = (16,), bottlenecks: Sequence[int] = (1,), squeeze: float | int | None = None, dim: int = 32, mean: Numbers = None,
        std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        check_stages("AnyNet", depths, dims)
        self.stem = ConvNorm(channels, dim, 3, stride=2)
        self.stages = any_stages(dim, depths, dims, group_widths, bottlenecks, squeeze)
        self.head = linear_head(dims[-1], classes)
        self.space = design_space(depths, dims, group_widths, bottlenecks)
        kaiming(self)

    def maps(self, x: Tensor) -> Tensor:
        return self.stages(self.stem(self.read(x)))


def any_stages(
    dim: int, depths: Sequence[int], dims: Sequence[int], group_widths: Sequence[int], bottlenecks: Sequence[int],
    squeeze: float | None = None,
) -> nn.Sequential:  # fmt: skip
    """The body: each stage begins with a block that halves the map."""
    stages = []
    for index, (depth, out) in enumerate(zip(depths, dims, strict=True)):
        narrow = _of(bottlenecks, index, len(dims), "bottlenecks")
        width = max(1, out // narrow)
        group = min(_of(group_widths, index, len(dims), "group_widths"), width)
        if width % group:
            raise WonderlandError(
                f"Stage {index + 1} has {width} channels inside its blocks, which groups of {group} do not divide."
            )
        blocks = []
        for place in range(depth):
            gate = None if squeeze is None else max(1, round(squeeze * dim))
            stride = 2 if place == 0 else 1
            blocks.append(
                BottleneckBlock(
                    dim, out, width=width, stride=stride, groups=width // group, squeeze=gate, squeeze_after=2
                )
            )
            dim = out
        stages.append(nn.Sequential(*blocks))
    return nn.Sequential(*stages)


def design_space(
    depths: Sequence[int], dims: Sequence[int], group_widths: Sequence[int], bottlenecks: Sequence[int]
) -> str:
    """The strictest space that a design lies in: B shares the bottleneck ratio, C the group width too, D widens with each
    stage, E deepens too (but for the last stage); A is everything.

    >>> design_space([1, 2], [8, 8], [4], [1]), design_space([1, 2], [8, 16], [4, 8], [1])
    ('E', 'B')
    """
    rules = [
        len(set(bottlenecks)) == 1,
        len(set(group_widths)) == 1,
        all(before <= after for before, after in pairwise(dims)),
        all(before <= after for before, after in pairwise(depths[:-1])),
    ]
    return "ABCDE"[next((index for index, kept in enumerate(rules) if not kept), len(rules))]


def spread(errors: Tensor, thresholds: Tensor) -> Tensor:
    """The empirical distribution of errors: the share of networks of a space whose error is at most each threshold.

    .. math:: F(e) = \\frac{1}{n} \\sum_i \\mathbf{1}[e_i \\le e]

    A space whose curve lies above another's has more good networks. Shapes: (n,), (k,) -> (k,). Book: D2L 8.8.2.

    >>> spread(torch.tensor([0.1, 0.3, 0.2]), torch.tensor([0.05, 0.2, 1.0]))
    tensor([0.0000, 0.6667, 1.0000])
    """
    return torch.searchsorted(errors.sort().values, thresholds, right=True) / len(errors)


def _of(values: Sequence[int], index: int, count: int, name: str) -> int:
    if len(values) not in (1, count) or min(values) < 1:
        raise WonderlandError(
            f"AnyNet's {name} are one number from 1, or one for each of the {count} stages, not {values}."
        )
    return values[0] if len(values) == 1 else values[index]
