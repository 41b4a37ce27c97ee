"""Augmentation of sound, as waves and as log-mel spectrograms, with random numbers of each example's own."""

import math
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from wonderland.core import Spec, WonderlandError, part


def _check(owner: object, most: dict[str, float]) -> None:
    for name, highest in most.items():
        value = vars(owner)[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= highest:
            raise WonderlandError(
                f"{type(owner).__name__}'s {name} must be a number from 0 to {highest:g}, not {value!r}."
            )


def lengths_of(x: Tensor) -> Tensor:
    """How many steps of each example are real; the others, at its end, are NaN. Shapes: (b, t, c) -> (b,)."""
    return (~x[..., 0].isnan()).sum(1)


def read_between(x: Tensor, places: Tensor, lengths: Tensor, outside: Tensor) -> Tensor:
    """Values of x (b, t, c) at real-valued places (b, n) between its steps, `outside` (b, 1, c) before the first and after the last."""
    last = (lengths - 1).clamp_min(0)[:, None]
    low = places.floor()
    share = (places - low)[..., None].to(x)
    first, second = (torch.minimum((low + k).clamp_min(0).long(), last) for k in (0, 1))

    def rows(index: Tensor) -> Tensor:
        return x.gather(1, index[..., None].expand(-1, -1, x.shape[2]))

    values = rows(first) * (1 - share) + rows(second) * share
    inside = (places > -1) & (places < lengths[:, None])
    return torch.where(inside[..., None], values, outside)


def _moved(x: Tensor, numbers: np.ndarray, shift: float, stretch: float) -> tuple[Tensor, Tensor]:
    """Examples that begin earlier or later and run faster or slower, in the same room, with what is silent in each filled in."""
    lengths = lengths_of(x)
    size = x.shape[1]
    speed = torch.from_numpy(np.exp((2 * numbers[:, 0] - 1) * math.log1p(stretch)))
    delay = torch.from_numpy((2 * numbers[:, 1] - 1) * shift) * lengths
    steps = torch.arange(size, dtype=torch.float64)
    filled = torch.where(x.isnan(), torch.zeros((), dtype=x.dtype), x)
    outside = (
        torch.where(x.isnan(), torch.inf, x).amin(1, keepdim=True) if x.shape[2] > 1 else x.new_zeros(len(x), 1, 1)
    )
    moved = read_between(filled, (steps - delay[:, None]) * speed[:, None], lengths, outside)
    after = ((lengths / speed) + delay).round().clamp(1, size)
    return torch.where((steps < after[:, None])[..., None], moved, torch.nan), after


@part
@dataclass(frozen=True)
class MelAugment:
    """Random changes of log-mel spectrograms that keep what is heard.

    `shift` moves the beginning by at most this share of the length, `stretch` changes the speed by at most this share, `warp` the
    pitch of all bands by at most this share of their number (a longer or shorter vocal tract), `gain` the level, `colour` adds a smooth
    curve over the bands of at most about this height (another microphone or room), and `noise` normal noise of at most this deviation. `times` and `bands` are the largest shares of steps and of bands that are masked,
    twice each (SpecAugment; Park et al., 2019). Everything is computed from `numbers`, `draws` for each example.

    Shapes: x (b, t, bands), NaN where a recording has ended, numbers (b, draws) -> (b, t, bands).

    >>> from wonderland.core import uniform
    >>> augment = MelAugment()
    >>> augment(torch.zeros(2, 9, 4), uniform(0, 0, np.arange(2), augment.draws)).shape
    torch.Size([2, 9, 4])
    """

    shift: float | int = 0.1
    stretch: float | int = 0.15
    warp: float | int = 0.15
    gain: float | int = 0.2
    colour: float | int = 0.5
    noise: float | int = 0.3
    times: float | int = 0.15
    bands: float | int = 0.15

    draws = 17

    def __post_init__(self):
        _check(
            self,
            {
                "shift": 0.5,
                "stretch": 1.0,
                "warp": 0.5,
                "gain": 10,
                "colour": 10,
                "noise": 10,
                "times": 0.9,
                "bands": 0.9,
            },
        )

    def as_spec(self) -> Spec:
        """The spec that a recipe stores."""
        return Spec("data.MelAugment", asdict(self))

    def __call__(self, x: Tensor, numbers: np.ndarray | Tensor) -> Tensor:
        numbers = np.asarray(numbers, np.float64)
        moved, lengths = _moved(x, numbers, self.shift, self.stretch)
        moved = self._warped(moved, numbers[:, 2])
        moved = moved + torch.from_numpy((2 * numbers[:, 3:4] - 1) * self.gain)[:, :, None].to(moved)
        waves = np.cos(np.pi * np.arange(1, 4)[:, None] * (np.arange(x.shape[2]) + 0.5) / x.shape[2])  # (3, bands)
        curve = ((2 * numbers[:, 14:17] - 1) * self.colour)[:, :, None] * waves
        moved = moved + torch.from_numpy(curve[:, 0] + curve[:, 1] + curve[:, 2])[:, None].to(moved)
        if self.noise:
            noise = np.stack([normal_of(number, moved.shape[1:]) for number in numbers[:, 4]])
            moved = moved + torch.from_numpy(noise * (numbers[:, 5] * self.noise)[:, None, None]).to(moved)
        return self._masked(moved, lengths, torch.from_numpy(numbers[:, 6:14]))

    def _warped(self, x: Tensor, numbers: np.ndarray) -> Tensor:
        count = x.shape[2]
        if not self.warp or count < 2:
            return x
        factor = torch.from_numpy(np.exp((2 * numbers - 1) * math.log1p(self.warp)))[:, None]
        places = (torch.arange(count, dtype=torch.float64) * factor).clamp(0, count - 1)
        low = places.floor().clamp_max(count - 2)
        share = (places - low)[:, None].to(x)
        index = low.long()[:, None].expand(-1, x.shape[1], -1)
        return x.gather(2, index) * (1 - share) + x.gather(2, index + 1) * share

    def _masked(self, x: Tensor, lengths: Tensor, numbers: Tensor) -> Tensor:
        """Two stripes of time and two of bands, set to 0, which is the mean of the training spectra."""
        steps, bands = torch.arange(x.shape[1]), torch.arange(x.shape[2])
        hidden = torch.zeros(x.shape, dtype=torch.bool)
        for i in range(2):
            wide = (numbers[:, 2 * i] * self.times * lengths).floor()
            begin = (numbers[:, 2 * i + 1] * (lengths - wide + 1)).floor()
            hidden |= ((steps >= begin[:, None]) & (steps < (begin + wide)[:, None]))[:, :, None]
            wide = (numbers[:, 2 * i + 4] * self.bands * x.shape[2]).floor()
            begin = (numbers[:, 2 * i + 5] * (x.shape[2] - wide + 1)).floor()
            hidden |= ((bands >= begin[:, None]) & (bands < (begin + wide)[:, None]))[:, None, :]
        return torch.where(hidden & ~x.isnan(), torch.zeros((), dtype=x.dtype), x)


@part
@dataclass(frozen=True)
class WaveAugment:
    """Random changes of waves: `shift` of the beginning and `stretch` of the speed as shares, `gain` as a share of the level, and
    normal `noise` of at most this deviation, where waves have a deviation of 1.

    Shapes: x (b, t, c), NaN where a recording has ended, numbers (b, draws) -> (b, t, c).

    >>> from wonderland.core import uniform
    >>> augment = WaveAugment()
    >>> augment(torch.zeros(2, 9, 1), uniform(0, 0, np.arange(2), augment.draws)).shape
    torch.Size([2, 9, 1])
    """

    shift: float | int = 0.1
    stretch: float | int = 0.15
    gain: float | int = 0.3
    noise: float | int = 0.05

    draws = 5

    def __post_init__(self):
        _check(self, {"shift": 0.5, "stretch": 1.0, "gain": 0.9, "noise": 10})

    def as_spec(self) -> Spec:
        """The spec that a recipe stores."""
        return Spec("data.WaveAugment", asdict(self))

    def __call__(self, x: Tensor, numbers: np.ndarray | Tensor) -> Tensor:
        numbers = np.asarray(numbers, np.float64)
        moved, _ = _moved(x, numbers, self.shift, self.stretch)
        moved = moved * torch.from_numpy(1 + (2 * numbers[:, 2] - 1) * self.gain)[:, None, None].to(x)
        if self.noise:
            noise = np.stack([normal_of(number, moved.shape[1:]) for number in numbers[:, 3]])
            moved = moved + torch.from_numpy(noise * (numbers[:, 4] * self.noise)[:, None, None]).to(moved)
        return moved


def normal_of(number: float, shape: tuple[int, ...]) -> np.ndarray:
    """Normal noise that one number in [0, 1) decides."""
    return np.random.Generator(np.random.Philox(int(number * 2**53))).standard_normal(shape, dtype=np.float32)
