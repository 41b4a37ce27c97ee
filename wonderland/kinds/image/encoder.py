"""From images to one tensor: the size, channels and spread of the training images, and new images made to fit."""

import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.data.arrays import is_side, name_of
from wonderland.data.dataset import MULTILABEL, TASKS, Dataset, Finding, counted
from wonderland.data.decode import conform, decode_bytes, guard_decompression
from wonderland.data.encoder import Field, RowEncoder
from wonderland.data.folders import Listing, is_table, listed, natural, refuse_flat, scan
from wonderland.data.idx import file_of_test_images, image_files, read_pair
from wonderland.data.labels import coded, pieces, read_labels
from wonderland.data.pixels import Memory, mean_and_std, picture
from wonderland.data.ports import Preprocessing, Trial
from wonderland.data.source import Glimpse
from wonderland.data.target import choose_target
from wonderland.kinds.image.image_list import path_column
from wonderland.kinds.image.images import Images
from wonderland.kinds.image.mirror import keeps_class, mirror_test
from wonderland.kinds.image.program import ImageProgram, image_trials


@dataclass
class ImageEncoder(RowEncoder):
    """What was learned from the training images: their size, and the mean and spread of each channel (of pixels / 255).

    The numbers go into the network, which normalises by itself; `encode` gives plain uint8 (n, c, h, w). `mirror` counts what
    mirror images change (`mirror_test`), where there are enough images to see.
    """

    channels: int
    height: int
    width: int
    mean: list[float | int]
    std: list[float | int]
    classes: list[str] | None = None
    task: str | None = None
    value_range: tuple[float | int, float | int] = (0.0, 255.0)
    mirror: list[int] | None = None
    noticed: list[Finding] = field(default_factory=list, compare=False)

    kind = "image"

    @classmethod
    def fit(cls, dataset: Images, rows: np.ndarray) -> "ImageEncoder":
        """The size of the images, and the mean and spread of the training pixels."""
        rows = np.asarray(rows, np.int64)
        mean, std = mean_and_std(dataset.store.moments(rows), len(rows) * dataset.height * dataset.width)
        return cls(
            dataset.channels,
            dataset.height,
            dataset.width,
            mean,
            std,
            classes=dataset.classes,
            task=dataset.task,
            value_range=dataset.value_range,
            mirror=mirror_test(dataset, rows) if dataset.classes is not None and dataset.task != MULTILABEL else None,
        )

    @property
    def mirrors(self) -> bool:
        """Whether mirror images keep their class: as measured, else for photographs (colour, from 20 pixels) only."""
        if self.mirror is None:
            return self.channels == 3 and min(self.height, self.width) >= 20
        return keeps_class(self.mirror)

    def describe(self) -> str:
        if self.mirror is None:
            return ""
        tested, right, mirrored, _, _ = self.mirror
        decided = "are used" if self.mirrors else "are not used"
        return (
            f"Mirror images {decided}: of {tested:,} images held out, their nearest neighbours name {right / tested:.1%} "
            f"rightly, and {mirrored / tested:.1%} with mirror images among them. "
        )

    def in_memory(self, dataset: Any) -> bool:
        return isinstance(dataset.store, Memory)

    def schema(self) -> list[Field]:
        return [Field("image", "image", shape=(self.height, self.width, self.channels))]

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> Images:
        """Pictures given as the bytes of PNG, JPEG, WebP, GIF, BMP or TIFF files, decoded as files of a folder are."""
        shape = (self.channels, self.height, self.width)
        pixels = np.empty((len(rows), *shape), np.uint8)
        with guard_decompression():
            for place, row in enumerate(rows):
                pixels[place] = conform(decode_bytes(row["image"], "The image", shape[1:]), *shape)
        return Images.from_arrays(pixels, name="images", layout="nchw")

    def arguments(self) -> dict[str, Any]:
        """For models of images: channels, height, width, and what normalises pixels."""
        size = {"channels": self.channels, "height": self.height, "width": self.width}
        return size | {"mean": self.mean, "std": self.std}

    def encode(self, dataset: Any, rows: np.ndarray | Sequence[int] | None = None) -> Tensor:
        """Pixels of these rows (all, when not given) in the size and channels of training."""
        if not isinstance(dataset, Images):
            name = dataset.name if isinstance(dataset, Dataset) else "the data"
            raise WonderlandError(f"This model reads images, and {name} is not made of images.")
        self.noticed = []
        rows = np.arange(len(dataset)) if rows is None else np.asarray(rows, np.int64)
        pixels = dataset.pixels(rows)
        shape = (self.channels, self.height, self.width)
        if pixels.shape[1:] != shape:
            images = counted(len(pixels), "image", "images")
            text = f"{images} of {_shape(pixels.shape[1:])} changed to {_shape(shape)}, as in training."
            self.noticed = [Finding("size", dataset.name, len(pixels), text)]
            pixels = (
                np.stack([conform(picture(image), *shape) for image in pixels])
                if len(pixels)
                else pixels.reshape(0, *shape)
            )
        return torch.from_numpy(np.ascontiguousarray(pixels))

    trial_words = "pictures of three sizes, in batches of 1, 7 and 20"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return ImageProgram(self.channels, self.height, self.width)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return image_trials(self.height, self.width)

    def traits(self, dataset: Images, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Brightness, contrast, edges and, of images in colour, the mean of each channel."""
        measured = []
        for piece in np.array_split(rows, max(1, -(-len(rows) // 256))):
            pixels = self.encode(dataset, piece).numpy().astype(np.float64)  # (n, c, h, w)
            grey = pixels.mean(1)
            edges = np.abs(np.diff(grey, axis=1)).mean((1, 2)) + np.abs(np.diff(grey, axis=2)).mean((1, 2))
            measured.append(np.stack([grey.mean((1, 2)), grey.std((1, 2)), edges, *pixels.mean((2, 3)).T], 1))
        table = np.concatenate(measured)
        channels = [f"mean of {name}" for name in ("red", "green", "blue")] if self.channels == 3 else []
        return {name: table[:, i] for i, name in enumerate(["brightness", "contrast", "edges", *channels])}

    def open(self, source: Any, *, need_target: bool = False) -> Images:
        """New images for this model: a folder (of classes, or flat), one file, a list of paths, or arrays."""
        if isinstance(source, Images):
            return self._checked(source, need_target)
        if isinstance(source, str | os.PathLike):
            path = Path(source)
            if image_files(path):
                x, y = read_pair(file_of_test_images(path))
                return self.open((x, y) if need_target and y is not None else x, need_target=need_target)
            if is_table(path) and path.is_file():
                frame = Glimpse(path).frame
                if frame is not None and (column := path_column(frame, path.parent)) is not None:
                    return self._open_table(path, frame, column, need_target)
                raise WonderlandError(f"This model was trained on images; {path} is a table.")
            return self._open_files(scan(path) if path.is_dir() else listed([path], path.name), need_target)
        if isinstance(source, list | tuple) and source and all(isinstance(item, str | os.PathLike) for item in source):
            return self._open_files(listed([Path(item) for item in source], "files"), need_target)
        x, y = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
        x = _batched(x, self)
        images = Images.from_arrays(x, name="arrays", value_range=self._range_of(x))
        if y is not None:
            images.y, images.task, images.classes = self._codes(y, len(images)), self.task, self.classes
        return self._checked(images, need_target)

    def _range_of(self, x: np.ndarray) -> tuple[float | int, float | int] | None:
        """The range of training, unless new data plainly come as bytes or as parts of one."""
        if x.dtype.kind not in "buif" or not x.size:
            return None
        if x.dtype == np.uint8 and (self.value_range == (0.0, 255.0) or x.max() > self.value_range[1]):
            return None
        if x.dtype.kind == "f" and self.value_range == (0.0, 255.0) and x.min() >= 0 and x.max() <= 1:
            return 0.0, 1.0
        return self.value_range

    def _checked(self, images: Images, need_target: bool) -> Images:
        if need_target and images.y is None:
            raise WonderlandError(
                f"{images.name} has no classes to compare with: give a folder with one folder for each class."
            )
        if images.y is not None and images.classes != self.classes and images.classes is not None:
            known = self._known(images.classes, images.name)
            codes = np.array([known.index(name) for name in images.classes], np.int64)[images.y]
            images = copy.copy(images)
            images.y = codes
            images.classes, images.task = self.classes, self.task
        return images

    def _open_files(self, listing: "Listing", need_target: bool) -> Images:
        labels = sorted({label for _, label in listing.files}, key=natural)
        known = bool(labels) and self.task != MULTILABEL and set(labels) <= set(self.classes or ())
        if not known and not (labels and need_target):
            # Without classes to compare with, every image counts, wherever it lies.
            listing.files += [(path, "") for path in listing.loose]
            listing.loose = []
        if not listing.files:
            refuse_flat(listing)
        y = None
        if need_target:
            if not labels:
                raise WonderlandError(
                    f"{listing.root} has no class folders to compare with: make one folder for each class."
                )
            self._known(labels, str(listing.root))
        if known and self.classes:
            y = np.array([self.classes.index(label) for _, label in listing.files], np.int64)
        classes, task = (self.classes, self.task) if y is not None else (None, None)
        size = (self.height, self.width)
        return Images.from_listing(listing, y, classes, task, size=size, channels=self.channels)

    def _open_table(self, path: Path, frame: Any, column: str, need_target: bool) -> Images:
        """The images that a table names, with the answers of its target column where they are asked for."""
        files = [path.parent / str(cell).strip() for cell in frame[column]]
        images = self._open_files(listed(files, path.stem), False)
        if need_target and self.task == MULTILABEL:
            images.y, images.classes, images.task = self._labels(frame, column), self.classes, self.task
        elif need_target:
            target = choose_target([str(name) for name in frame.columns], None, (column,), [])
            images.y = self._codes(frame[target].to_numpy(), len(images))
            images.classes, images.task = self.classes, self.task
        return images

    def _labels(self, frame: Any, column: str) -> np.ndarray:
        """The labels of a table's rows as 0 and 1 (n, k), from columns of that name or from one column of lists."""
        assert self.classes is not None
        names = [str(name) for name in frame.columns]
        if set(self.classes) <= set(names):
            codes, _, rows = read_labels(frame, self.classes, [])
            if len(rows) == len(frame):
                return codes
            raise WonderlandError("A cell among the labels to compare with is empty: fill it in, or leave out the row.")
        target = choose_target(names, None, (column,), [])
        return coded(pieces(frame[target], self.classes), self.classes)

    def _known(self, labels: Iterable[str], where: str) -> list[str]:
        if self.classes is None:
            raise WonderlandError(f"{where} has classes, and this model predicts values.")
        for label in labels:
            if label not in self.classes:
                raise WonderlandError(
                    f"{where} has the class {label!r}, which this model does not know.{nearest(label, self.classes)}"
                )
        return self.classes

    def _codes(self, y: Any, n: int) -> np.ndarray:
        y = np.asarray(y)
        if self.task == MULTILABEL and self.classes and y.shape == (n, len(self.classes)) and np.isin(y, (0, 1)).all():
            return y.astype(np.float64)
        if y.shape != (n,):
            raise WonderlandError(
                f"The images are {n} and the targets {len(y) if y.ndim else 1}: give one for each image."
            )
        if self.task == MULTILABEL:
            raise WonderlandError("This model predicts several labels: give a table of paths with their labels.")
        if self.classes is None:
            if y.dtype.kind not in "biuf" or not np.isfinite(y).all():
                raise WonderlandError("This model predicts values: the targets to compare with must be finite numbers.")
            return y.astype(np.float64)
        names = [name_of(value) for value in y]
        self._known(sorted(set(names), key=natural), "The target")
        return np.array([self.classes.index(name) for name in names], np.int64)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "channels": self.channels,
            "height": self.height,
            "width": self.width,
            "mean": list(self.mean),
            "std": list(self.std),
            "classes": self.classes,
            "task": self.task,
            "value_range": list(self.value_range),
        } | ({} if self.mirror is None else {"mirror": self.mirror})

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "ImageEncoder":
        """Read what `to_json` gave; content that cannot be right is refused in a sentence."""
        checks = {
            "channels": lambda v: is_side(v) and v in (1, 3),
            "height": is_side,
            "width": is_side,
            "mean": lambda v: _numbers(v) and len(v) == value["channels"],
            "std": lambda v: _numbers(v) and len(v) == value["channels"] and min(v) > 0,
            "classes": lambda v: v is None or (_names(v) and 2 <= len(v) == len(set(v)) <= 100_000),
            "task": lambda v: v is None or v in (*TASKS, MULTILABEL),
            "value_range": lambda v: _numbers(v) and len(v) == 2 and v[0] < v[1],
        }
        if not isinstance(value, dict) or value.get("kind") != "image":
            raise WonderlandError("The preprocessing of this model is not for images: the file is damaged or not ours.")
        for name, check in checks.items():
            if name not in value:
                raise WonderlandError(
                    f"The preprocessing of this model lacks {name!r}: the file is damaged or not ours."
                )
            if not check(value[name]):
                shown = repr(value[name])[:60]
                raise WonderlandError(
                    f"The preprocessing of this model has {name} = {shown}, which cannot be: the file is damaged or not ours."
                )
        mirror = value.get("mirror")
        if mirror is not None and not (isinstance(mirror, list) and len(mirror) == 5 and all(map(_is_count, mirror))):
            raise WonderlandError(
                f"The preprocessing of this model has mirror = {repr(mirror)[:60]}, which cannot be: the file is damaged or not ours."
            )
        arguments = {name: value[name] for name in checks}
        return cls(**{**arguments, "value_range": tuple(value["value_range"]), "mirror": mirror})


def _batched(x: Any, encoder: ImageEncoder) -> np.ndarray:
    """One image alone counts as a batch of one."""
    x = np.asarray(x)
    alone = x.ndim == 2 or (x.ndim == 3 and encoder.channels == 3 and 3 in (x.shape[0], x.shape[2]))
    return x[None] if alone else x


def _shape(shape: Sequence[int]) -> str:
    return f"{shape[1]} x {shape[2]} {'grey' if shape[0] == 1 else 'colour'} pixels"


def _numbers(value: Any) -> bool:
    fits = isinstance(value, list | tuple) and len(value) <= 3
    return fits and all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e300 for v in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)
