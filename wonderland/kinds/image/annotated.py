"""Images with boxes or masks: opened from folders and files of annotations, all on one canvas."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, read_bytes
from wonderland.data.dataset import Finding, counted
from wonderland.data.decode import guard_decompression
from wonderland.data.folders import Listing, scan
from wonderland.data.pixels import MOST_IN_MEMORY
from wonderland.kinds.image.annotations import Annotations, Broken, Labelled
from wonderland.kinds.image.canvas import OUTSIDE, Canvas, Fit, canvas_size, placed, upright_size
from wonderland.kinds.image.coco import coco_files, is_coco, read_coco
from wonderland.kinds.image.images import Images
from wonderland.kinds.image.masks import class_map, pairs_of, read_mask, read_masks
from wonderland.kinds.image.outlines import outline_mask, painted
from wonderland.kinds.image.voc import is_voc, read_voc
from wonderland.kinds.image.yolo import is_yolo, read_yolo

TASKS = ("detection", "segmentation")
BACKGROUND = "background"


def recognise(path: Path) -> str | None:
    """The form of annotations at a path: "coco", "voc", "yolo" or "masks"; None for none of them, or where it cannot be read."""
    try:
        return _form(path)
    except OSError:
        return None


def _form(path: Path) -> str | None:
    if path.is_file():
        return "coco" if is_coco(path) else None
    if not path.is_dir():
        return None
    if coco_files(path):
        return "coco"
    if is_voc(path):
        return "voc"
    listing = scan(path)
    if not listing.files and not listing.loose:
        return None
    if ".txt" in listing.foreign and is_yolo(path):
        return "yolo"
    return "masks" if pairs_of(listing) is not None else None


def read_annotations(path: Path, task: str | None, skip: bool) -> tuple[Annotations, str]:
    """The annotations at a path, and the task they are for: the one that was asked for, else what they hold."""
    form = recognise(path)
    if form is None:
        raise WonderlandError(
            f"{path} holds no annotations: give images with a folder of masks, a COCO JSON file, YOLO text files or Pascal VOC XML files."
        )
    if form == "masks":
        if task == "detection":
            raise WonderlandError(
                f"{path} has masks and no boxes: leave task (--task) out, or give boxes as COCO JSON, YOLO or VOC files."
            )
        return read_masks(scan(path), skip), "segmentation"
    if form == "coco":
        files = [path] if path.is_file() else coco_files(path)
        annotations = read_coco(files, path.parent if path.is_file() else path, skip)
    else:
        annotations = (read_yolo if form == "yolo" else read_voc)(path, skip)
    if task == "segmentation" and not annotations.outlined:
        raise WonderlandError(
            f"{path} has boxes without outlines, so no masks can be made of them: leave task (--task) out."
        )
    return annotations, task or "detection"


class AnnotatedImages(Images):
    """Images on one canvas with boxes or masks.

    `boxes[i]` (m, 4) and `box_classes[i]` (m,) are in pixels of the canvas; `fits[i]` says how image i lies on it. `masks(rows)`
    gives class codes (b, h, w), 255 where a pixel does not count. `outlined` says whether boxes have masks of their own.
    """

    def __init__(
        self, store: Canvas, annotations: Annotations, task: str, *, name: str, classes: list[str] | None,
        fingerprint: str, origin: dict[str, Any], paths: list[str] | None,
    ):  # fmt: skip
        findings = list(annotations.findings)
        super().__init__(
            store, name=name, y=None, classes=classes, task=task, findings=findings, fingerprint=fingerprint,  # pyright: ignore[reportArgumentType]
            origin=origin, paths=paths,
        )  # fmt: skip
        self.canvas, self.annotations = store, annotations
        self.fits: list[Fit] = store.fits
        self.images = annotations.images
        self.outlined = task == "detection" and annotations.outlined
        self.boxes: list[np.ndarray] = []
        self.box_classes: list[np.ndarray] = []
        self._masks: np.ndarray | None = None
        self.known = False  # whether boxes or masks were read

    def masks(self, rows: np.ndarray) -> np.ndarray:
        """The class of each pixel on the canvas, uint8 (b, h, w)."""
        if self._masks is not None:
            return self._masks[rows]
        masks = np.empty((len(rows), self.height, self.width), np.uint8)
        with guard_decompression():
            for place, row in enumerate(rows):
                masks[place] = self._mask(int(row))
        return masks

    def keep_masks(self) -> None:
        """Read all masks into memory if they fit."""
        if len(self) * self.height * self.width <= MOST_IN_MEMORY:
            self._masks = self.masks(np.arange(len(self)))

    def _mask(self, row: int) -> np.ndarray:
        image, canvas = self.images[row], (self.height, self.width)
        if image.mask is None:
            with named(image.path):
                return painted(image.outlines, self.box_classes[row] + 1, self.fits[row], canvas)
        annotations = self.annotations
        assert annotations.values is not None
        codes = class_map(
            read_mask(image.mask), annotations.values, annotations.in_colour, annotations.ignored, image.mask
        )
        return placed(codes, canvas, nearest=True, outside=OUTSIDE)

    def outlines(self, rows: np.ndarray, side: int = 28) -> list[np.ndarray]:
        """The masks of the boxes of these images, each over its own box: uint8 (m, side, side), 0 or 1."""
        outlines = []
        for row in rows:
            image, fit = self.images[row], self.fits[row]
            with named(image.path):
                masks = [
                    outline_mask(outline, box, side, fit)
                    for outline, box in zip(image.outlines, image.boxes, strict=True)
                ]
            outlines.append(np.stack(masks) if masks else np.zeros((0, side, side), np.uint8))
        return outlines

    def counts(self) -> np.ndarray:
        """How many boxes (or pixels) there are of each class."""
        assert self.classes is not None
        if self.task == "detection":
            joined = np.concatenate([np.zeros(0, np.int64), *self.box_classes])
            return np.bincount(joined, minlength=len(self.classes))
        pieces = np.array_split(np.arange(len(self)), max(1, len(self) // 64))
        return sum(
            (np.bincount(self.masks(rows).ravel(), minlength=256)[: len(self.classes)] for rows in pieces),
            np.zeros(len(self.classes), np.int64),
        )

    def summary(self) -> list[dict[str, Any]]:
        """The boxes or pixels of each class."""
        about = f"{self.height} x {self.width}, {'grey' if self.channels == 1 else 'colour'}"
        if not self.known or not self.classes:
            return [{"class": "(none)", "images": len(self), "pixels": about}]
        counts, noun = self.counts(), "boxes" if self.task == "detection" else "pixels"
        total = max(1, int(counts.sum()))
        return [
            {"class": name, noun: int(count), "share": f"{100 * count / total:.1f} %", "canvas": about}
            for name, count in zip(self.classes, counts, strict=True)
        ]

    def example(self, i: int) -> dict[str, Any]:
        """One image as it lies on the canvas, with its boxes or its mask."""
        picture = self.pixels(np.array([i]))[0]
        shown: dict[str, Any] = {"image": picture[0] if self.channels == 1 else picture.transpose(1, 2, 0)}
        shown["path"] = self.paths[i] if self.paths else f"{self.name}[{i}]"
        if self.known and self.task == "detection" and self.classes:
            shown["target"] = ", ".join(self.classes[code] for code in self.box_classes[i][:5])
            shown["boxes"] = self.boxes[i]
        elif self.known:
            shown["mask"] = self.masks(np.array([i]))[0]
        return shown

    def _few(self, most: int = 12) -> list[int]:
        return list(range(min(most, len(self))))


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Faults in the outlines of an image name it."""
    try:
        yield
    except WonderlandError as error:
        raise WonderlandError(f"The outlines of {path} cannot be used. {error}") from error


