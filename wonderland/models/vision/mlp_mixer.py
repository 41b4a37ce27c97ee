"""MLP-Mixer: patches as tokens, mixed by MLPs alone."""

from typing import Any

from torch import Tensor

from wonderland.core import WonderlandError, part, published
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.token_mlp import TokenMLP
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.vision.patches import Patches


@part
class MLPMixer(ImageModel):
    """Blocks of an MLP across patches and an MLP across features, then the mean over patches and one linear layer.

    `token_hidden` and `hidden` are the widths of the two MLPs, half and four times `dim` unless given. The number of patches
    is fixed by `height` and `width`. Shapes: x (b, channels, height, width) -> (b, classes).
    Book: Alice 11.3. Paper: Tolstikhin et al., 2021.

    >>> import torch
    >>> MLPMixer(10, height=32, width=32, patch=8, dim=16, depth=2)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, classes: int = 1000, channels: int = 3, height: int = 224, width: int = 224, *, patch: int = 16,
        dim: int = 768, depth: int = 12, token_hidden: int | None = None, hidden: int | None = None,
        drop_path: float | int = 0.0, mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        self.patches = Patches(channels, dim, patch=patch)
        self.grid = self.patches.grid(height, width)
        norm = LayerNorm.spec(eps=1e-6)
        mixer = TokenMLP.spec(length=self.grid[0] * self.grid[1], hidden=token_hidden or max(1, dim // 2))
        block = Block.spec(
            mixer=mixer, channel=MLP.spec(hidden=hidden or 4 * dim, bias=True), norm=norm, drop_path=drop_path
        )
        self.stack = Stack(dim, depth, block, norm=norm)
        self.head = linear_head(dim, classes)

    @classmethod
    @published
    def small(cls, **more: Any):
        """Mixer-S/16, 18,528,264 parameters."""
        return cls(**{"dim": 512, "depth": 8, **more})

    @classmethod
    @published
    def base(cls, **more: Any):
        """Mixer-B/16, 59,880,472 parameters."""
        return cls(**{"dim": 768, "depth": 12, **more})

    @classmethod
    @published
    def large(cls, **more: Any):
        """Mixer-L/16, 208,196,168 parameters."""
        return cls(**{"dim": 1024, "depth": 24, **more})

    def maps(self, x: Tensor) -> Tensor:
        x = self.read(x)
        grid = self.patches.grid(*x.shape[2:])
        if grid != self.grid:
            raise WonderlandError(
                f"This MLPMixer knows {self.grid[0]} x {self.grid[1]} patches by their place, and the image has "
                f"{grid[0]} x {grid[1]}: resize it."
            )
        return self.stack(self.patches(x)).transpose(1, 2).unflatten(2, grid)
