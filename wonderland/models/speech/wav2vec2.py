"""Wav2Vec 2: strided convolutions of a waveform, then a transformer with convolutional positions."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, nearest, part
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.channel.activations import Activation
from wonderland.nn.channel.activations import activation as resolve
from wonderland.nn.channel.mlp import MLP, chance
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import check_booleans, check_numbers, hide
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm

NORMS = ("group", "layer")


class WaveformLayer(nn.Module):
    """One convolution of the waveform, its norm and its activation: (b, channels, time) -> (b, width, shorter time)."""

    def __init__(
        self,
        channels: int,
        width: int,
        kernel: int,
        stride: int,
        *,
        bias: bool,
        norm: str,
        activation: str | Activation,
    ):
        super().__init__()
        self.conv = nn.Conv1d(channels, width, kernel, stride, bias=bias)
        self.norm = {"": None, "group": nn.GroupNorm(width, width), "layer": nn.LayerNorm(width)}[norm]
        self.activation = resolve(activation)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if isinstance(self.norm, nn.LayerNorm):
            x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        elif self.norm is not None:
            x = self.norm(x)
        return self.activation(x)


class ConvolutionalPosition(nn.Module):
    r"""Positions from what surrounds a frame: a wide grouped convolution, whose weights are normed in each tap.

    .. math:: y = \phi(\mathrm{conv}_W(x)), \qquad W_k = g_k \frac{V_k}{\lVert V_k \rVert}
    """

    def __init__(self, dim: int, width: int, groups: int, activation: str | Activation):
        super().__init__()
        if dim % groups:
            raise WonderlandError(
                f"Positions by a convolution with {groups} groups need a dim that they divide, not {dim}."
            )
        self.width, self.groups, self.activation = width, groups, resolve(activation)
        self.direction = nn.Parameter(torch.randn(dim, dim // groups, width) * (4 / (width * dim)) ** 0.5)
        self.gain = nn.Parameter(self.direction.detach().norm(dim=(0, 1), keepdim=True))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.gain * self.direction / self.direction.norm(dim=(0, 1), keepdim=True)
        y = F.conv1d(x.transpose(1, 2), weight, self.bias, padding=self.width // 2, groups=self.groups)
        # An even width gives one frame too many.
        return self.activation(y[:, :, : x.shape[1]]).transpose(1, 2)


@part
class Wav2Vec2(Checked, nn.Module):
    r"""Features of speech from its waveform, 50 a second at 16 kHz with the default strides.

    .. math:: c = \mathrm{convs}(x), \qquad h = W\, \mathrm{norm}(c) + b, \qquad
        h \leftarrow \mathrm{stack}(\mathrm{norm}(h + \mathrm{position}(h)))

    `widths`, `kernels` and `strides` are those of the convolutions; `conv_norm` is "group" (one norm after the first, over
    time) or "layer" (after each, over channels). `placement` "post" norms before the stack, "pre" after it. The positions
    come from a convolution of width `position_width` in `position_groups` groups. `mixer` and `channel` are those of the
    blocks. `fill` keeps a trained vector for frames that `hidden` names, as in pretraining and in SpecAugment.

    Shapes: waveforms (b, samples), mask (b, samples), True for what is recorded -> features (b, t, dim), 0 where masked;
    `frames(samples)` says how many there are. Book: Alice 11.2.4. Paper: Baevski et al., 2020.

    >>> model = Wav2Vec2(dim=8, depth=1, widths=[4, 4], kernels=[10, 3], strides=[5, 2], position_width=4, position_groups=2)
    >>> model(torch.randn(2, 100)).shape
    torch.Size([2, 9, 8])
    """

    takes_specs = True

    def __init__(
        self,
        dim: int = 768,
        depth: int = 12,
        *,
        widths: list[int] | tuple[int, ...] = (512,) * 7,
        kernels: list[int] | tuple[int, ...] = (10, 3, 3, 3, 3, 2, 2),
        strides: list[int] | tuple[int, ...] = (5, 2, 2, 2, 2, 2, 2),
        conv_bias: bool = False,
        conv_norm: str = "group",
        activation: str | Activation = "gelu",
        mixer: Spec | None = None,
        channel: Spec | None = None,
        position_width: int = 128,
        position_groups: int = 16,
        placement: str = "post",
        norm: Spec | None = None,
        dropout: float | int = 0.0,
        projection_dropout: float | int = 0.0,
        fill: bool = False,
    ):
        super().__init__()
        if conv_norm not in NORMS:
            raise WonderlandError(
                f"conv_norm is 'group' or 'layer', not {conv_norm!r}.{nearest(str(conv_norm), NORMS)}"
            )
        if placement not in ("pre", "post"):
            raise WonderlandError(f"The placement of a Wav2Vec2 is 'pre' or 'post', not {placement!r}.")
        sizes = (tuple(widths), tuple(kernels), tuple(strides))
        if not sizes[0] or len({len(values) for values in sizes}) > 1 or min(min(values) for values in sizes) < 1:
            raise WonderlandError(
                "Wav2Vec2 takes as many widths as kernels and strides, each at least 1, "
                f"not {len(sizes[0])}, {len(sizes[1])} and {len(sizes[2])} of them."
            )
        self.dim, self.kernels, self.strides, self.conv_norm = dim, sizes[1], sizes[2], conv_norm
        self.dropout = chance(dropout, "Wav2Vec2")
        self.projection_dropout = chance(projection_dropout, "Wav2Vec2")
        self.convs: Any = nn.ModuleList()
        for index, (width, kernel, stride) in enumerate(zip(*sizes, strict=True)):
            kind = conv_norm if conv_norm == "layer" or index == 0 else ""
            before = sizes[0][index - 1] if index else 1
            self.convs.append(
                WaveformLayer(before, width, kernel, stride, bias=conv_bias, norm=kind, activation=activation)
            )
        norm = LayerNorm.spec() if norm is None else norm
        self.input_norm = norm.build(dim=sizes[0][-1])
        self.projection = nn.Linear(sizes[0][-1], dim)
        self.fill = nn.Parameter(torch.rand(dim)) if fill else None
        self.position = ConvolutionalPosition(dim, position_width, position_groups, activation)
        self.norm = norm.build(dim=dim) if placement == "post" else None
        block = Block.spec(
            mixer=Attention.spec(causal=False, bias=True) if mixer is None else mixer,
            channel=MLP.spec(bias=True) if channel is None else channel,
            placement=placement,
            norm=norm,
            dropout=dropout,
        )
        self.stack = Stack(dim, depth, block, norm=norm if placement == "pre" else False)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return (laws.determinism, laws.save_load, laws.gradients, laws.finiteness)

    def frames(self, samples: Any) -> Any:
        """The number of features of a recording of so many samples, a number or a tensor of them."""
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            samples = (samples - kernel) // stride + 1
        return samples

    def forward(self, x: Tensor, mask: Tensor | None = None, hidden: Tensor | None = None) -> Tensor:
        if not isinstance(x, Tensor) or x.dim() != 2 or not len(x):
            given = f"of shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"a {type(x).__name__}"
            raise WonderlandError(f"Wav2Vec2 takes waveforms (batch, samples), not a value {given}.")
        check_numbers(x, "Wav2Vec2", self.projection.weight)
        if self.frames(x.shape[1]) < 1:
            raise WonderlandError(f"A recording of {x.shape[1]} samples is shorter than one feature of this Wav2Vec2.")
        kept = None if mask is None else self.mask(x, mask)
        h = x.unsqueeze(1)
        for conv in self.convs:
            h = conv(h)
        h = self.projection(self.input_norm.apply_to(h.transpose(1, 2)))
        if self.training and self.projection_dropout:
            h = F.dropout(h, self.projection_dropout)
        if hidden is not None:
            if self.fill is None:
                raise WonderlandError("This Wav2Vec2 has no vector for hidden frames: build it with fill=True.")
            h = torch.where(hidden.unsqueeze(2), self.fill, h)
        h = hide(h, kept)
        h = h + self.position(h)
        h = h if self.norm is None else self.norm.apply_to(h)
        if self.training and self.dropout:
            h = F.dropout(h, self.dropout)
        return call_with_hooks(self.stack, hide(h, kept), lambda h: self.stack.whole(h, kept))

    features = forward

    def mask(self, x: Tensor, mask: Tensor) -> Tensor:
        """The mask of features (b, t) that belongs to one of samples, which are padded at their end."""
        check_booleans(mask, x, "Wav2Vec2")
        lengths = self.frames(mask.sum(1))
        return torch.arange(self.frames(x.shape[1]), device=x.device) < lengths.unsqueeze(1)


@part
class SpeechRecogniser(Checked, nn.Module):
    """A linear layer over the tokens of a text, for CTC, on features of speech.

    `trunk` is the spec of a `Wav2Vec2`. `write` merges repeated tokens and drops the blank, which is token `blank`.
    Shapes: waveforms (b, samples) -> logits (b, t, vocab), 0 where masked. Paper: Graves et al., 2006.

    >>> trunk = Wav2Vec2.spec(dim=8, depth=1, widths=[4], kernels=[10], strides=[5], position_width=4, position_groups=2)
    >>> SpeechRecogniser(trunk, vocab=12)(torch.randn(1, 100)).shape
    torch.Size([1, 19, 12])
    """

    takes_specs = True
    trunk: Any

    def __init__(self, trunk: Any, vocab: int, *, blank: int = 0, dropout: float | int = 0.0):
        super().__init__()
        self.trunk = trunk.build() if isinstance(trunk, Spec) else trunk
        if not 0 <= blank < vocab:
            raise WonderlandError(f"The blank of a SpeechRecogniser is one of its {vocab} tokens, not {blank}.")
        self.vocab, self.blank, self.dropout = vocab, blank, chance(dropout, "SpeechRecogniser")
        self.head = nn.Linear(self.trunk.dim, vocab)

    def laws(self):
        """What this instance promises; the suite checks it."""
        return self.trunk.laws()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.trunk(x, mask)
        if self.training and self.dropout:
            h = F.dropout(h, self.dropout)
        return hide(self.head(h), None if mask is None else self.trunk.mask(x, mask))

    @torch.no_grad()
    def write(self, x: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """The tokens of the likeliest path of each recording."""
        best = self(x, mask).argmax(2)
        lengths = [best.shape[1]] * len(x) if mask is None else self.trunk.frames(mask.sum(1)).tolist()
        rows = [torch.unique_consecutive(row[:length]).tolist() for row, length in zip(best, lengths, strict=True)]
        return [[token for token in row if token != self.blank] for row in rows]
