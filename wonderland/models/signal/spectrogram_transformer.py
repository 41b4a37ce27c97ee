"""SpectrogramTransformer: patches of a log-mel spectrogram as tokens."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.encoder_decoder import with_direction
from wonderland.models.signal.signal_model import SignalModel, mean_of_real
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.vision.patches import Patches


@part
class SpectrogramTransformer(SignalModel):
    """A vision transformer over squares of `patch` frames and bands, in order of time; the mean of those that a recording fills.

    Positions are a table over frames and one over bands. `length` is the largest number of frames. `mixer` is the spec of the token
    mixer: attention in all directions unless given.

    Shapes: x (b, frames, channels) -> (b, outputs). Paper: Gong et al., 2021 (AST), with squares that do not overlap.

    >>> SpectrogramTransformer(10, 40, 50, patch=8, dim=16, depth=1, heads=2)(torch.zeros(2, 50, 40)).shape
    torch.Size([2, 10])
    """

    reads = "mel"
    takes_specs = True

    def __init__(
        self, outputs: int, channels: int = 64, length: int = 100, *, patch: int = 8, dim: int = 96, depth: int = 4, heads: int = 4,
        mixer: Spec | None = None, dropout: float | int = 0.1,
    ):  # fmt: skip
        super().__init__(outputs, channels)
        if channels < patch:
            raise WonderlandError(
                f"SpectrogramTransformer has patches of {patch} bands, and there are {channels}: take smaller ones."
            )
        self.patch, self.dropout = patch, chance(dropout, "SpectrogramTransformer")
        self.patches = Patches(1, dim, patch=patch)
        self.times = nn.Parameter(torch.randn(-(-length // patch), 1, dim) * 0.02)
        self.bands = nn.Parameter(torch.randn(channels // patch, dim) * 0.02)
        attention = Attention.spec(heads=heads, causal=False) if mixer is None else with_direction(mixer, causal=False)
        block = Block.spec(mixer=attention, channel=MLP.spec(expansion=4), norm=LayerNorm.spec(), dropout=dropout)
        self.stack = Stack(dim, depth, block, norm=LayerNorm.spec())
        self.head = nn.Linear(dim, outputs)

    def features(self, x: Tensor) -> Tensor:
        x, mask = self.real(x)
        frames, more = x.shape[1], -x.shape[1] % self.patch
        x, mask = F.pad(x, (0, 0, 0, more)), F.pad(mask, (0, more))
        steps = x.shape[1] // self.patch
        if steps > len(self.times):
            raise WonderlandError(f"SpectrogramTransformer reads {len(self.times) * self.patch} frames, not {frames}.")
        tokens = self.patches(x[:, None]) + (self.times[:steps] + self.bands).flatten(0, 1)
        real = mask.unflatten(1, (steps, self.patch)).any(2).repeat_interleave(len(self.bands), 1)
        h = self.stack(F.dropout(tokens, self.dropout, self.training), real)
        return mean_of_real(h, real)
