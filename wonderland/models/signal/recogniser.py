"""Recogniser: characters from log-mel spectra, by CTC."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, part
from wonderland.models.signal.signal_model import SignalModel
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.mixers.bidirectional import Bidirectional
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.vision.conv_norm import ConvNorm

HIDDEN = -1e4  # the logit of a token after the end of a recording, where the blank is certain


@part
class Recogniser(SignalModel):
    """Two convolutions over frames and bands, blocks with a mixer that reads both directions, logits of tokens for every second frame.

    Token 0 is the blank. After the end of a recording the blank is certain, so that the likelihood of a text does not depend on
    padding. `mixer` is the spec of a mixer that is not causal: GRUs in both directions unless given. `language` is the spec of a
    language model over the same tokens, which a beam search asks.

    Shapes: x (b, frames, channels) -> (b, ceil(frames / 2), outputs). Papers: Graves et al., 2006; Amodei et al., 2016.

    >>> Recogniser(5, 40, dim=8, depth=1)(torch.zeros(2, 50, 40)).shape
    torch.Size([2, 25, 5])
    """

    reads = "mel"
    takes_specs = True

    def __init__(
        self, outputs: int, channels: int = 64, *, dim: int = 128, depth: int = 2, maps: int = 16, mixer: Spec | None = None,
        language: Spec | None = None, dropout: float | int = 0.1,
    ):  # fmt: skip
        super().__init__(outputs, channels)
        self.dropout = chance(dropout, "Recogniser")
        self.first, self.second = ConvNorm(1, maps, 3, stride=2), ConvNorm(maps, maps, 3)
        self.project = nn.Linear(maps * (-(-channels // 2)), dim)
        mixer = Bidirectional.spec(mixer=GRU.spec()) if mixer is None else mixer
        block = Block.spec(mixer=mixer, channel=MLP.spec(expansion=2), norm=LayerNorm.spec(), dropout=dropout)
        self.stack = Stack(dim, depth, block, norm=LayerNorm.spec())
        self.head = nn.Linear(dim, outputs)
        self.language: Any = None if language is None else language.build()

    def features(self, x: Tensor) -> Tensor:
        return self._read(x)[0]

    def _read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x, mask = self.real(x)
        mask = mask[:, ::2]
        shown = mask[:, None, :, None]
        h = self.second(self.first(x[:, None]) * shown) * shown
        tokens = self.project(h.permute(0, 2, 1, 3).flatten(2))
        return self.stack(F.dropout(tokens, self.dropout, self.training), mask), mask

    def forward(self, x: Tensor) -> Tensor:
        h, mask = self._read(x)
        certain = torch.full((self.outputs,), HIDDEN, dtype=h.dtype, device=h.device)
        certain[0] = 0.0
        return torch.where(mask[..., None], self.head(h), certain)
