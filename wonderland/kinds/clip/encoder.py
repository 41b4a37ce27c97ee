"""From clips to one tensor of pixels, and new clips made to fit."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.data.bundle import Bundle, Member
from wonderland.data.dataset import TASKS, Dataset, Finding
from wonderland.data.decode import conform, guard_decompression
from wonderland.data.encoder import Field, RowEncoder
from wonderland.data.ports import Preprocessing, Trial
from wonderland.kinds.clip.clips import Clips, clips_of, frames_of_gif, is_whole, read_clips
from wonderland.kinds.clip.program import ClipProgram, clip_trials

NOTHING = (
    "{} holds no clips: neither frames (PNG, JPEG, WebP, BMP, TIFF) nor GIF files or videos (MP4, MOV, MKV, WebM, AVI)."
)


@dataclass
class ClipEncoder(RowEncoder):
    """The frames, channels and side of the training clips, and mean and deviation of their pixels / 255."""

    frames: int
    channels: int
    side: int
    mean: list[float]
    std: list[float]
    classes: list[str] | None = None
    task: str | None = None
    noticed: list[Finding] = field(default_factory=list, compare=False)

    kind = "clip"

    @classmethod
    def fit(cls, dataset: Clips, rows: np.ndarray) -> "ClipEncoder":
        frames, channels, side, _ = dataset.shape
        chosen = (
            dataset.pixels[rows[np.linspace(0, len(rows) - 1, min(len(rows), 500)).astype(int)]].astype(np.float64)
            / 255
        )
        mean, std = chosen.mean((0, 1, 3, 4)), np.maximum(chosen.std((0, 1, 3, 4)), 1 / 255)
        return cls(frames, channels, side, mean.round(6).tolist(), std.round(6).tolist(), dataset.classes, dataset.task)

    def arguments(self) -> dict[str, Any]:
        return {"channels": self.channels, "mean": self.mean, "std": self.std}

    def encode(self, dataset: Any, rows: np.ndarray | None = None) -> Tensor:
        if not isinstance(dataset, Clips):
            name = dataset.name if isinstance(dataset, Dataset) else "the data"
            raise WonderlandError(f"This model reads clips, and {name} is not made of clips.")
        self.noticed = []
        pixels = dataset.pixels if rows is None else dataset.pixels[np.asarray(rows)]
        return torch.from_numpy(pixels)

    trial_words = "clips of three sizes, in batches of 1, 4 and 6"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return ClipProgram(self.frames, self.channels, self.side)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return clip_trials(self)

    def schema(self) -> list[Field]:
        return [Field("clip", "image", unit="GIF", shape=(self.frames, self.side, self.side, self.channels))]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> Clips:
        """Clips given as the bytes of GIF files."""
        shape = (self.channels, self.side, self.side)
        pixels = np.empty((len(rows), self.frames, *shape), np.uint8)
        with guard_decompression():
            for place, row in enumerate(rows):
                for t, frame in enumerate(frames_of_gif(row["clip"], "The clip", self.frames)):
                    pixels[place, t] = conform(frame, *shape)
        return Clips(pixels, [str(place) for place in range(len(rows))], name="clips", origin={"memory": "clips"})

    def open(self, source: Any, *, need_target: bool = False) -> Clips:
        """New clips: a folder of class folders, a folder of clips, one folder of frames, a GIF file or a video."""
        if isinstance(source, Clips):
            return source
        if not isinstance(source, str | os.PathLike):
            raise WonderlandError(
                "This model reads clips: give a folder of frames, a folder of clips, a GIF file or a video."
            )
        path = Path(source)
        if not path.exists():
            raise WonderlandError(f"{path} is missing.")
        bundle = Bundle(path, path.name, [Member(path.name, path)]) if path.is_file() else read_clips(path)
        if path.is_file() and not is_whole(path.name):
            raise WonderlandError(
                f"{path} is one file, and neither a GIF nor a video: give a folder of frames, a folder of clips, a GIF file or a video."
            )
        clips = clips_of(bundle)
        if not clips:
            raise WonderlandError(NOTHING.format(path))
        options = {"frames": self.frames, "side": self.side, "channels": self.channels, "skip_broken": False}
        read, names = Clips.read(bundle, clips, **options)
        labels = [name.split("/")[0] if "/" in name else "" for name in names]
        if need_target or (self.classes and all(label in self.classes for label in labels)):
            read.y, read.classes, read.task = self._codes(labels, path), self.classes, self.task
        return read

    def _codes(self, labels: list[str], path: Path) -> np.ndarray:
        assert self.classes is not None
        for label in labels:
            if label not in self.classes:
                raise WonderlandError(
                    f"{path} has the class {label!r}, which this model does not know.{nearest(label, self.classes)}"
                    if label
                    else f"{path} has no class folders to compare with: make one folder for each class."
                )
        return np.array([self.classes.index(label) for label in labels], np.int64)

    def to_json(self) -> dict[str, Any]:
        names = ("frames", "channels", "side", "mean", "std", "classes", "task")
        return {"kind": self.kind} | {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, saved: Any) -> "ClipEncoder":
        """Read what `to_json` gave; content that cannot be right is refused in a sentence."""
        if not isinstance(saved, dict) or saved.get("kind") != cls.kind:
            raise WonderlandError("The preprocessing of this model is not for clips: the file is damaged or not ours.")
        checks = {
            "frames": lambda v: _whole(v, 1, 1024),
            "channels": lambda v: _whole(v, 1, 3),
            "side": lambda v: _whole(v, 1, 4096),
            "mean": lambda v: _numbers(v, saved["channels"]),
            "std": lambda v: _numbers(v, saved["channels"]) and min(v) > 0,
            "classes": lambda v: (
                isinstance(v, list)
                and len(v) > 1
                and all(isinstance(name, str) for name in v)
                and len(set(v)) == len(v)
            ),
            "task": lambda v: v is None or v in TASKS,
        }
        for name, check in checks.items():
            if name not in saved or not check(saved[name]):
                shown = repr(saved.get(name))[:60]
                raise WonderlandError(
                    f"The preprocessing of this model has {name} = {shown}, which cannot be: the file is damaged or not ours."
                )
        return cls(**{name: saved[name] for name in checks})


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _numbers(values: Any, count: int) -> bool:
    fits = isinstance(values, list) and len(values) == count
    return fits and all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e6 for v in values)
