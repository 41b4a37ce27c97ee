"""Images: folders of class folders, or arrays, as uint8 pixels of one size."""

import base64
import copy
import hashlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from wonderland.core import WonderlandError, nearest, read_bytes
from wonderland.data.dataset import TASKS, Dataset, Encoder, Finding, stop_if_strict
from wonderland.data.decode import MOST_BYTES, SUFFIXES, careful, conform, decode_bytes, measure

MOST_IN_MEMORY = 1 << 30
LARGEST_SIDE = 4096
DEFAULT_SIDE = 64
# Measured on 2,000 JPEGs: Pillow lets go of the interpreter, so threads beat worker processes, which first import torch.
THREADS_FROM = 32
# What is only said; everything else is a repair, at which strict mode stops.
REMARKS = frozenset({"scale", "size", "copies", "task"})
PARTS = frozenset({"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval"})


class Images(Dataset):
    """Pictures of one size, with a class or a value each.

    `pixels(rows)` gives them as uint8 (b, c, h, w): from memory when all fit into 1 GiB, otherwise decoded when asked for.

    >>> images = Images.from_arrays(np.zeros((4, 8, 8), np.uint8), ["a", "b", "a", "b"], name="squares")
    >>> images
    <Images squares: 4 rows, binary, 2 classes>
    >>> images.pixels([0, 3]).shape
    (2, 1, 8, 8)
    """

    kind = "image"

    def __init__(
        self,
        store: "Memory | Files",
        *,
        name: str,
        y: np.ndarray | None,
        classes: list[str] | None,
        task: str | None,
        findings: list[Finding],
        fingerprint: str,
        origin: dict[str, Any],
        paths: list[str] | None = None,
        value_range: tuple[float | int, float | int] = (0.0, 255.0),
    ):
        self.store, self.paths, self.value_range = store, paths, value_range
        self.name, self.y, self.classes, self.task = name, y, classes, task
        self.findings, self.fingerprint, self.origin = findings, fingerprint, origin

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        *,
        target: str | None = None,
        task: str | None = None,
        strict: bool = False,
        size: int | tuple[int, int] | None = None,
        limit_bytes: int = MOST_BYTES,
        workers: int | None = None,
    ) -> "Images":
        """Open a folder with one folder of PNG, JPEG or WebP files for each class.

        All images get one size: `size` (side, or height and width), or the median short side, at most 64. `limit_bytes` is
        the largest file that is read; `workers` the number of threads that decode.
        """
        if target is not None:
            raise WonderlandError("The class of an image is the name of its folder: leave the target out.")
        if task == "regression":
            raise WonderlandError(
                "Class folders hold classes, not values: for a regression give arrays of images and values."
            )
        listing = _scan(Path(path))
        if not listing.classes:
            _refuse_flat(listing)
        if {name.casefold() for name in listing.classes} <= PARTS:
            raise WonderlandError(
                f"{path} holds the parts of a split ({', '.join(listing.classes)}), not classes. "
                "Give one of them: its own folders are the classes, and Wonderland splits by itself."
            )
        if not listing.files:
            raise WonderlandError(f"{path} holds no PNG, JPEG or WebP images.")
        findings = listing.findings()
        found = sorted({label for _, label in listing.files}, key=_natural)
        code = {label: place for place, label in enumerate(found)}
        y = np.array([code[label] for _, label in listing.files], np.int64)
        task = _class_task(found, task, f"{path} holds images of")
        _stop_if_strict(findings, strict)
        images = _read(listing, y, found, task, findings, _size(size), limit_bytes, workers)
        _stop_if_strict(images.findings, strict)
        return images

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        y: Any = None,
        *,
        name: str = "arrays",
        classes: Sequence[str] | None = None,
        task: str | None = None,
        strict: bool = False,
        layout: str | None = None,
        value_range: tuple[float | int, float | int] | None = None,
    ) -> "Images":
        """Images from arrays: x (n, h, w), (n, h, w, c) or (n, c, h, w) with c 1 or 3; y labels or values.

        Bytes are taken as they are. Other numbers are scaled to 0..255, from `value_range` or from what is found in x; the
        range is kept, and new data is scaled by the same. With `classes`, y holds positions in that list.
        """
        pixels, value_range, findings = _from_numbers(x, name, layout, value_range)
        codes = None
        if y is not None:
            codes, classes, task, noted = _labels(y, len(pixels), name, classes, task)
            findings += noted
        _stop_if_strict(findings, strict)
        origin = {"kind": "image", "source": "arrays", "name": name}
        return cls(
            Memory(pixels),
            name=name,
            y=codes,
            classes=list(classes) if classes is not None and task != "regression" else None,
            task=task if codes is not None else None,
            findings=findings,
            fingerprint=_fingerprint_of_arrays(pixels, codes, classes),
            origin=origin,
            value_range=value_range,
        )

    def __len__(self) -> int:
        return len(self.store)

    @property
    def channels(self) -> int:
        """1 when every image is grey, else 3."""
        return self.store.shape[0]

    @property
    def height(self) -> int:
        return self.store.shape[1]

    @property
    def width(self) -> int:
        return self.store.shape[2]

    def pixels(self, rows: np.ndarray | Sequence[int]) -> np.ndarray:
        """The images of these rows: uint8 (b, c, h, w)."""
        return self.store.pixels(np.asarray(rows, np.int64))

    def encoder(self, rows: np.ndarray) -> "ImageEncoder":
        rows = np.asarray(rows, np.int64)
        mean, std = _mean_and_std(self.store.moments(rows), len(rows) * self.height * self.width)
        return ImageEncoder(
            self.channels,
            self.height,
            self.width,
            mean,
            std,
            classes=self.classes,
            task=self.task,
            value_range=self.value_range,
        )

    def example(self, i: int) -> dict[str, Any]:
        """One image for people to look at: uint8 (h, w) or (h, w, 3), where it came from, and its class or value."""
        picture = self.pixels([i])[0]
        shown = {"image": picture[0] if self.channels == 1 else picture.transpose(1, 2, 0)}
        shown["path"] = self.paths[i] if self.paths else f"{self.name}[{i}]"
        if self.y is not None:
            shown["target"] = self.classes[self.y[i]] if self.classes else float(self.y[i])
        return shown

    def summary(self) -> list[dict[str, Any]]:
        """The images of each class, or the spread of the values."""
        about = f"{self.height} x {self.width}, {'grey' if self.channels == 1 else 'colour'}"
        if self.y is None:
            return [{"class": "(none)", "images": len(self), "share": "100 %", "pixels": about}]
        if self.classes is None:
            low, middle, high = np.quantile(self.y, (0, 0.5, 1))
            return [
                {
                    "images": len(self),
                    "lowest": f"{low:g}",
                    "median": f"{middle:g}",
                    "highest": f"{high:g}",
                    "pixels": about,
                }
            ]
        counts = np.bincount(self.y, minlength=len(self.classes))
        return [
            {"class": name, "images": int(count), "share": f"{100 * count / len(self):.1f} %", "pixels": about}
            for name, count in zip(self.classes, counts, strict=True)
        ]

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<div>{''.join(self._thumbnail(i) for i in self._few())}</div>"

    def _few(self, most: int = 12) -> list[int]:
        """Rows to show: one of each class in turn."""
        if self.classes is None or self.y is None:
            return list(range(min(most, len(self))))
        each = [np.flatnonzero(self.y == code).tolist() for code in range(min(most, len(self.classes)))]
        rounds = [rows[turn] for turn in range(most) for rows in each if turn < len(rows)]
        return rounds[:most]

    def _thumbnail(self, i: int) -> str:
        shown = self.example(i)
        file = io.BytesIO()
        Image.fromarray(shown["image"]).save(file, "PNG")
        link = base64.b64encode(file.getvalue()).decode()
        label = escape(str(shown.get("target", "")))
        return (
            "<figure style='display:inline-block;margin:4px;text-align:center'>"
            f"<img style='width:64px;image-rendering:pixelated' alt='{label}' src='data:image/png;base64,{link}'>"
            f"<figcaption>{label}</figcaption></figure>"
        )


