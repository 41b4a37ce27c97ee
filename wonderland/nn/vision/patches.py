"""Patches: an image cut into squares, each a token. A strided convolution does both steps at once."""

from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.arguments import Checked, at_least_one


@part
class Patches(Checked, nn.Module):
    r"""Squares of `patch` x `patch` pixels, flattened and projected to `dim` features, row after row.

    .. math:: z_i = W\, \mathrm{vec}(\text{patch}_i) + b

    Pixels at the right and lower border that fill no patch are left out. Shapes: x (b, channels, h, w) -> (b, t, dim),
    t = floor(h / patch) floor(w / patch). Book: Alice 11.3; D2L 11.8. Paper: Dosovitskiy et al., 2021.

    >>> import torch
    >>> Patches(3, 8, patch=4)(torch.zeros(2, 3, 8, 12)).shape
    torch.Size([2, 6, 8])
    """

    def __init__(self, channels: int, dim: int, *, patch: int = 16):
        super().__init__()
        at_least_one("Patches", channels=channels, dim=dim, patch=patch)
        self.patch = patch
        self.project = nn.Conv2d(channels, dim, patch, stride=patch)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """How many patches fit below and beside each other."""
        rows, columns = height // self.patch, width // self.patch
        if not rows or not columns:
            raise WonderlandError(
                f"An image of {height} x {width} pixels holds no patch of {self.patch} x {self.patch}: take smaller patches."
            )
        return rows, columns

    def forward(self, x: Tensor) -> Tensor:
        self.grid(*x.shape[2:])
        return self.project(x).flatten(2).transpose(1, 2)
