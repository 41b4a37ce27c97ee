"""From images with boxes or masks to batches: pixels on one canvas, boxes filled up to one length, masks, moved together."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.data.arrays import from_numbers, is_side
from wonderland.data.batches import Batches, random_numbers
from wonderland.data.dataset import Finding
from wonderland.data.decode import SUFFIXES, decode_bytes, guard_decompression
from wonderland.data.encoder import Field, RowEncoder
from wonderland.data.examples import RowExamples
from wonderland.data.folders import refuse_flat, scan
from wonderland.data.moving import in_pixels, move_boxes, move_masks
from wonderland.data.pixels import MOST_IN_MEMORY, mean_and_std, picture
from wonderland.data.ports import Preprocessing, Trial
from wonderland.kinds.image.annotated import (
    TASKS,
    AnnotatedImages,
    listing_paths,
    open_annotated,
    open_plain,
    recognise,
)
from wonderland.kinds.image.annotations import Annotations
from wonderland.kinds.image.canvas import Canvas
from wonderland.kinds.image.canvas_program import CanvasProgram, canvas_trials

OUTLINE_SIDE = 28


class AnnotatedBatches(Batches):
    """Batches whose boxes and masks move with their images."""

    examples: "AnnotatedExamples"

    def batch(self, epoch: int, position: int) -> Batch:
        """The batch at one position of one epoch."""
        rows = self.indices(epoch, position)
        x = self.examples.inputs(rows)
        fields = self.examples.answers(rows)
        if self.augment is None:
            return Batch({"x": x, **fields})
        numbers = random_numbers(self.augment, self.seed, epoch, rows)
        return Batch(moved({"x": self.augment(x, numbers), **fields}, self.augment.matrices(numbers)))


def moved(fields: dict[str, Tensor], matrices: np.ndarray) -> dict[str, Tensor]:
    """The fields of a batch, with boxes and masks where the changes of their images put them."""
    if "masks" in fields:
        return fields | {"masks": move_masks(fields["masks"], matrices)}
    height, width = fields["x"].shape[2:]
    places = in_pixels(matrices, height, width)
    boxes, kept = move_boxes(fields["boxes"], places, height, width, least=0.3)
    big = (boxes[..., 2:] - boxes[..., :2]).amin(2) >= 1
    moved_fields = fields | {"boxes": boxes, "labels": torch.where(kept & big, fields["labels"], -1)}
    return moved_fields | {"places": places.float()} if "places" in fields else moved_fields


class AnnotatedExamples(RowExamples):
    """Images on demand or in memory, with `boxes` (b, m, 4) and `labels` (b, m), -1 for padding; or with `masks` (b, h, w).

    Boxes with outlines come with `outlines` (b, m, 28, 28) over the boxes `origins` (b, m, 4) of the image as it is on disk, and
    `places` (b, 2, 3), the map from pixels of the batch to pixels of that image.
    """

    def __init__(self, dataset: AnnotatedImages, x: Any):
        super().__init__(x, None, len(dataset))
        self.dataset = dataset
        self.boxes = self.labels = self.outlines = None
        if not dataset.known or dataset.task != "detection":
            return
        most = max(1, max(map(len, dataset.boxes), default=1))
        boxes = np.zeros((len(dataset), most, 4), np.float32)
        labels = np.full((len(dataset), most), -1, np.int64)
        for row, (box, code) in enumerate(zip(dataset.boxes, dataset.box_classes, strict=True)):
            boxes[row, : len(box)], labels[row, : len(box)] = box, code
        self.boxes, self.labels = torch.from_numpy(boxes), torch.from_numpy(labels)
        if dataset.outlined and labels.size * OUTLINE_SIDE**2 <= MOST_IN_MEMORY:
            outlines = np.zeros((len(dataset), most, OUTLINE_SIDE, OUTLINE_SIDE), np.uint8)
            for row, masks in enumerate(dataset.outlines(np.arange(len(dataset)), OUTLINE_SIDE)):
                outlines[row, : len(masks)] = masks
            self.outlines = torch.from_numpy(outlines)

    def answers(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Boxes or masks of these rows; nothing where there are none."""
        if not self.dataset.known:
            return {}
        if self.boxes is None or self.labels is None:
            return {"masks": torch.from_numpy(self.dataset.masks(rows))}
        index = torch.as_tensor(rows)
        answers = {"boxes": self.boxes[index], "labels": self.labels[index]}
        if self.outlines is None:
            return answers
        same = torch.eye(2, 3).expand(len(rows), -1, -1)
        return answers | {"outlines": self.outlines[index], "origins": self.boxes[index], "places": same}

    def take(self, rows: np.ndarray) -> Batch:
        return Batch({"x": self.inputs(rows), **self.answers(np.asarray(rows))})

    def shuffled(
        self, part: Any, *, size: int, seed: int, rows: Sequence[np.ndarray] | None = None, augment: Any = None,
        workers: int = 0,
    ) -> Batches:  # fmt: skip
        if rows is not None:
            raise WonderlandError("Images with boxes or masks are learned by one network, not by an ensemble.")
        nothing = torch.zeros(self.rows, dtype=torch.int64)
        batches = AnnotatedBatches(self.x, nothing, size=size, seed=seed, rows=part, augment=augment, workers=workers)
        batches.examples = self
        return batches