class Memory:
    """Pixels in memory: uint8 (n, c, h, w)."""

    def __init__(self, array: np.ndarray):
        self.array, self.shape = array, array.shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        return self.array[rows]

    def moments(self, rows: np.ndarray) -> np.ndarray:
        return sum(
            (_moments(self.array[rows[i : i + 4096]]) for i in range(0, len(rows), 4096)), np.zeros((2, self.shape[0]))
        )


class Files:
    """Pixels on disk, decoded when asked for; a file that has changed since it was opened is refused."""

    def __init__(
        self, paths: list[Path], digests: list[str], sums: np.ndarray, shape: tuple[int, int, int], limit: int
    ):
        self.paths, self.digests, self.sums, self.shape, self.limit = paths, digests, sums, shape, limit

    def __len__(self) -> int:
        return len(self.paths)

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        batch = np.empty((len(rows), *self.shape), np.uint8)
        with careful():
            for place, row in enumerate(rows):
                data = read_bytes(self.paths[row], self.limit)
                if hashlib.sha256(data).hexdigest() != self.digests[row]:
                    raise WonderlandError(
                        f"{self.paths[row]} has changed since the data was opened. Open the data again."
                    )
                batch[place] = conform(decode_bytes(data, self.paths[row], self.shape[1:]), *self.shape)
        return batch

    def moments(self, rows: np.ndarray) -> np.ndarray:
        return self.sums[rows].sum(0)


