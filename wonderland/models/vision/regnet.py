"""RegNet: the widths of all blocks follow a line, quantised to a few stages."""

import math
from typing import Any

from torch import Tensor

from wonderland.core import WonderlandError, part, published
from wonderland.models.vision.anynet import any_stages
from wonderland.models.vision.image_model import ImageModel, Numbers, kaiming, linear_head
from wonderland.nn.vision.conv_norm import ConvNorm


@part
class RegNet(ImageModel):
    r"""An AnyNet whose widths come from four numbers.

    .. math:: u_j = w_0 + w_a j, \qquad s_j = \mathrm{round}\left(\log_{w_m} \frac{u_j}{w_0}\right), \qquad
        w_j = 8\, \mathrm{round}(w_0 w_m^{s_j} / 8)

    `depth` is the number of blocks, `initial`, `slope` and `factor` are w_0, w_a and w_m; blocks of equal width form a stage.
    `squeeze` 0.25 makes it a RegNetY. Shapes: x (b, channels, h, w) -> (b, classes).
    Book: D2L 8.8. Paper: Radosavovic et al., 2020.

    >>> import torch
    >>> RegNet.x_400mf(classes=10)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depth: int = 22, initial: int = 24, slope: float | int = 24.48,
        factor: float | int = 2.54, group_width: int = 16, squeeze: float | int | None = None, dim: int = 32,
        mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        depths, dims = regular_stages(depth, initial, slope, factor, group_width)
        self.stem = ConvNorm(channels, dim, 3, stride=2)
        self.stages = any_stages(dim, depths, dims, [group_width], [1], squeeze)
        self.head = linear_head(dims[-1], classes)
        kaiming(self)

    @classmethod
    @published
    def x_400mf(cls, **more: Any):
        """0.4 GFLOP, 5,495,976 parameters."""
        return cls(**{"depth": 22, "initial": 24, "slope": 24.48, "factor": 2.54, "group_width": 16, **more})

    @classmethod
    @published
    def x_800mf(cls, **more: Any):
        """0.8 GFLOP, 7,259,656 parameters."""
        return cls(**{"depth": 16, "initial": 56, "slope": 35.73, "factor": 2.28, "group_width": 16, **more})

    @classmethod
    @published
    def x_3200mf(cls, **more: Any):
        """3.2 GFLOP, 15,296,552 parameters."""
        return cls(**{"depth": 25, "initial": 88, "slope": 26.31, "factor": 2.25, "group_width": 48, **more})

    @classmethod
    @published
    def y_400mf(cls, **more: Any):
        """0.4 GFLOP with squeeze and excitation, 4,344,144 parameters."""
        form = {"depth": 16, "initial": 48, "slope": 27.89, "factor": 2.09, "group_width": 8, "squeeze": 0.25}
        return cls(**{**form, **more})

    @classmethod
    @published
    def y_800mf(cls, **more: Any):
        """0.8 GFLOP with squeeze and excitation, 6,432,512 parameters."""
        form = {"depth": 14, "initial": 56, "slope": 38.84, "factor": 2.4, "group_width": 16, "squeeze": 0.25}
        return cls(**{**form, **more})

    @classmethod
    @published
    def y_3200mf(cls, **more: Any):
        """3.2 GFLOP with squeeze and excitation, 19,436,338 parameters."""
        form = {"depth": 21, "initial": 80, "slope": 42.63, "factor": 2.66, "group_width": 24, "squeeze": 0.25}
        return cls(**{**form, **more})

    def maps(self, x: Tensor) -> Tensor:
        return self.stages(self.stem(self.read(x)))


def regular_stages(
    depth: int, initial: int, slope: float, factor: float, group_width: int
) -> tuple[list[int], list[int]]:
    """Depths and widths of the stages; widths are rounded to whole groups.

    >>> regular_stages(22, 24, 24.48, 2.54, 16)
    ([1, 2, 7, 12], [32, 64, 160, 400])
    """
    if not 1 <= depth <= 1000 or initial < 8 or slope < 0 or factor <= 1 or group_width < 1:
        raise WonderlandError(
            f"RegNet cannot be built with depth={depth}, initial={initial}, slope={slope}, factor={factor}, "
            f"group_width={group_width}: depth is 1 to 1000, initial at least 8, slope at least 0, factor above 1."
        )
    powers = [round(math.log((initial + slope * block) / initial) / math.log(factor)) for block in range(depth)]
    widths = [8 * round(initial * factor**power / 8) for power in powers]
    dims = sorted(set(widths))
    depths = [widths.count(width) for width in dims]
    groups = [min(group_width, width) for width in dims]
    return depths, [_whole(width, group) for width, group in zip(dims, groups, strict=True)]


def _whole(width: int, group: int) -> int:
    """The nearest multiple of a group, not more than a tenth narrower."""
    rounded = max(group, int(width + group / 2) // group * group)
    return rounded if rounded >= 0.9 * width else rounded + group