@dataclass
class AnnotatedEncoder(RowEncoder):
    """The canvas of the training images, their mean and spread, the classes, and the sizes of their boxes.

    `finest` is the stride of the finest map that boxes are looked for in, `levels` how many maps there are, `anchor_size` the
    side of the smallest anchor in pixels, `anchor_ratios` the widths over heights of anchors.
    """

    channels: int
    height: int
    width: int
    mean: list[float | int]
    std: list[float | int]
    classes: list[str]  # pyright: ignore[reportIncompatibleVariableOverride]
    task: str
    form: str
    anchors: dict[str, Any]
    values: list[int] | None = None
    in_colour: bool = False
    ignored: list[int] = field(default_factory=list)
    background: bool = False
    weights: list[float | int] | None = None
    noticed: list[Finding] = field(default_factory=list, compare=False)

    kind = "image"

    @classmethod
    def fit(cls, dataset: AnnotatedImages, rows: np.ndarray) -> "AnnotatedEncoder":
        """Fitted on the training rows only."""
        rows = np.asarray(rows, np.int64)
        mean, std = mean_and_std(dataset.store.moments(rows), len(rows) * dataset.height * dataset.width)
        annotations, classes = dataset.annotations, list(dataset.classes or [])
        values = None if annotations.values is None else [int(value) for value in annotations.values]
        plain = classes[0].casefold() == "background" or (
            values is not None and not annotations.in_colour and values[0] == 0
        )
        plain |= classes[0] == "#000000"
        return cls(
            dataset.channels, dataset.height, dataset.width, mean, std, classes, str(dataset.task), annotations.form,
            anchors_for(dataset, rows) if dataset.task == "detection" else {}, values, annotations.in_colour, sorted(annotations.ignored),
            dataset.task == "segmentation" and plain,
            weights_for(dataset, rows) if dataset.task == "segmentation" else None,
        )  # fmt: skip

    def in_memory(self, dataset: Any) -> bool:
        return dataset.canvas.array is not None

    def examples(self, dataset: Any) -> AnnotatedExamples:
        x = self.encode(dataset) if self.in_memory(dataset) else lambda rows: self.encode(dataset, rows)
        return AnnotatedExamples(dataset, x)

    def schema(self) -> list[Field]:
        return [Field("image", "image", shape=(self.height, self.width, self.channels))]

    trial_words = "pictures of three sizes, in batches of 1, 7 and 20"

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return CanvasProgram(self.channels, self.height, self.width)

    def trials(self, *, double: bool = False) -> Iterator[Trial]:
        return canvas_trials(self.height, self.width)

    def collect(self, rows: Sequence[Mapping[str, Any]]) -> AnnotatedImages:
        """Pictures given as the bytes of PNG, JPEG, WebP, GIF, BMP or TIFF files, decoded as files of a folder are."""
        with guard_decompression():
            pictures = [decode_bytes(row["image"], "The image") for row in rows]
        store = Canvas.of_pictures(pictures, (self.height, self.width), self.channels)
        annotations = Annotations(Path("."), "plain", [], [], "")
        return AnnotatedImages(
            store, annotations, self.task, name="images", classes=None, fingerprint="", origin={}, paths=None
        )

    def traits(self, dataset: AnnotatedImages, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Brightness and contrast of each image."""
        pixels = [dataset.pixels(np.array([row])) for row in rows]
        return {
            "brightness": np.array([image.mean() for image in pixels]),
            "contrast": np.array([image.std() for image in pixels]),
        }

    def arguments(self) -> dict[str, Any]:
        """For models of images: channels, what normalises pixels, and anchors of the size of the boxes."""
        size = {"channels": self.channels, "height": self.height, "width": self.width}
        return size | {"mean": self.mean, "std": self.std} | self.anchors

    def describe(self) -> str:
        scaled = f"{self.height} x {self.width} pixels"
        return f"Task: {self.task} on images of {scaled}, {len(self.classes)} classes. "

    def encode(self, dataset: Any, rows: np.ndarray | Sequence[int] | None = None) -> Tensor:
        """Pixels of these rows (all, when not given): uint8 (n, c, h, w)."""
        if not isinstance(dataset, AnnotatedImages):
            raise WonderlandError("This model reads images with boxes or masks.")
        self.noticed = []
        rows = np.arange(len(dataset)) if rows is None else np.asarray(rows, np.int64)
        if dataset.canvas.array is not None and len(rows) == len(dataset):
            return torch.from_numpy(dataset.canvas.array)
        return torch.from_numpy(np.ascontiguousarray(dataset.pixels(rows)))

    def open(self, source: Any, *, need_target: bool = False) -> AnnotatedImages:
        """New images: a folder, a file, a list of paths, or arrays; with `need_target`, with boxes or masks as in training."""
        canvas = (self.height, self.width)
        if isinstance(source, AnnotatedImages):
            return source
        if isinstance(source, str | os.PathLike):
            path = Path(source)
            form = recognise(path) if path.exists() else None
            if need_target:
                known = Annotations(path, self.form, [], self.classes, "", None if self.values is None else np.array(self.values),
                                    self.in_colour, frozenset(self.ignored))  # fmt: skip
                opened = open_annotated(
                    path, self.task, skip=False, size=None, canvas=canvas, channels=self.channels, known=known
                )
                opened.findings = [finding for finding in opened.findings if finding.kind != "task"]
                return opened
            if form in ("coco", "yolo", "voc"):
                opened = open_annotated(
                    path, None, skip=False, size=None, canvas=canvas, channels=self.channels, need_boxes=False
                )
                opened.findings, opened.task = [], self.task
                return opened
            if path.is_file() and path.suffix.casefold() not in SUFFIXES:
                raise WonderlandError(
                    f"This model reads images, and {path} is none: give a PNG, JPEG, WebP, GIF, BMP or TIFF file, or a folder."
                )
            if not path.exists():
                raise WonderlandError(f"{path} is missing.")
            listing = scan(path) if path.is_dir() else None
            paths = [path] if listing is None else listing_paths(listing)
            if not paths:
                assert listing is not None
                refuse_flat(listing)
            return open_plain(paths, path.resolve().name, canvas, self.channels, self.task)
        if need_target:
            raise WonderlandError("To measure this model, give a folder or file of images with boxes or masks.")
        if isinstance(source, list | tuple) and source and all(isinstance(item, str | os.PathLike) for item in source):
            paths = [Path(item) for item in source]
            for path in paths:
                if not path.is_file():
                    raise WonderlandError(f"{path} is missing.")
            return open_plain(paths, "files", canvas, self.channels, self.task)
        return self._of_arrays(source)

    def _of_arrays(self, source: Any) -> AnnotatedImages:
        array = np.asarray(source)
        array = array[None] if array.ndim == 2 or (array.ndim == 3 and 3 in (array.shape[0], array.shape[2])) else array
        pixels, _, _ = from_numbers(array, "arrays", None, None)
        pictures = [picture(image) for image in pixels]
        store = Canvas.of_pictures(pictures, (self.height, self.width), self.channels)
        annotations = Annotations(Path("."), "plain", [], [], "")
        return AnnotatedImages(
            store, annotations, self.task, name="arrays", classes=None, fingerprint="", origin={}, paths=None
        )

    def to_json(self) -> dict[str, Any]:
        names = ("channels", "height", "width", "mean", "std", "classes", "task", "form", "anchors", "values", "in_colour",
                 "ignored", "background", "weights")  # fmt: skip
        return {"kind": self.kind} | {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, value: Any) -> "AnnotatedEncoder":
        """Read what `to_json` gave; content that cannot be right is refused in a sentence."""
        checks = {
            "channels": lambda v: is_side(v) and v in (1, 3),
            "height": is_side,
            "width": is_side,
            "mean": lambda v: _numbers(v, value["channels"]),
            "std": lambda v: _numbers(v, value["channels"]) and min(v) > 0,
            "classes": lambda v: (
                isinstance(v, list)
                and 1 <= len(v) == len(set(map(str, v))) <= 100_000
                and all(isinstance(n, str) for n in v)
            ),
            "task": lambda v: v in TASKS,
            "form": lambda v: v in ("coco", "yolo", "voc", "masks"),
            "anchors": lambda v: v == {} or _are_anchors(v),
            "values": lambda v: v is None or (_wholes(v) and len(v) == len(value["classes"])),
            "in_colour": lambda v: isinstance(v, bool),
            "ignored": _wholes,
            "background": lambda v: isinstance(v, bool),
            "weights": lambda v: v is None or (_numbers(v, len(value["classes"])) and min(v) > 0),
        }
        for name, check in checks.items():
            if not isinstance(value, dict) or name not in value or not check(value[name]):
                raise WonderlandError(
                    f"The preprocessing of this model has no {name!r} that fits: the file is damaged or not ours."
                )
        if (value["task"] == "detection") != bool(value["anchors"]):
            raise WonderlandError(
                "The preprocessing of this model has anchors of another task: the file is damaged or not ours."
            )
        return cls(**{name: value[name] for name in checks})


def weights_for(dataset: AnnotatedImages, rows: np.ndarray) -> list[float | int]:
    """Weights of the classes by the fourth root of how rare their pixels are in the training part, with a mean of 1 over pixels.

    Larger weights would make objects too thick: at their border, a pixel that is as likely background counts as theirs.
    """
    assert dataset.classes is not None
    counts = np.zeros(256)
    for piece in np.array_split(rows, max(1, len(rows) // 64)):
        counts += np.bincount(dataset.masks(piece).ravel(), minlength=256)
    share = np.maximum(counts[: len(dataset.classes)], 1) / max(1.0, counts[: len(dataset.classes)].sum())
    weight = np.minimum(share**-0.25, 30 * share.max() ** -0.25)
    return [float(f"{value:.4g}") for value in weight / (weight * share).sum()]


def anchors_for(dataset: AnnotatedImages, rows: np.ndarray) -> dict[str, Any]:
    """Sizes and ratios of anchors from the boxes of the training rows."""
    boxes = np.concatenate([np.zeros((0, 4), np.float32), *(dataset.boxes[int(row)] for row in rows)])
    if not len(boxes):
        raise WonderlandError(f"The training part of {dataset.name} has no boxes: add images with boxes.")
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 1.0)
    size, ratio = np.sqrt(sides.prod(1)), sides[:, 0] / sides[:, 1]
    small, large = np.quantile(size, [0.1, 0.98])
    finest = next(stride for stride in (32, 16, 8, 4) if stride == 4 or small >= 2 * stride)
    levels = int(np.clip(1 + np.ceil(np.log2(max(large / max(small, 1.0), 1.0) / 1.5)), 1, 5))
    middle, low, high = np.quantile(ratio, [0.5, 0.1, 0.9])
    ratios = [float(f"{middle:.3g}")] + [
        float(f"{edge:.3g}") for edge in (low, high) if abs(np.log(edge / middle)) > 0.25
    ]
    return {"finest": finest, "levels": levels, "anchor_size": float(f"{max(small, 2.0):.4g}"), "anchor_ratios": ratios}


def _numbers(value: Any, count: int) -> bool:
    fits = isinstance(value, list) and len(value) == count
    return fits and all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e6 for v in value)


def _wholes(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 256 and all(
        isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 1 << 32 for v in value
    )  # fmt: skip


def _are_anchors(value: Any) -> bool:
    try:
        ratios = value["anchor_ratios"]
        return (
            set(value) == {"finest", "levels", "anchor_size", "anchor_ratios"}
            and value["finest"] in (4, 8, 16, 32)
            and isinstance(value["levels"], int)
            and 1 <= value["levels"] <= 5
            and _numbers([value["anchor_size"]], 1)
            and value["anchor_size"] >= 1
            and 1 <= len(ratios) <= 9
            and _numbers(ratios, len(ratios))
            and min(ratios) > 0
        )
    except (KeyError, TypeError):
        return False