@dataclass
class ImageEncoder(Encoder):
    """What was learned from the training images: their size, and the mean and spread of each channel (of pixels / 255).

    The numbers go into the network, which normalises by itself; `encode` gives plain uint8 (n, c, h, w).
    """

    channels: int
    height: int
    width: int
    mean: list[float | int]
    std: list[float | int]
    classes: list[str] | None = None
    task: str | None = None
    value_range: tuple[float | int, float | int] = (0.0, 255.0)
    noticed: list[Finding] = field(default_factory=list, compare=False)

    kind = "image"

    def encode(self, dataset: Any, rows: np.ndarray | Sequence[int] | None = None) -> Tensor:
        """Pixels of these rows (all, when not given) in the size and channels of training."""
        if getattr(dataset, "kind", None) != "image":
            raise WonderlandError(
                f"This model reads images, and {getattr(dataset, 'name', 'the data')} is not made of images."
            )
        self.noticed = []
        rows = np.arange(len(dataset)) if rows is None else np.asarray(rows, np.int64)
        found = dataset.pixels(rows)
        shape = (self.channels, self.height, self.width)
        if found.shape[1:] != shape:
            text = (
                f"{len(found):,} images of {_shape(found.shape[1:])} were made {_shape(shape)}, the size of training."
            )
            self.noticed = [Finding("size", dataset.name, len(found), text)]
            found = (
                np.stack([conform(_picture(image), *shape) for image in found])
                if len(found)
                else found.reshape(0, *shape)
            )
        return torch.from_numpy(np.ascontiguousarray(found))

    def open(self, source: Any, *, need_target: bool = False) -> Images:
        """New images for this model: a folder (of classes, or flat), one file, a list of paths, or arrays."""
        if isinstance(source, Images):
            return self._checked(source, need_target)
        if isinstance(source, str | os.PathLike):
            path = Path(source)
            return self._open_files(_scan(path) if path.is_dir() else _listed([path], path.name), need_target)
        if isinstance(source, list | tuple) and source and all(isinstance(item, str | os.PathLike) for item in source):
            return self._open_files(_listed([Path(item) for item in source], "files"), need_target)
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
        labels = sorted({label for _, label in listing.files}, key=_natural)
        known = bool(labels) and set(labels) <= set(self.classes or ())
        if not known and not (labels and need_target):
            # Without classes to compare with, every image counts, wherever it lies.
            listing.files += [(path, "") for path in listing.loose]
            listing.loose = []
        if not listing.files:
            raise WonderlandError(f"{listing.root} holds no PNG, JPEG or WebP images.")
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
        return _read(listing, y, classes, task, listing.findings(), size, MOST_BYTES, None, channels=self.channels)

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
        if y.shape != (n,):
            raise WonderlandError(
                f"There are {n} images and {len(y) if y.ndim else 1} targets: give one for each image."
            )
        if self.classes is None:
            if y.dtype.kind not in "biuf" or not np.isfinite(y).all():
                raise WonderlandError("This model predicts values: the targets to compare with must be finite numbers.")
            return y.astype(np.float64)
        names = [_text(value) for value in y]
        self._known(sorted(set(names), key=_natural), "The target")
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
        }

    def tensors(self) -> dict[str, Tensor]:
        return {}

    @classmethod
    def from_json(cls, value: Any, tensors: dict[str, Tensor] | None = None) -> "ImageEncoder":
        """Read what `to_json` gave; content that cannot be right is refused in a sentence."""
        checks = {
            "channels": lambda v: _whole(v, 3) and v in (1, 3),
            "height": lambda v: _whole(v, LARGEST_SIDE),
            "width": lambda v: _whole(v, LARGEST_SIDE),
            "mean": lambda v: _numbers(v) and len(v) == value["channels"],
            "std": lambda v: _numbers(v) and len(v) == value["channels"] and min(v) > 0,
            "classes": lambda v: v is None or (_names(v) and 2 <= len(v) == len(set(v)) <= 100_000),
            "task": lambda v: v is None or v in TASKS,
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
        arguments = {name: value[name] for name in checks}
        return cls(**{**arguments, "value_range": tuple(value["value_range"])})


@dataclass
class Listing:
    """What a folder holds: images with their class, images outside of the classes, and the rest in numbers."""

    root: Path
    name: str
    classes: list[str] = field(default_factory=list)
    files: list[tuple[Path, str]] = field(default_factory=list)
    loose: list[Path] = field(default_factory=list)
    foreign: Counter = field(default_factory=Counter)
    links: int = 0

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def findings(self) -> list[Finding]:
        found = []
        filled = {label for _, label in self.files}
        if empty := [name for name in self.classes if name not in filled]:
            names = ", ".join(map(repr, empty[:5])) + (f" and {len(empty) - 5} more" if len(empty) > 5 else "")
            found.append(
                Finding("empty class", str(self.root), len(empty), f"Folders without images were left out: {names}.")
            )
        if self.foreign:
            kinds = ", ".join(f"{suffix or 'no suffix'}: {n}" for suffix, n in sorted(self.foreign.items())[:5])
            text = f"{self.foreign.total():,} files that are not PNG, JPEG or WebP were left out ({kinds})."
            found.append(Finding("foreign files", str(self.root), self.foreign.total(), text))
        if self.loose:
            text = f"{len(self.loose):,} images outside of the class folders were left out."
            found.append(Finding("loose images", str(self.root), len(self.loose), text))
        if self.links:
            text = f"{self.links:,} links to folders or out of the data were not followed."
            found.append(Finding("links", str(self.root), self.links, text))
        return found


def _scan(root: Path) -> Listing:
    if not root.exists():
        raise WonderlandError(f"{root} is missing.")
    if not root.is_dir():
        raise WonderlandError(f"{root} is a file where a folder of images should be.")
    listing = Listing(root, root.resolve().name)
    home = root.resolve()
    for folder, folders, files in os.walk(root, onerror=_unreadable_folder):
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink() and not name.startswith(".")]
        listing.links += len(links)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in links)
        inner = here.relative_to(root).parts
        if not inner:
            listing.classes = sorted(folders, key=_natural)
        for name in sorted(files):
            if not name.startswith("."):
                _sort_in(listing, here / name, inner[0] if inner else "", home)
    return listing