def open_annotated(
    path: Path, task: str | None, *, skip: bool, size: int | None, canvas: tuple[int, int] | None = None,
    channels: int | None = None, known: Annotations | None = None, need_boxes: bool = True,
) -> AnnotatedImages:  # fmt: skip
    """The images at a path with their annotations. `canvas`, `channels` and `known` (names, values of masks) are those of training."""
    annotations, task = read_annotations(path, task, skip)
    if known is not None:
        _as_known(annotations, known, task)
    names = annotations.names
    if task == "segmentation" and annotations.form != "masks":
        names = [BACKGROUND, *names]
        annotations.sentence = annotations.sentence.replace("Read as detection", "Read as segmentation").replace(
            "boxes", "outlines"
        )
    broken = Broken(annotations.root, skip)
    sizes = _sizes(annotations, broken)
    if canvas is None:
        objects = None
        if task == "detection":
            sides = [_absolute(image, size) for image, size in zip(annotations.images, sizes, strict=True)]
            lengths = [np.sqrt(np.clip(np.prod(box[:, 2:] - box[:, :2], 1), 1, None)) for box in sides if len(box)]
            objects = np.concatenate(lengths) if lengths else None
        canvas = canvas_size(sizes, size, objects)
    store = Canvas.read([image.path for image in annotations.images], canvas, channels)
    findings: list[Finding] = [Finding("task", str(path), len(store), annotations.sentence), *broken.findings()]
    changed = sum(fit.scale != 1 for fit in store.fits)
    if changed:
        text = f"{counted(changed, 'image was', 'images were')} scaled to fit {canvas[0]} x {canvas[1]} pixels; nothing is cut off."
        findings.append(Finding("size", str(path), changed, text))
    annotations.findings = [*findings, *annotations.findings]
    paths = [str(image.path) for image in annotations.images]
    images = AnnotatedImages(
        store, annotations, task, name=path.resolve().name if path.is_dir() else path.stem, classes=names, fingerprint="",
        origin={"kind": "image", "source": annotations.form, "path": str(path), "size": list(canvas)}, paths=paths,
    )  # fmt: skip
    if need_boxes:
        _add_boxes(images)
        if task == "segmentation":
            images.keep_masks()
    images.known = need_boxes
    images.fingerprint = _fingerprint(images)
    _add_copies(images)
    _add_parts(images)
    return images


