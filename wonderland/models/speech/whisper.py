"""Whisper: an encoder-decoder that reads log-mel spectrograms and writes text."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.nn.contract.hooks import call_with_hooks
from wonderland.nn.contract.mixer import check_numbers
from wonderland.nn.positions import Learned
from wonderland.ops.sound import mel_spectrogram

RATE, SECONDS, HOP, N_FFT = 16_000, 30, 160, 400


@part
class Whisper(EncoderDecoder):
    r"""Speech to text: two convolutions, of which the second halves the time, before an encoder; a decoder of tokens.

    .. math:: z = \mathrm{encoder}(\mathrm{gelu}(\mathrm{conv}(\mathrm{gelu}(\mathrm{conv}(S)))) + P), \qquad
        h = \mathrm{decoder}(E_y + P' \mid z)

    S is a log-mel spectrogram with `mels` bands (`speech_features` makes it from 16 kHz); `frames` is the largest number
    of frames after the convolutions, and `positions` that of tokens. The other options are those of `EncoderDecoder`, with
    norms before each layer and GELU. `forward(features, tokens)`, `prepare` and `stream` are those of `EncoderDecoder`;
    `write` decodes greedily.

    Shapes: features (b, mels, at most 2 frames), tokens (b, t) -> logits (b, t, vocab).
    Book: Alice 11.2.4. Paper: Radford et al., 2022.

    >>> model = Whisper(vocab=20, dim=16, depth=1, mels=8, frames=10, heads=2)
    >>> model(torch.randn(2, 8, 20), torch.zeros(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 20])
    """

    def __init__(
        self,
        vocab: int,
        dim: int = 384,
        depth: int = 4,
        *,
        mels: int = 80,
        frames: int = 1500,
        positions: int = 448,
        target_depth: int | None = None,
        heads: int | None = None,
        mixer: Spec | None = None,
        reader: Spec | None = None,
        cross: Spec | None = None,
        channel: Spec | None = None,
        reader_channel: Spec | None = None,
        norm: Spec | None = None,
        tie: bool = True,
        scale: str = "none",
        begin: int = 0,
        dropout: float | int = 0.0,
    ):
        super().__init__(
            vocab, dim, depth, target_depth=target_depth, heads=heads, mixer=mixer, reader=reader, cross=cross,
            channel=Spec("nn.MLP", {"activation": "gelu", "bias": True}) if channel is None else channel,
            reader_channel=reader_channel, position=Learned.spec(length=positions), norm=norm, tie=tie, scale=scale,
            begin=begin, dropout=dropout,
        )  # fmt: skip
        if min(mels, frames) < 1:
            raise WonderlandError(f"Whisper reads at least one band and one frame, not mels={mels}, frames={frames}.")
        self.mels, self.frames = mels, frames
        self.conv1 = nn.Conv1d(mels, dim, 3, padding=1)
        self.conv2 = nn.Conv1d(dim, dim, 3, stride=2, padding=1)
        self.source_position = Learned(dim, length=frames)

    def laws(self):
        """No laws of tokens hold for its source, which is a spectrogram."""
        return ()

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Encoder features (b, frames, dim) of a spectrogram (b, mels, 2 frames)."""
        if source_mask is not None:
            raise WonderlandError(
                "Whisper has no mask of its spectrogram: silence is padded with zeros before it is made."
            )
        if not isinstance(source, Tensor) or source.dim() != 3 or source.shape[1] != self.mels or not len(source):
            given = f"of shape {tuple(source.shape)}" if isinstance(source, Tensor) else f"a {type(source).__name__}"
            raise WonderlandError(
                f"Whisper reads log-mel spectrograms (batch, {self.mels}, frames), not a value {given}."
            )
        check_numbers(source, "Whisper", self.conv1.weight)
        if not 1 <= source.shape[2] <= 2 * self.frames:
            raise WonderlandError(
                f"This Whisper reads 1 to {2 * self.frames:,} frames of a spectrogram, not {source.shape[2]:,}."
            )
        h = F.gelu(self.conv2(F.gelu(self.conv1(source)))).transpose(1, 2)
        assert self.source_position is not None
        h = h + self.source_position.embed(torch.arange(h.shape[1], device=h.device).unsqueeze(0))
        if self.training and self.dropout:
            h = F.dropout(h, self.dropout)
        return call_with_hooks(self.encoder, h, lambda h: self.encoder.whole(h, None)), None

    @torch.no_grad()
    def write(
        self,
        features: Tensor,
        begin: Sequence[int],
        *,
        count: int = 200,
        end: int | None = None,
        hidden: Sequence[int] = (),
    ) -> list[list[int]]:
        """The likeliest next token, one after another, for each spectrogram: what follows `begin`, without `end`.

        `begin` are the tokens of the language and the task. Tokens in `hidden` are never written; `count` is how many at most.
        """
        state: Any = self.prepare(features)
        tokens = torch.tensor([list(begin)] * len(features), device=features.device)
        if not tokens.shape[1]:
            raise WonderlandError("Whisper writes after at least one token: give begin, such as the start token.")
        written: list[list[int]] = [[] for _ in range(len(features))]
        open_rows = set(range(len(features)))
        for _ in range(count):
            logits, state = self.stream(tokens, state)
            last = logits[:, -1]
            last[:, list(hidden)] = -torch.inf
            tokens = last.argmax(1, keepdim=True)
            for row in sorted(open_rows):
                token = int(tokens[row])
                if token == end:
                    open_rows.discard(row)
                else:
                    written[row].append(token)
            if not open_rows:
                break
        return written


def speech_features(samples: Tensor, *, mels: int = 80, seconds: float | int = SECONDS) -> Tensor:
    """The log-mel spectrogram that Whisper reads: (b, samples) at 16 kHz -> (b, mels, 100 frames a second).

    Recordings are padded with silence, or cut, to `seconds`. Levels are base 10 logarithms, at most 8 below the largest of
    their row, moved by 4 and divided by 4.

    >>> speech_features(torch.zeros(1, 1600), seconds=1).shape
    torch.Size([1, 80, 100])
    """
    if not isinstance(samples, Tensor) or samples.dim() != 2 or not samples.is_floating_point():
        given = f"{samples.dtype} {tuple(samples.shape)}" if isinstance(samples, Tensor) else type(samples).__name__
        raise WonderlandError(f"speech_features takes floating point samples (batch, time), not {given}.")
    length = round(seconds * RATE)
    samples = F.pad(samples, (0, max(0, length - samples.shape[1])))[:, :length]
    power = mel_spectrogram(samples, RATE, n_fft=N_FFT, hop=HOP, mels=mels)[:, :-1]
    level = power.clamp_min(1e-10).log10()
    level = torch.maximum(level, level.amax((1, 2), keepdim=True) - 8)
    return ((level + 4) / 4).transpose(1, 2)