def _sort_in(listing: Listing, path: Path, label: str, home: Path) -> None:
    if path.is_symlink() and not path.resolve().is_relative_to(home):
        listing.links += 1
    elif path.suffix.casefold() not in SUFFIXES or not path.is_file():
        listing.foreign[path.suffix.casefold()[:12]] += 1
    elif label:
        listing.files.append((path, label))
    else:
        listing.loose.append(path)


def _unreadable_folder(error: OSError) -> None:
    raise WonderlandError(f"{error.filename} cannot be read ({error.strerror}).") from error


def _listed(paths: list[Path], name: str) -> Listing:
    """Files named one by one: their order is the user's, and their content decides what they are."""
    for path in paths:
        if not path.exists():
            raise WonderlandError(f"{path} is missing.")
        if not path.is_file():
            raise WonderlandError(f"{path} is not a file: give images, or one folder.")
    return Listing(Path(os.path.commonpath([path.absolute().parent for path in paths])), name, loose=paths)


def _stop_if_strict(findings: list[Finding], strict: bool) -> None:
    stop_if_strict((finding for finding in findings if finding.kind not in REMARKS), strict)


def _refuse_flat(listing: Listing) -> None:
    if listing.loose:
        raise WonderlandError(
            f"{listing.root} has {len(listing.loose):,} images but no class folders. "
            "Make one folder for each class and sort the images into them."
        )
    raise WonderlandError(f"{listing.root} holds no PNG, JPEG or WebP images.")


