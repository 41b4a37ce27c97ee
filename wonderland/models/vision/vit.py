"""ViT: an image as a sequence of patches, and a transformer that reads it."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part, published
from wonderland.models.encoder_decoder import with_direction
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.blocks.tokens import ClassToken, Registers
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.vision.patches import Patches

POOLS = ("token", "mean", "both")


@part
class ViT(ImageModel):
    """Patches as tokens, learned positions, a stack of pre-norm blocks, a norm, one linear layer.

    `pool` says what the head reads: a class token ("token", as published), the mean of the patches ("mean", without a class
    token), or both side by side ("both", DINOv2). `registers` are trained tokens that the head does not read. `mixer` and `channel`
    are specs of the slots of a block: attention with `heads` heads and an MLP of four times the width unless given.
    `layer_scale` and `drop_path` are those of `nn.Block`. Images of another size than `height` x `width` are read with
    positions interpolated between those that were learned.

    Shapes: x (b, channels, h, w) -> (b, classes). Book: Alice 11.3; D2L 11.8. Papers: Dosovitskiy et al., 2021; Darcet et
    al., 2024 (registers).

    >>> ViT(10, height=32, width=32, patch=8, dim=16, depth=2, heads=2)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    takes_specs = True

    def __init__(
        self, classes: int = 1000, channels: int = 3, height: int = 224, width: int = 224, *, patch: int = 16,
        dim: int = 768, depth: int = 12, heads: int = 12, pool: str = "token", registers: int = 0, hidden: int | None = None,
        mixer: Spec | None = None, channel: Spec | None = None, layer_scale: float | int | None = None,
        dropout: float | int = 0.0, drop_path: float | int = 0.0, eps: float | int = 1e-6, mean: Numbers = None,
        std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        if pool not in POOLS:
            raise WonderlandError(f"ViT pools by {', '.join(map(repr, POOLS))}, not {pool!r}.")
        self.smallest, self.dim, self.pool = patch, dim, pool
        self.patches = Patches(channels, dim, patch=patch)
        self.grid = self.patches.grid(height, width)
        self.token = None if pool == "mean" else ClassToken(dim, position="first")
        self.registers = Registers(dim, count=registers) if registers else None
        # The class token has a position of its own, the first.
        self.positions = nn.Parameter(torch.empty(self.grid[0] * self.grid[1] + (pool != "mean"), dim))
        nn.init.normal_(self.positions, std=0.02)
        attention = (
            Attention.spec(heads=heads, causal=False, bias=True)
            if mixer is None
            else with_direction(mixer, causal=False)
        )
        mlp = MLP.spec(hidden=4 * dim if hidden is None else hidden, bias=True) if channel is None else channel
        norm = LayerNorm.spec(eps=eps)
        block = Block.spec(
            mixer=attention, channel=mlp, norm=norm, layer_scale=layer_scale, dropout=dropout, drop_path=drop_path
        )
        self.stack = Stack(dim, depth, block, norm=norm)
        self.dropout = dropout
        self.head = linear_head(2 * dim if pool == "both" else dim, classes)

    @classmethod
    @published
    def tiny(cls, **more: Any):
        """ViT-Ti/16, 5,717,416 parameters."""
        return cls(**{"dim": 192, "depth": 12, "heads": 3, **more})

    @classmethod
    @published
    def small(cls, **more: Any):
        """ViT-S/16, 22,050,664 parameters."""
        return cls(**{"dim": 384, "depth": 12, "heads": 6, **more})

    @classmethod
    @published
    def base(cls, **more: Any):
        """ViT-B/16, 86,567,656 parameters."""
        return cls(**{"dim": 768, "depth": 12, "heads": 12, **more})

    @classmethod
    @published
    def large(cls, **more: Any):
        """ViT-L/16, 304,326,632 parameters."""
        return cls(**{"dim": 1024, "depth": 24, "heads": 16, **more})

    def tokens(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The patches (b, rows * columns, dim) and the extra tokens (b, n, dim), class token first, behind the last norm."""
        x = self.read(x)
        grid = self.patches.grid(*x.shape[2:])
        h, positions = self.patches(x), self.places(grid)
        extra = 0
        if self.token is not None:
            h, extra = self.token(h)[0], 1
        h = h + positions
        if self.registers is not None:
            # Registers stand between the class token and the patches, and have no position.
            h = torch.cat([h[:, :extra], self.registers(h[:, extra:])[0]], 1)
            extra += self.registers.count
        h = F.dropout(h, self.dropout, self.training) if self.dropout else h
        h = self.stack(h)
        return h[:, extra:], h[:, :extra]

    def places(self, grid: tuple[int, int]) -> Tensor:
        """Positions for a grid of patches, interpolated where it is not the one that was trained."""
        if grid == self.grid:
            return self.positions
        own = int(self.token is not None)
        table = self.positions[own:].unflatten(0, self.grid).permute(2, 0, 1).unsqueeze(0)
        moved = F.interpolate(table, grid, mode="bicubic", align_corners=False)[0].flatten(1).t()
        return torch.cat([self.positions[:own], moved])

    def maps(self, x: Tensor) -> Tensor:
        patches = self.tokens(x)[0]
        return patches.transpose(1, 2).unflatten(2, self.patches.grid(*x.shape[2:]))

    def features(self, x: Tensor) -> Tensor:
        patches, extra = self.tokens(x)
        if self.pool == "mean":
            return patches.mean(1)
        return extra[:, 0] if self.pool == "token" else torch.cat([extra[:, 0], patches.mean(1)], 1)
