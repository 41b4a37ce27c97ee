"""Boxes drawn over images: true ones dashed, found ones in the colour of their class."""

import base64
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from torch import Tensor

from wonderland.core import WonderlandError, disk_trouble, write_bytes
from wonderland.ops.vision.average_precision import RECALLS, precision_at_recalls
from wonderland.tasks.box_files import mask_in_image

COLOURS = ("#e6550d", "#3182bd", "#31a354", "#756bb1", "#d6336c", "#0ca678", "#e8a200", "#495057", "#8c564b", "#17becf")
SHOWN, SIDE = 6, 320


def colour_of(label: int) -> str:
    """The colour of a class."""
    return COLOURS[label % len(COLOURS)]


def draw_boxes(
    image: np.ndarray, detections: Mapping[str, Tensor], classes: Sequence[str], *, truth: Mapping[str, Tensor] | None = None,
    scale: float = 1.0,
) -> Image.Image:  # fmt: skip
    """A picture with boxes (in its pixels), enlarged by `scale`: found ones with class and score, true ones dashed in white."""
    picture = Image.fromarray(image).convert("RGB")
    if scale != 1:
        way = Image.Resampling.NEAREST if scale > 2 else Image.Resampling.BILINEAR
        picture = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))), way)
    draw = ImageDraw.Draw(picture)
    if truth is not None:
        for box in (truth["boxes"] * scale).tolist():
            _dashed(draw, box)
    wide = max(1, round(max(picture.size) / 250))
    rows = zip(
        (detections["boxes"] * scale).tolist(),
        detections["scores"].tolist(),
        detections["classes"].tolist(),
        strict=True,
    )
    for box, score, label in sorted(rows, key=lambda row: row[1]):
        colour = colour_of(label)
        draw.rectangle(_ordered(box), outline=colour, width=wide)
        text = f"{classes[label]} {score:.2f}"
        left, top, right, bottom = draw.textbbox((box[0] + 2, max(0, box[1] - 11)), text)
        draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill=colour)
        draw.text((box[0] + 2, max(0, box[1] - 11)), text, fill="white")
    return picture


def _ordered(box: Sequence[float]) -> tuple[float, float, float, float]:
    return box[0], box[1], max(box[0], box[2]), max(box[1], box[3])


def _dashed(draw: ImageDraw.ImageDraw, box: Sequence[float], step: int = 8) -> None:
    left, top, right, bottom = box
    for x in np.arange(left, right, step):
        for y in (top, bottom):
            draw.line((x, y, min(x + step / 2, right), y), fill="white", width=2)
    for y in np.arange(top, bottom, step):
        for x in (left, right):
            draw.line((x, y, x, min(y + step / 2, bottom)), fill="white", width=2)


def example_pictures(
    dataset: Any, rows: np.ndarray, detections: Sequence[Mapping[str, Tensor]], truth: Sequence[Mapping[str, Tensor]],
    classes: Sequence[str], which: Iterable[int],
) -> list[dict[str, str]]:  # fmt: skip
    """Pictures of some images with true and found boxes, for the report."""
    pictures = []
    for i in which:
        example = dataset.example(int(rows[i]))
        image = np.ascontiguousarray(example["image"])
        scale = min(4.0, SIDE / max(image.shape[:2]))
        picture = draw_boxes(image, detections[i], classes, truth=truth[i], scale=scale)
        words = f"{len(truth[i]['boxes'])} true, {len(detections[i]['boxes'])} found"
        pictures.append({"image": data_uri(picture), "path": str(example["path"]), "words": words})
    return pictures


def precision_curves(detections: Any, truth: Any, classes: Sequence[str]) -> dict[str, Any]:
    """Precision at 101 recalls at an IoU of one half, for the classes with the most boxes."""
    counts: dict[int, int] = {}
    for row in truth:
        for label in row["classes"].tolist():
            counts[label] = counts.get(label, 0) + 1
    order = sorted(counts, key=lambda label: (-counts[label], label))
    series = {classes[label]: precision_at_recalls(detections, truth, label) for label in order}
    if not series:
        return {}
    mean = np.mean(list(series.values()), 0)
    worst = (
        sorted(series, key=lambda name: float(np.mean(series[name])))[: SHOWN - 1]
        if len(series) > SHOWN
        else list(series)
    )
    shown = {"all classes": mean.tolist()} if len(series) > 1 else {}
    areas = [{"name": name, "value": float(np.mean(values))} for name, values in series.items()]
    return {
        "recall": RECALLS.tolist(),
        "series": shown | {name: series[name].tolist() for name in worst},
        "areas": areas,
    }


def draw_detections(
    folder: str, dataset: Any, detections: Sequence[Mapping[str, Tensor]], paths: Sequence[str], classes: Sequence[str]
) -> None:
    """A picture of every image with what was found in it, in its own size, written into a folder."""
    out, names = ready_folder(folder), picture_names(paths)
    for row, boxes in enumerate(detections):
        image = original(dataset, row)
        if "masks" in boxes:
            image = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, 2)
            image = image.copy()
            for mask, box, label in zip(
                boxes["masks"], boxes["boxes"].tolist(), boxes["classes"].tolist(), strict=True
            ):
                own = mask_in_image(mask, box, dataset.fits[row]).astype(bool)
                red, green, blue = (int(colour_of(label)[place : place + 2], 16) for place in (1, 3, 5))
                image[own] = (image[own] * 0.5 + np.array([red, green, blue]) * 0.5).astype(np.uint8)
        write_picture(out / f"{names[row]}.png", draw_boxes(image, boxes, classes))


def original(dataset: Any, row: int) -> np.ndarray:
    """An image in its own size, from its file, or from the canvas for data in memory."""
    from wonderland.data.decode import decode

    if dataset.images:
        return decode(dataset.images[row].path)
    example = dataset.example(row)
    return np.ascontiguousarray(example["image"])


def ready_folder(folder: str) -> Path:
    """A folder to write pictures into, made if it is not there; its parent has to be."""
    path = Path(folder)
    if not path.absolute().parent.is_dir():
        raise WonderlandError(f"The folder of {folder} does not exist: make it first.")
    if path.exists() and not path.is_dir():
        raise WonderlandError(f"{folder} is a file: name a folder for the pictures.")
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise disk_trouble(error, path) from error
    return path


def picture_names(paths: Sequence[str]) -> list[str]:
    """A file name without suffix for each image: that of the image, and its number where several have the same.

    >>> picture_names(["a/1.png", "b/1.png", "a/2.png"])
    ['1-0', '1-1', '2']
    """
    stems = [Path(str(path)).stem for path in paths]
    counts = Counter(stems)
    return [stem if counts[stem] == 1 else f"{stem}-{row}" for row, stem in enumerate(stems)]


def write_picture(path: Path, picture: Image.Image) -> None:
    """Write a picture as PNG."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    write_bytes(path, buffer.getvalue())


def data_uri(picture: Image.Image) -> str:
    """A PNG as a data URI, with at most 128 colours to keep the page small."""
    buffer = io.BytesIO()
    picture.convert("RGB").quantize(128).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
