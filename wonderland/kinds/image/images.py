"""Images: folders of class folders, or arrays, as uint8 pixels of one size."""

import base64
import hashlib
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from wonderland.core import WonderlandError
from wonderland.core.errors import visible
from wonderland.data.arrays import LARGEST_SIDE, class_task, fingerprint_of_arrays, from_numbers, is_side, labels
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.folders import (
    Listing,
    by_parts,
    natural,
    part_of_folder,
    refuse_flat,
    scan,
    without_broken,
)
from wonderland.data.pixels import Files, Memory, read_files
from wonderland.data.split import PARTS as SPLIT_PARTS


class Images(Dataset):
    """Pictures of one size, with a class or a value each.

    `pixels(rows)` gives them as uint8 (b, c, h, w): from memory when all fit into 1 GiB, otherwise decoded when asked for.

    >>> images = Images.from_arrays(np.zeros((4, 8, 8), np.uint8), ["a", "b", "a", "b"], name="squares")
    >>> images
    <Images squares: 4 images, binary, 2 classes>
    >>> images.pixels([0, 3]).shape
    (2, 1, 8, 8)
    """

    kind = "image"
    noun = "images"

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
        limit_bytes: int | None = None,
        workers: int | None = None,
        skip_broken: bool = False,
    ) -> "Images":
        """Open a folder with one folder of PNG, JPEG, WebP, GIF, BMP or TIFF files for each class.

        All images get one size: `size` (side, or height and width), or one that suits them: the median short
        side up to 64, and for larger images their shape with about 96 x 96 pixels (64 x 64 above 5,000 images). `limit_bytes` is
        the largest file that is read; `workers` the number of threads that decode. With `skip_broken`, images that cannot be
        read are left out and listed in the findings.
        """
        if target is not None:
            raise WonderlandError("The class of an image is the name of its folder: leave the target out.")
        if task == "regression":
            raise WonderlandError(
                "Class folders hold classes, not values: for a regression give arrays of images and values."
            )
        listing = by_parts(scan(Path(path)))
        if not listing.classes:
            refuse_flat(listing)
        if not listing.parted and all(map(part_of_folder, listing.classes)):
            raise WonderlandError(
                f"{path} holds the parts of a split ({', '.join(listing.classes)}), not classes. "
                "Put class folders into them, or give one of them: its own folders are then the classes."
            )
        if not listing.files:
            refuse_flat(listing)
        broken: list[Finding] = []
        if skip_broken:
            listing, broken = without_broken(listing, limit_bytes=limit_bytes)
        labels = sorted({label for _, label in listing.files}, key=natural)
        code = {label: place for place, label in enumerate(labels)}
        y = np.array([code[label] for _, label in listing.files], np.int64)
        task = class_task(labels, task, f"{path} holds images of")
        stop_if_strict(listing.findings(), strict)
        images = cls.from_listing(listing, y, labels, task, size=_size(size), limit_bytes=limit_bytes, workers=workers)
        images.findings = [*broken, *images.findings]
        if listing.parted:
            _assign_parts(images, listing)
        stop_if_strict(images.findings, strict)
        return images

    @classmethod
    def from_listing(
        cls,
        listing: Listing,
        y: np.ndarray | None,
        classes: list[str] | None,
        task: str | None,
        *,
        size: tuple[int, int] | None,
        limit_bytes: int | None = None,
        workers: int | None = None,
        channels: int | None = None,
    ) -> "Images":
        """Read the files of a listing; `y` has their class codes, if there are any."""
        paths = [path for path, _ in listing.files]
        store, shapes, digests, notes = read_files(paths, size, limit_bytes, workers, channels)
        height, width = store.shape[1:]
        lines = sorted(f"{listing.relative(path)}\0{digest}\n" for path, digest in zip(paths, digests, strict=True))
        return cls(
            store,
            name=listing.name,
            y=y,
            classes=classes,
            task=task,
            findings=[
                *listing.findings(),
                *_copies(digests, y, listing),
                *_converted(notes, listing),
                *_resized(shapes, height, width, listing),
            ],
            fingerprint=hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest(),
            origin={"kind": "image", "source": "folder", "path": str(listing.root), "size": [height, width]},
            paths=[str(path) for path in paths],
        )

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
        pixels, value_range, findings = from_numbers(x, name, layout, value_range)
        codes = None
        if y is not None:
            codes, classes, task, noted = labels(y, len(pixels), name, classes, task)
            findings += noted
        stop_if_strict(findings, strict)
        origin = {"kind": "image", "source": "arrays", "name": name}
        return cls(
            Memory(pixels),
            name=name,
            y=codes,
            classes=list(classes) if classes is not None and task != "regression" else None,
            task=task if codes is not None else None,
            findings=findings,
            fingerprint=fingerprint_of_arrays(pixels, codes, classes),
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

    def labels(self) -> dict[str, list[Any]]:
        """The path of each image that came from a file."""
        return {} if self.paths is None else {"path": [visible(str(path)) for path in self.paths]}

    def shown(self, i: int) -> dict[str, Any]:
        """A small picture, and where it came from."""
        example = self.example(i)
        return {"image": thumbnail(example["image"]), "path": example.get("path")}

    def example(self, i: int) -> dict[str, Any]:
        """One image for people to look at: uint8 (h, w) or (h, w, 3), where it came from, and its class or value."""
        picture = self.pixels([i])[0]
        shown = {"image": picture[0] if self.channels == 1 else picture.transpose(1, 2, 0)}
        shown["path"] = self.paths[i] if self.paths else f"{self.name}[{i}]"
        if self.y is not None:
            shown["target"] = self._answer(i)
        return shown

    def _answer(self, i: int) -> Any:
        """The class of an image, its labels as one text, or its value."""
        assert self.y is not None
        if self.classes is None:
            return float(self.y[i])
        if self.y.ndim == 2:
            return ", ".join(self.classes[code] for code in np.flatnonzero(self.y[i])) or "none"
        return self.classes[self.y[i]]

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
        several = self.y.ndim == 2
        counts = self.y.sum(0).astype(int) if several else np.bincount(self.y, minlength=len(self.classes))
        return [
            {
                "label" if several else "class": name,
                "images": int(count),
                "share": f"{100 * count / len(self):.1f} %",
                "pixels": about,
            }
            for name, count in zip(self.classes, counts, strict=True)
        ]

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<div>{''.join(self._thumbnail(i) for i in self._few())}</div>"

    def _few(self, most: int = 12) -> list[int]:
        """Rows to show: one of each class in turn."""
        if self.classes is None or self.y is None or self.y.ndim == 2:
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


def _assign_parts(images: Images, listing: Listing) -> None:
    """The parts that folders name: train, and test or validation; without a test folder, validation images are the test part."""
    named = [part_of_folder(path.relative_to(listing.root).parts[0]) or "train" for path, _ in listing.files]
    if len(set(named)) > 1 and "train" in named:
        instead = {"validation": "test"} if "test" not in named else {}
        images.assigned = np.array([SPLIT_PARTS.index(instead.get(part, part)) for part in named], np.int64)
    counts = ", ".join(f"{part} {named.count(part):,}" for part in SPLIT_PARTS if part in named)
    later = " Images of validation are the test part." if "test" not in named and "validation" in named else ""
    text = f"The folders are the parts of a split, and those in them the classes: {counts}.{later}"
    images.findings.append(Finding("group", str(listing.root), len(named), text))


def _size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    sides = (size, size) if isinstance(size, int) else tuple(size)
    if len(sides) != 2 or not all(map(is_side, sides)):
        raise WonderlandError(f"size is one side, or height and width, from 1 to {LARGEST_SIDE} pixels, not {size!r}.")
    return sides


def _copies(digests: list[str], y: np.ndarray | None, listing: Listing) -> list[Finding]:
    first: dict[str, int] = {}
    copies, contradictions = 0, 0
    for row, digest in enumerate(digests):
        other = first.setdefault(digest, row)
        copies += other != row
        contradictions += other != row and y is not None and bool(np.any(y[other] != y[row]))
    findings = []
    if copies:
        text = f"{counted(copies, 'image is a copy', 'images are copies')} of another: scores may look better than they are."
        findings.append(Finding("copies", str(listing.root), copies, text))
    if contradictions:
        text = f"{counted(contradictions, 'image lies', 'images lie')} in two class folders at once: one of the two must be wrong."
        findings.append(Finding("contradictions", str(listing.root), contradictions, text))
    return findings


CONVERTED = {
    "animated": ("image is animated: its first frame is taken", "images are animated: their first frames are taken"),
    "CMYK": ("image in CMYK is read as RGB", "images in CMYK are read as RGB"),
    "16 bits": ("grey image of 16 bits is read with 8", "grey images of 16 bits are read with 8"),
}


def _converted(notes: list[str], listing: Listing) -> list[Finding]:
    """What decoding changed, counted."""
    counts = {note: notes.count(note) for note in CONVERTED}
    return [
        Finding(note, str(listing.root), count, f"{counted(count, *CONVERTED[note])}.")
        for note, count in counts.items()
        if count
    ]


def _resized(shapes: list[tuple[int, int]], height: int, width: int, listing: Listing) -> list[Finding]:
    changed = sum(shape != (height, width) for shape in shapes)
    if not changed:
        return []
    were = "was" if changed == 1 else "were"
    text = f"{changed:,} of {len(shapes):,} images {were} cut and resized to {height} x {width} pixels."
    return [Finding("size", str(listing.root), changed, text)]


def thumbnail(image: np.ndarray, *, side: int = 96) -> str:
    """A small PNG as a data URI; tiny images are enlarged pixel by pixel."""
    picture = Image.fromarray(image)
    scale = side / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    picture = picture.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BILINEAR)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