def open_plain(
    paths: list[Path], name: str, canvas: tuple[int, int], channels: int, task: str, skip: bool = False
) -> AnnotatedImages:
    """Images without annotations, for predictions."""
    annotations = Annotations(Path("."), "plain", [Labelled(path) for path in paths], [], "")
    _sizes(annotations, Broken(Path("."), skip))
    store = Canvas.read([image.path for image in annotations.images], canvas, channels)
    return AnnotatedImages(
        store, annotations, task, name=name, classes=None, fingerprint="", origin={"kind": "image", "source": "files"},
        paths=[str(path) for path in paths],
    )  # fmt: skip


def _sizes(annotations: Annotations, broken: Broken) -> list[tuple[int, int]]:
    """The size of every image; those that cannot be read are left out, or stop."""
    kept, sizes = [], []
    with guard_decompression():
        for image in annotations.images:
            try:
                sizes.append(upright_size(image.path))
            except WonderlandError as error:
                broken.add(str(error))
            else:
                kept.append(image)
    if not kept:
        raise WonderlandError(f"None of the {len(annotations.images)} images of {annotations.root} can be read.")
    annotations.images = kept
    return sizes


def _absolute(image: Labelled, size: tuple[int, int]) -> np.ndarray:
    return image.boxes * np.array([size[1], size[0]] * 2) if image.relative else image.boxes


def _add_boxes(images: AnnotatedImages) -> None:
    """Boxes on the canvas: cut at the border of the image; those outside of it or without area are left out and counted."""
    cut, gone = 0, 0
    first: dict[str, Path] = {}
    for image, fit in zip(images.images, images.fits, strict=True):
        boxes = _absolute(image, (fit.height, fit.width))
        if image.relative:
            size = np.array([fit.width, fit.height])
            image.outlines = [None if rings is None else [ring * size for ring in rings] for rings in image.outlines]
        inside = boxes.clip(0, [fit.width, fit.height] * 2)
        beyond = (np.abs(inside - boxes) > 1.0).any(1)
        kept = np.asarray(((inside[:, 2:] - inside[:, :2]) >= 0.5).all(1))
        if (~kept).any():
            first.setdefault("gone", image.path)
        if (beyond & kept).any():
            first.setdefault("cut", image.path)
        cut, gone = cut + int((beyond & kept).sum()), gone + int((~kept).sum())
        if image.outlines and not kept.all():
            image.outlines = [outline for outline, stays in zip(image.outlines, kept, strict=True) if stays]
        image.boxes, image.classes, image.relative = inside[kept], image.classes[kept], False
        images.boxes.append((inside[kept] * fit.scale).astype(np.float32))
        images.box_classes.append(image.classes)
    findings = []
    if cut:
        text = f"{counted(cut, 'box reaches', 'boxes reach')} beyond the image and {'is' if cut == 1 else 'are'} cut at its border: {first['cut'].name}"
        findings.append(Finding("boxes", images.name, cut, text + (", ..." if cut > 1 else ".")))
    if gone:
        text = f"{counted(gone, 'box lies', 'boxes lie')} outside of the image or {'has' if gone == 1 else 'have'} no area, and {'is' if gone == 1 else 'are'} left out: {first['gone'].name}"
        findings.append(Finding("boxes", images.name, gone, text + (", ..." if gone > 1 else ".")))
    empty = sum(not len(boxes) for boxes in images.boxes) if images.task == "detection" else 0
    if empty:
        text = f"{counted(empty, 'image has', 'images have')} no boxes; they are trained on as background."
        findings.append(Finding("single row", images.name, empty, text))
    images.findings += findings
    if images.task == "detection" and not any(len(boxes) for boxes in images.boxes):
        raise WonderlandError(f"{images.name} has no box inside of an image, so there is nothing to find.")


