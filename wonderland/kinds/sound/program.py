"""Recordings as inputs of an exported model: spectra by matrix products, and the recordings that exports are tried on."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.data.ports import Feed, Port, Preprocessing, Trial
from wonderland.kinds.sound.sounds import Sounds
from wonderland.kinds.sound.spectrogram import REACH, frame_sizes
from wonderland.ops.sound import hann, mel_filters

COUNT = 12
BATCHES = (1, 5, COUNT)
FLOOR = 1e-10  # of power, as `decibels` has it


class SoundProgram(Preprocessing):
    """From samples of one channel, float (rows, samples) with NaN after the end of each recording, to spectra or waves.

    As `SoundEncoder.encoded` computes them: the middle of a longer recording, decibels below its loudest, NaN after its end.
    """

    waves: Tensor
    filters: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self, encoder: Any):
        about = (
            f"samples of one channel at {encoder.rate:,} a second, from -1 to 1, NaN after the end of each recording; "
            f"of more than {encoder.longest:,} the middle is read"
        )
        super().__init__((Port("samples", "float", ("rows", "samples"), about=about),))
        self.longest, self.form = encoder.longest, encoder.form
        self.window, self.hop = frame_sizes(encoder.rate)
        self.frames = encoder.frames
        if self.form == "mel":
            n, bins = torch.arange(self.window, dtype=torch.float64)[:, None], torch.arange(self.window // 2 + 1)
            angle = 2 * math.pi * ((n * bins) % self.window) / self.window
            waves = torch.cat([angle.cos(), angle.sin()], 1) * hann(self.window)[:, None]
            self.register_buffer("waves", waves, persistent=False)
            filters = mel_filters(encoder.mels, self.window, encoder.rate, scale="htk", norm=None)
            self.register_buffer("filters", filters, persistent=False)
            self.register_buffer("mean", torch.tensor(encoder.mean), persistent=False)
            self.register_buffer("deviation", torch.tensor(encoder.deviation), persistent=False)

    def forward(self, *values: Tensor) -> Tensor:
        wave, count = self.middle(values[0])
        return self.spectra(wave, count) if self.form == "mel" else self.standardised(wave, count)

    def middle(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The middle of each recording, 0 after its end: (b, longest), and its samples: (b, 1)."""
        real = ~x.isnan()
        total = real.sum(1, keepdim=True)
        begin = torch.div(total - self.longest, 2, rounding_mode="floor").clamp(min=0)
        place = begin + torch.arange(self.longest, device=x.device)
        count = total.clamp(max=self.longest)
        last = (total - 1).clamp(min=0)
        wave = torch.where(real, x, torch.zeros_like(x)).gather(1, torch.minimum(place, last))
        inside = torch.arange(self.longest, device=x.device) < count
        return torch.where(inside, wave, torch.zeros_like(wave)), count

    def spectra(self, wave: Tensor, count: Tensor) -> Tensor:
        """Standardised decibels of the mel bands (b, frames, mels)."""
        half = torch.zeros_like(wave[:, :1]).expand(-1, self.window)
        padded = torch.cat([half[:, : self.window // 2], wave, half], 1).double()
        place = torch.arange(self.frames)[:, None] * self.hop + torch.arange(self.window)
        spectrum = padded[:, place] @ self.waves
        bins = self.window // 2 + 1
        power = spectrum[..., :bins].square() + spectrum[..., bins:].square()
        level = 10 * torch.log10((power @ self.filters).clamp(min=FLOOR))
        real = (torch.arange(self.frames, device=wave.device) <= torch.div(count, self.hop, rounding_mode="floor"))[
            ..., None
        ]
        loudest = torch.where(real, level, torch.full_like(level, -torch.inf)).amax((1, 2), keepdim=True)
        below = (level - loudest).clamp(min=-REACH).float()
        return torch.where(real, (below - self.mean) / self.deviation, torch.full_like(below, torch.nan))

    def standardised(self, wave: Tensor, count: Tensor) -> Tensor:
        """Waves with a deviation of 1 (b, longest, 1)."""
        real = torch.arange(self.longest, device=wave.device) < count
        wave = wave.double()
        centred = torch.where(real, wave - wave.sum(1, keepdim=True) / count, torch.zeros_like(wave))
        deviation = (centred.square().sum(1, keepdim=True) / count).sqrt().clamp(min=1e-5)
        return torch.where(real, centred / deviation, torch.full_like(wave, torch.nan)).float()[..., None]


def sound_trials(encoder: Any) -> Iterator[Trial]:
    """Recordings of three lengths, each with a length of its own: noise, tones, silence, a click and clipped ones."""
    for seed, share in enumerate((0.3, 1.0, 2.2)):
        waves = odd_waves(max(2, int(encoder.longest * share)), seed)
        source = Sounds.of_arrays(waves, encoder.rate)
        yield Trial(source, [[wave_feed(waves[i : i + size]) for i in range(0, COUNT, size)] for size in BATCHES])


def odd_waves(longest: int, seed: int) -> list[np.ndarray]:
    """Recordings of at most so many samples; the first is that long."""
    generator = np.random.default_rng(seed)
    waves = []
    for row in range(COUNT):
        length = longest if row == 0 else int(generator.integers(max(1, longest // 2), longest + 1))
        t = np.arange(length)
        wave = generator.normal(size=length) * generator.uniform(0.01, 0.3)
        if row % 3 == 1:
            wave = 0.5 * np.sin(t * generator.uniform(0.01, 3)) + 0.001 * wave
        wave = {2: 0 * wave, 3: (t == length // 2) * 1.0, 4: np.sign(wave), 5: 1e-6 * wave}.get(row, wave)
        waves.append(np.clip(wave, -1, 1).astype(np.float32))
    return waves


def wave_feed(waves: list[np.ndarray]) -> Feed:
    """Recordings as one array, NaN after the end of each."""
    whole = np.full((len(waves), max(map(len, waves))), np.nan, np.float32)
    for row, wave in zip(whole, waves, strict=True):
        row[: len(wave)] = wave
    return {"samples": whole}
