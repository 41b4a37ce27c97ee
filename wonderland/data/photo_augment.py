"""Augmentation of photographs: crops, rotations, colours and erased squares, with boxes and masks that move along."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from wonderland.core import Spec, WonderlandError, part
from wonderland.data.augment import _cut_out, _grid

_MOST = {
    "crop": 1.0, "stretch": 2.0, "flip": 1.0, "rotate": 180.0, "shear": 1.0, "shift": 0.5, "brightness": 1.0, "contrast": 1.0,
    "saturation": 1.0, "noise": 128.0, "erase": 0.9, "strength": 1.0,
}  # fmt: skip
POLICY = (
    "identity",
    "rotate",
    "shear x",
    "shear y",
    "move x",
    "move y",
    "brightness",
    "contrast",
    "saturation",
    "solarize",
)


@part
@dataclass(frozen=True)
class PhotoAugment:
    r"""Random changes of an image that are a function of its own numbers, so of (seed, epoch, index) alone.

    `crop` is the largest share of the area that a crop cuts away before it is enlarged again, with sides changed by at most
    `stretch` (logarithm of their ratio); `flip` is the chance of a mirror image, `rotate` the largest angle in degrees, `shear`
    and `shift` the largest as a part of the size; `brightness`, `contrast` and `saturation` the largest relative change;
    `noise` the spread of Gaussian noise in units of 0..255; `erase` the side of a square that is left blank. `policy` picks so
    many changes from a list at random for each image, each as strong as `strength` allows (RandAugment).

    Shapes: x (b, c, h, w) uint8 or float in 0..255, numbers (b, draws) -> (b, c, h, w) float32. An image comes out the same
    whatever its batch mates. Book: Alice 9.2.3; D2L 14.1. Papers: Cubuk et al., 2020; Zhong et al., 2020 (erase).

    >>> from wonderland.core import uniform
    >>> augment = PhotoAugment(crop=0.5, flip=0.5, policy=2)
    >>> x = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    >>> augment(x, uniform(0, 0, np.arange(2), augment.draws)).shape
    torch.Size([2, 3, 8, 8])
    """

    crop: float | int = 0.0
    stretch: float | int = 0.0
    flip: float | int = 0.0
    rotate: float | int = 0.0
    shear: float | int = 0.0
    shift: float | int = 0.0
    brightness: float | int = 0.0
    contrast: float | int = 0.0
    saturation: float | int = 0.0
    noise: float | int = 0.0
    erase: float | int = 0.0
    policy: int = 0
    strength: float | int = 0.3

    def __post_init__(self):
        for name, most in _MOST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise WonderlandError(f"PhotoAugment's {name} must be a number from 0 to {most:g}, not {value!r}.")
        if not isinstance(self.policy, int) or isinstance(self.policy, bool) or not 0 <= self.policy <= 8:
            raise WonderlandError(f"PhotoAugment's policy must be a whole number from 0 to 8, not {self.policy!r}.")
        if self.crop == 1:
            raise WonderlandError("PhotoAugment's crop must leave something: give less than 1.")

    @property
    def draws(self) -> int:
        """How many random numbers an image takes."""
        return 16 + 2 * self.policy

    def as_spec(self) -> Spec:
        """As a recipe keeps it."""
        return Spec("data.PhotoAugment", asdict(self))

    def __call__(self, x: Tensor, numbers: np.ndarray | Tensor) -> Tensor:
        numbers = np.asarray(numbers, np.float64)
        assert numbers.shape == (len(x), self.draws), f"{numbers.shape} numbers for {len(x)} images"
        x = x.to(torch.float32)
        if self.moves:
            grid = torch.from_numpy(_grid(self.matrices(numbers), x.shape[2], x.shape[3]))
            x = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
        x = self.coloured(x, numbers)
        if self.erase:
            x = _cut_out(x, torch.from_numpy(numbers[:, 14:16]), self.erase)
        return x

    def masks(self, masks: Tensor, numbers: np.ndarray | Tensor, *, outside: int = 255) -> Tensor:
        """Masks moved as their images are: (b, h, w) whole numbers; what lies outside the image is `outside`."""
        numbers = np.asarray(numbers, np.float64)
        grid = torch.from_numpy(_grid(self.matrices(numbers), *masks.shape[1:]))
        moved = F.grid_sample(
            (masks + 1).float()[:, None], grid, mode="nearest", padding_mode="zeros", align_corners=False
        )
        moved = moved[:, 0].round().long() - 1
        return torch.where(moved < 0, outside, moved).to(masks.dtype)

    def boxes(
        self, boxes: Tensor, number: np.ndarray, height: int, width: int, *, least: float = 0.1
    ) -> tuple[Tensor, Tensor]:
        """The boxes (n, 4) of one image moved as it is, and which of them (n,) keep at least that share of their area.

        A rotated box becomes the upright box around its corners, cut at the border.
        """
        matrix = self.matrices(np.asarray(number, np.float64)[None])[:, :, 0]
        matrix = matrix * np.array([[1, height / width, 1], [width / height, 1, 1]])
        back = np.linalg.inv(matrix[:, :2])
        low, high = boxes[:, :2].double(), boxes[:, 2:].double()
        corners = torch.stack(
            [low, torch.stack([high[:, 0], low[:, 1]], 1), high, torch.stack([low[:, 0], high[:, 1]], 1)], 1
        )
        scale = torch.tensor([width, height], dtype=torch.float64)
        points = (corners / scale * 2 - 1 - torch.from_numpy(matrix[:, 2].copy())) @ torch.from_numpy(back.T.copy())
        points = (points + 1) / 2 * scale
        bounds = torch.cat([points.amin(1), points.amax(1)], 1)
        whole = (bounds[:, 2:] - bounds[:, :2]).prod(1)
        bounds = torch.minimum(bounds.clamp_min(0), scale.repeat(2))
        left = (bounds[:, 2:] - bounds[:, :2]).clamp_min(0).prod(1)
        return bounds.to(boxes.dtype), left >= least * whole.clamp_min(1e-12)

    @property
    def moves(self) -> bool:
        """Whether pixels change their place."""
        return any((self.crop, self.stretch, self.flip, self.rotate, self.shear, self.shift, self.policy))

    def matrices(self, numbers: np.ndarray) -> np.ndarray:
        """Where each output pixel is read from, in coordinates -1..1: (2, 3, b)."""
        signed = 2 * numbers - 1
        turn, lean_x, lean_y = (
            signed[:, 0] * math.radians(self.rotate),
            signed[:, 1] * self.shear,
            signed[:, 2] * self.shear,
        )
        move_x, move_y = 2 * self.shift * signed[:, 3], 2 * self.shift * signed[:, 4]
        for name, size in self.picked(numbers):
            amount = size * self.strength
            turn = turn + np.where(name == "rotate", amount * math.radians(90), 0)
            lean_x, lean_y = (
                lean_x + np.where(name == "shear x", amount, 0),
                lean_y + np.where(name == "shear y", amount, 0),
            )
            move_x, move_y = (
                move_x + np.where(name == "move x", amount, 0),
                move_y + np.where(name == "move y", amount, 0),
            )
        share, ratio = 1 - self.crop * numbers[:, 5], np.exp(self.stretch * signed[:, 6] / 2)
        wide, tall = np.minimum(1, np.sqrt(share) * ratio), np.minimum(1, np.sqrt(share) / ratio)
        move_x, move_y = move_x + (1 - wide) * signed[:, 7], move_y + (1 - tall) * signed[:, 8]
        mirror = np.where(numbers[:, 9] < self.flip, -1.0, 1.0)
        cos, sin = np.cos(turn), np.sin(turn)
        first = np.array([[cos + -sin * lean_y, cos * lean_x - sin], [sin + cos * lean_y, sin * lean_x + cos]])
        return np.concatenate([first * np.array([wide * mirror, tall]), np.array([[move_x], [move_y]])], 1)

    def picked(self, numbers: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each of the changes of the policy, its name and signed size for each image."""
        return [
            (
                np.array(POLICY)[(numbers[:, 16 + 2 * place] * len(POLICY)).astype(int)],
                2 * numbers[:, 17 + 2 * place] - 1,
            )
            for place in range(self.policy)
        ]

    def coloured(self, x: Tensor, numbers: np.ndarray) -> Tensor:
        """Brightness, contrast, saturation, solarised highlights and noise, cut to 0..255."""
        signed = 2 * numbers - 1
        change = {
            "brightness": self.brightness * signed[:, 10],
            "contrast": self.contrast * signed[:, 11],
            "saturation": self.saturation * signed[:, 12],
        }
        solar = np.full(len(x), np.inf)
        for name, size in self.picked(numbers):
            for key in change:
                change[key] = change[key] + np.where(name == key, size * self.strength, 0)
            solar = np.where(name == "solarize", 255 * (1 - self.strength * np.abs(size)), solar)
        if not self.noise and not self.policy and not any((self.brightness, self.contrast, self.saturation)):
            return x
        bright, strong, vivid = (
            torch.from_numpy(1 + value).to(x.dtype).clamp_min(0).view(-1, 1, 1, 1) for value in change.values()
        )
        x = x * bright
        middle = x.mean((1, 2, 3), keepdim=True)
        x = middle + (x - middle) * strong
        if x.shape[1] == 3:
            grey = (x * x.new_tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1, keepdim=True)
            x = grey + (x - grey) * vivid
        x = x.clamp(0, 255)
        x = torch.where(x >= torch.from_numpy(solar).to(x.dtype).view(-1, 1, 1, 1), 255 - x, x)
        if self.noise:
            keys = (numbers[:, 13] * 2**53).astype(np.uint64)
            drawn = [
                np.random.Generator(np.random.Philox(int(key))).standard_normal(tuple(x.shape[1:]), np.float32)
                for key in keys
            ]
            x = x + self.noise * torch.from_numpy(np.stack(drawn))
        return x.clamp(0, 255)


def averaged(model: Any, x: Tensor, *, flip: bool = True, shift: int = 0) -> Tensor:
    """Test-time averaging: the mean of a model's outputs over an image, its mirror image, and shifts by `shift` pixels.

    Shapes: x (b, c, h, w) -> (b, classes).

    >>> averaged(lambda x: x.float().mean((2, 3)), torch.ones(2, 3, 4, 4), shift=1).shape
    torch.Size([2, 3])
    """
    padded = F.pad(x.float(), (shift,) * 4, mode="replicate") if shift else x
    height, width = x.shape[2:]
    steps = (0, shift, 2 * shift) if shift else (0,)
    places = [(shift, shift)] if not shift else [(shift, shift), *((a, b) for a in steps[::2] for b in steps[::2])]
    views = [padded[:, :, top : top + height, left : left + width] for top, left in (places if shift else [(0, 0)])]
    views += [view.flip(3) for view in views] if flip else []
    return torch.stack([model(view) for view in views]).mean(0)