def _as_known(annotations: Annotations, known: Annotations, task: str) -> None:
    """Give annotations the class numbers of training; a class that the model does not know is refused."""
    if annotations.form == "masks" and task == "segmentation" and known.values is not None:
        annotations.values, annotations.in_colour, annotations.names = known.values, known.in_colour, known.names
        annotations.ignored = known.ignored | annotations.ignored
        return
    names = [name for name in known.names if name != BACKGROUND] if task == "segmentation" else known.names
    used = {int(code) for image in annotations.images for code in image.classes}
    for code in used:
        if annotations.names[code] not in names:
            raise WonderlandError(
                f"{annotations.root} has the class {annotations.names[code]!r}, which this model does not know."
            )
    table = np.array([names.index(name) if name in names else -1 for name in annotations.names], np.int64)
    for image in annotations.images:
        image.classes = table[image.classes]
    annotations.names = list(names)


def _fingerprint(images: AnnotatedImages) -> str:
    """SHA-256 over the contents of images and annotations, whatever their order."""
    lines = []
    for row, digest in enumerate(images.canvas.digests):
        image = images.images[row]
        answer_digest = hashlib.sha256(
            np.ascontiguousarray(image.boxes).tobytes() + image.classes.astype("<i8").tobytes()
        )
        for outline in image.outlines:
            answer_digest.update(
                repr(outline if isinstance(outline, dict) else [ring.tolist() for ring in outline or []]).encode()
            )
        if image.mask is not None:
            answer_digest.update(read_bytes(image.mask, "image_bytes"))
        lines.append(f"{Path(images.paths[row] if images.paths else '').name}\0{digest}\0{answer_digest.hexdigest()}\n")
    head = repr((images.task, images.classes, images.height, images.width))
    return hashlib.sha256("".join([head, *sorted(lines)]).encode()).hexdigest()


def _add_copies(images: AnnotatedImages) -> None:
    """Copies of an image go into the same part."""
    digests = images.canvas.digests
    codes = np.unique(np.array(digests), return_inverse=True)[1]
    copies = len(digests) - len(set(digests))
    if copies and len(set(digests)) >= 8:
        images.groups = codes.astype(np.int64)
        text = f"{counted(copies, 'image is a copy', 'images are copies')} of another; copies stay in one part of the split."
        images.findings.append(Finding("copies", images.name, copies, text))


def _add_parts(images: AnnotatedImages) -> None:
    """Parts that folders or files name: train and test, or train and validation, whose images are then the test part."""
    named = [image.part for image in images.images]
    if "train" not in named or len(set(named)) < 2 or None in named:
        return
    if "test" not in named:
        named = ["test" if part == "validation" else part for part in named]
    order = {"train": 0, "validation": 1, "test": 3}
    images.assigned = np.array([order[str(part)] for part in named], np.int64)
    counts = {name: named.count(name) for name in order if name in named}
    text = f"The parts are those of the folders or files: {', '.join(f'{name} {count}' for name, count in counts.items())}."
    images.findings.append(Finding("group", images.name, len(named), text))


def listing_paths(listing: Listing) -> list[Path]:
    """The images of a folder, without its masks."""
    pairs = pairs_of(listing)
    return list(pairs[0].values()) if pairs is not None else [*listing.loose, *(path for path, _ in listing.files)]