def _read(
    listing: Listing,
    y: np.ndarray | None,
    classes: list[str] | None,
    task: str | None,
    findings: list[Finding],
    size: tuple[int, int] | None,
    limit: int,
    workers: int | None,
    channels: int | None = None,
) -> Images:
    """One pass over the files: size, hash, pixels."""
    paths = [path for path, _ in listing.files]
    findings = list(findings)
    with careful():
        shapes = _each(measure, paths, workers)
        height, width = size or _common_size(shapes)
        small = len(paths) * 3 * height * width <= MOST_IN_MEMORY
        # Only what is kept is allocated; sums are enough to normalise by when pixels stay on disk.
        kept = np.empty((len(paths), 3, height, width), np.uint8) if small else None
        sums = np.zeros((len(paths), 2, 3))
        grey = np.zeros(len(paths), bool)

        def take(row: int) -> str:
            data = read_bytes(paths[row], limit)
            image = decode_bytes(data, paths[row], (height, width))
            coloured = conform(image, 3, height, width)
            grey[row] = image.ndim == 2
            sums[row] = _moments(coloured[None])
            if kept is not None:
                kept[row] = coloured
            return hashlib.sha256(data).hexdigest()

        digests = _each(take, range(len(paths)), workers)
    depth = channels or (1 if grey.all() else 3)
    store = _store(kept, paths, digests, sums, grey, (depth, height, width), limit)
    findings += _copies(digests, y, listing) + _resized(shapes, height, width, listing)
    lines = sorted(f"{listing.relative(path)}\0{digest}\n" for path, digest in zip(paths, digests, strict=True))
    return Images(
        store,
        name=listing.name,
        y=y,
        classes=classes,
        task=task,
        findings=findings,
        fingerprint=hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest(),
        origin={"kind": "image", "source": "folder", "path": str(listing.root), "size": [height, width]},
        paths=[str(path) for path in paths],
    )


def _store(kept, paths, digests, sums, grey, shape, limit) -> Memory | Files:
    if kept is None:
        if shape[0] == 3 or grey.all():
            return Files(paths, digests, sums[:, :, : shape[0]], shape, limit)
        return Files(paths, digests, sums.mean(2, keepdims=True), shape, limit)
    if shape[0] == 3:
        return Memory(kept)
    if grey.all():
        return Memory(np.ascontiguousarray(kept[:, :1]))
    return Memory(np.stack([conform(_picture(image), *shape) for image in kept]))


def _each(function, items, workers: int | None) -> list:
    """The function of every item, in order; the first fault of a file is raised, and the others are counted."""

    def tried(item):
        try:
            return function(item)
        except WonderlandError as error:
            return error

    if len(items) < THREADS_FROM or workers == 1:
        results = [tried(item) for item in items]
    else:
        with ThreadPoolExecutor(workers or min(8, 2 * (os.cpu_count() or 1))) as pool:
            results = list(pool.map(tried, items))
    faults = [result for result in results if isinstance(result, WonderlandError)]
    if len(faults) > 1:
        raise WonderlandError(f"{faults[0]} And {len(faults) - 1} more images cannot be read.") from faults[0]
    if faults:
        raise faults[0]
    return results


def _common_size(shapes: list[tuple[int, int]]) -> tuple[int, int]:
    """The median short side, to a multiple of 8, from 8 to 64."""
    middle = float(np.median([min(shape) for shape in shapes]))
    side = min(max(8 * round(middle / 8), 8), DEFAULT_SIDE)
    return side, side


def _size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    sides = (size, size) if isinstance(size, int) else tuple(size)
    if len(sides) != 2 or not all(_whole(side, LARGEST_SIDE) for side in sides):
        raise WonderlandError(f"size is one side, or height and width, from 1 to {LARGEST_SIDE} pixels, not {size!r}.")
    return sides


def _copies(digests: list[str], y: np.ndarray | None, listing: Listing) -> list[Finding]:
    first: dict[str, int] = {}
    copies, contradictions = 0, 0
    for row, digest in enumerate(digests):
        other = first.setdefault(digest, row)
        copies += other != row
        contradictions += other != row and y is not None and bool(y[other] != y[row])
    found = []
    if copies:
        text = f"{copies:,} images are exact copies of others: scores may look better than they are."
        found.append(Finding("copies", str(listing.root), copies, text))
    if contradictions:
        text = f"{contradictions:,} images lie in two class folders at once: one of the two must be wrong."
        found.append(Finding("contradictions", str(listing.root), contradictions, text))
    return found


def _resized(shapes: list[tuple[int, int]], height: int, width: int, listing: Listing) -> list[Finding]:
    changed = sum(shape != (height, width) for shape in shapes)
    if not changed:
        return []
    text = f"{changed:,} of {len(shapes):,} images were cut and resized to {height} x {width} pixels."
    return [Finding("size", str(listing.root), changed, text)]


def _from_numbers(
    x: Any, name: str, layout: str | None, value_range
) -> tuple[np.ndarray, tuple[float, float], list[Finding]]:
    """Arrays of any numbers as uint8 (n, c, h, w), the range that became 0..255, and what there is to say about it."""
    x = np.asarray(x)
    if x.dtype == object or x.dtype.kind not in "buif":
        raise WonderlandError(
            f"{name} holds no numbers of one shape: images of different sizes belong in a folder of files."
        )
    x = _channels_first(x, name, layout)
    if 0 in x.shape:
        raise WonderlandError(f"{name} is empty: its shape is {x.shape}.")
    if max(x.shape[2:]) > LARGEST_SIDE:
        raise WonderlandError(
            f"{name} has images of {x.shape[2]} x {x.shape[3]} pixels; the limit is {LARGEST_SIDE} a side."
        )
    if x.dtype == np.uint8 and value_range is None:
        return np.ascontiguousarray(x), (0.0, 255.0), []
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all((1, 2, 3)))[0])
        raise WonderlandError(f"{name}[{row}] holds NaN or infinite pixels. Repair or remove that image.")
    low, high = _range(x) if value_range is None else (float(value_range[0]), float(value_range[1]))
    if not (np.isfinite([low, high]).all() and low < high):
        raise WonderlandError(f"value_range must be two finite numbers, the lower first, not {value_range!r}.")
    scaled = (x.astype(np.float64) - low) * (255 / (high - low))
    pixels = np.ascontiguousarray(np.clip(np.rint(scaled), 0, 255).astype(np.uint8))
    findings = []
    if (low, high) != (0.0, 255.0):
        findings.append(Finding("scale", name, len(x), f"Pixel values from {low:g} to {high:g} were scaled to 0..255."))
    if outside := int(((scaled < -0.5) | (scaled > 255.5)).any((1, 2, 3)).sum()):
        text = f"{outside:,} images have values outside of {low:g} to {high:g}, which were cut off."
        findings.append(Finding("cut off", name, outside, text))
    return pixels, (low, high), findings


def _range(x: np.ndarray) -> tuple[float, float]:
    """What counts as black and white: the usual ranges 0..1 and 0..255 where they fit, otherwise the extremes."""
    low, high = float(x.min()), float(x.max())
    if low < 0:
        return low, high if high > low else low + 1
    if 0.5 < high <= 1:
        return 0.0, 1.0
    return 0.0, 255.0 if high == 0 or 128 <= high <= 255 else high


def _channels_first(x: np.ndarray, name: str, layout: str | None) -> np.ndarray:
    if layout not in (None, "nhw", "nhwc", "nchw"):
        raise WonderlandError(f"layout is 'nhw', 'nhwc' or 'nchw', not {layout!r}.")
    if x.ndim == 3 and layout in (None, "nhw"):
        return x[:, None]
    if x.ndim != 4 or layout == "nhw":
        raise WonderlandError(
            f"{name} has the shape {x.shape}; images come as (n, h, w), (n, h, w, c) or (n, c, h, w)."
        )
    first, last = x.shape[1] in (1, 3), x.shape[3] in (1, 3)
    if layout is None and first and last:
        raise WonderlandError(
            f"{name} has the shape {x.shape}, where channels may be first or last: say layout='nchw' or 'nhwc'."
        )
    layout = layout or ("nchw" if first else "nhwc")
    if not (first if layout == "nchw" else last):
        raise WonderlandError(
            f"{name} has the shape {x.shape}; images have 1 channel (grey) or 3 (colour), first or last."
        )
    return x if layout == "nchw" else x.transpose(0, 3, 1, 2)


def _labels(y: Any, n: int, name: str, classes: Sequence[str] | None, task: str | None):
    """Targets as codes or values; what they mean is told when it had to be guessed."""
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != n:
        raise WonderlandError(
            f"{name} has {n} images and targets of the shape {y.shape}: give one target for each image."
        )
    if task is not None and task not in TASKS:
        raise WonderlandError(
            f"task is 'binary', 'multiclass' or 'regression', not {task!r}.{nearest(str(task), TASKS)}"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise WonderlandError(f"The target of {name}[{int(np.flatnonzero(~np.isfinite(y))[0])}] is NaN or infinite.")
    if y.dtype == object and any(value is None or value != value for value in y):
        row = next(i for i, value in enumerate(y) if value is None or value != value)
        raise WonderlandError(f"The target of {name}[{row}] is missing.")
    findings = []
    if task is None and classes is None and y.dtype.kind in "iuf":
        whole, distinct = bool((y == np.rint(y)).all()), len(np.unique(y))
        if not whole or distinct > max(20, n // 2):
            task = "regression"
            text = f"The target has {distinct:,} different numbers, so values are predicted (regression), not classes."
            findings.append(Finding("task", name, distinct, text))
    if task == "regression":
        if y.dtype.kind not in "biuf":
            raise WonderlandError(f"A regression needs numbers, and the targets of {name} are text.")
        if n > 1 and y.min() == y.max():
            raise WonderlandError(f"Every target of {name} is {float(y[0]):g}: there is nothing to learn.")
        return y.astype(np.float64), None, task, findings
    if classes is not None:
        classes = [str(label) for label in classes]
        if len(set(classes)) != len(classes):
            raise WonderlandError("classes names one class twice.")
        if y.dtype.kind not in "biu" or y.min() < 0 or y.max() >= len(classes):
            raise WonderlandError(
                f"With {len(classes)} classes, the targets of {name} are whole numbers from 0 to {len(classes) - 1}."
            )
        codes, found = y.astype(np.int64), classes
    else:
        names = [_text(value) for value in y]
        found = sorted(set(names), key=_natural)
        place = {label: code for code, label in enumerate(found)}
        codes = np.array([place[label] for label in names], np.int64)
    if len(np.unique(codes)) < 2:
        found = [found[codes[0]]]
    return codes, found, _class_task(found, task, f"{name} holds images of"), findings


def _class_task(classes: list[str], task: str | None, start: str) -> str:
    if len(classes) < 2:
        raise WonderlandError(f"{start} one class only, {classes[0]!r}: there is nothing to tell apart.")
    if task is not None and task not in TASKS:
        raise WonderlandError(
            f"task is 'binary', 'multiclass' or 'regression', not {task!r}.{nearest(str(task), TASKS)}"
        )
    if task == "binary" and len(classes) != 2:
        raise WonderlandError(f"{start} {len(classes)} classes: that is a multiclass task, not a binary one.")
    return task or ("binary" if len(classes) == 2 else "multiclass")


def _batched(x: Any, encoder: ImageEncoder) -> np.ndarray:
    """One image alone counts as a batch of one."""
    x = np.asarray(x)
    alone = x.ndim == 2 or (x.ndim == 3 and encoder.channels == 3 and 3 in (x.shape[0], x.shape[2]))
    return x[None] if alone else x


def _fingerprint_of_arrays(pixels: np.ndarray, y: np.ndarray | None, classes: Sequence[str] | None) -> str:
    found = hashlib.sha256(f"{pixels.shape}|{list(classes) if classes is not None else None}|".encode())
    found.update(pixels.data)
    if y is not None:
        found.update(f"|{y.dtype}|".encode())
        found.update(np.ascontiguousarray(y).data)
    return found.hexdigest()


def _moments(batch: np.ndarray) -> np.ndarray:
    """Sums of the pixels and of their squares, for each channel: (2, c). Whole numbers, hence exact."""
    wide = batch.astype(np.uint64)
    return np.stack((wide.sum((0, 2, 3)), (wide * wide).sum((0, 2, 3)))).astype(np.float64)


def _mean_and_std(moments: np.ndarray, count: int) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of pixels / 255; a channel without spread is given that of one grey level."""
    mean = moments[0] / count
    variance = np.maximum(moments[1] / count - mean**2, 0)
    return (mean / 255).tolist(), (np.maximum(np.sqrt(variance), 1) / 255).tolist()


def _picture(image: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0))


def _shape(shape: Sequence[int]) -> str:
    return f"{shape[1]} x {shape[2]} {'grey' if shape[0] == 1 else 'colour'} pixels"


def _natural(text: str) -> list:
    """Sort key by which '2' comes before '10'."""
    return [
        (0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"(\d+)", text) if piece
    ] + [(2, 0, text)]


def _text(value: Any) -> str:
    """A label as its user would write it: 3.0 is '3'."""
    number = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if number else str(value)


def _whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _numbers(value: Any) -> bool:
    fits = isinstance(value, list | tuple) and len(value) <= 3
    return fits and all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e300 for v in value)


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)
