"""Found boxes and regions as JSON in the form of COCO."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from wonderland.core import WonderlandError, write_bytes


def write_boxes(
    path: str,
    detections: Sequence[Mapping[str, Tensor]],
    paths: Sequence[str],
    fits: Sequence[Any],
    classes: Sequence[str],
) -> None:
    """Images, boxes [left, top, width, height] with a score, and categories; masks of boxes as run-length codes."""
    check_json(path)
    boxes: list[dict[str, Any]] = []
    for row, image in enumerate(detections):
        for place, (box, score, label) in enumerate(
            zip(image["boxes"].tolist(), image["scores"].tolist(), image["classes"].tolist(), strict=True)
        ):
            entry = {
                "id": len(boxes) + 1,
                "image_id": row + 1,
                "category_id": label + 1,
                "bbox": _sides(box),
                "score": round(score, 6),
            }
            if "masks" in image:
                entry["segmentation"] = run_lengths(mask_in_image(image["masks"][place], box, fits[row]))
            boxes.append(entry)
    _write(path, paths, fits, classes, boxes)


class Regions:
    """Collects the region of each class in each image, and writes them at the end; without a path it does nothing."""

    def __init__(
        self, path: str | None, paths: Sequence[str], fits: Sequence[Any], classes: Sequence[str], background: bool
    ):
        self.path, self.paths, self.fits, self.classes, self.background = path, paths, fits, classes, background
        self.rows: list[dict[str, Any]] = []
        if path is not None:
            check_json(path)

    def add(self, row: int, mask: np.ndarray, chances: Tensor) -> None:
        """The classes of the pixels of one image (h, w), and their probabilities (classes, h, w)."""
        if self.path is None:
            return
        for label in np.unique(mask).tolist():
            if label == 0 and self.background:
                continue
            own = mask == label
            ys, xs = own.nonzero()
            box = [float(xs.min()), float(ys.min()), float(xs.max() + 1), float(ys.max() + 1)]
            score = float(chances[label].numpy()[own].mean())
            self.rows.append({
                "id": len(self.rows) + 1, "image_id": row + 1, "category_id": label + 1, "bbox": _sides(box),
                "area": int(own.sum()), "score": round(score, 6), "segmentation": run_lengths(own.astype(np.uint8)),
            })  # fmt: skip

    def close(self) -> None:
        """Write the file."""
        if self.path is not None:
            _write(self.path, self.paths, self.fits, self.classes, self.rows)


def write_regions(
    path: str | None, paths: Sequence[str], fits: Sequence[Any], classes: Sequence[str], background: bool
) -> Regions:
    """A writer of regions for `--json`; see `Regions`."""
    return Regions(path, paths, fits, classes, background)


def check_json(path: str) -> None:
    """Refuse a name that does not end in .json, or lies in no folder."""
    if Path(path).suffix.casefold() != ".json":
        raise WonderlandError(f"Boxes and masks are written as .json, and {path!r} ends otherwise.")
    if not Path(path).absolute().parent.is_dir():
        raise WonderlandError(f"The folder of {path} does not exist: make it first.")


def run_lengths(mask: np.ndarray) -> dict[str, Any]:
    """A mask (h, w) of 0 and 1 as alternating runs of zeros and ones, column by column.

    >>> run_lengths(np.array([[0, 1], [1, 0]]))
    {'size': [2, 2], 'counts': [1, 2, 1]}
    """
    return {"size": list(mask.shape), "counts": _runs(mask.T.ravel())}


def _runs(flat: np.ndarray) -> list[int]:
    edges = np.flatnonzero(np.diff(flat.astype(np.int8))) + 1
    runs = np.diff(np.concatenate([[0], edges, [len(flat)]])).tolist()
    return [0, *runs] if len(flat) and flat[0] else runs


def mask_in_image(mask: Tensor, box: Sequence[float], fit: Any) -> np.ndarray:
    """A mask over a box, as probabilities (s, s), painted into its image: uint8 (height, width), 0 or 1."""
    from PIL import Image

    full_mask = np.zeros((fit.height, fit.width), np.uint8)
    left, top = max(0, int(box[0])), max(0, int(box[1]))
    right, bottom = min(fit.width, int(np.ceil(box[2]))), min(fit.height, int(np.ceil(box[3])))
    if right > left and bottom > top:
        picture = Image.fromarray(mask.float().numpy()).resize((right - left, bottom - top), Image.Resampling.BILINEAR)
        full_mask[top:bottom, left:right] = np.asarray(picture) >= 0.5
    return full_mask


def _sides(box: Sequence[float]) -> list[float]:
    return [round(box[0], 2), round(box[1], 2), round(box[2] - box[0], 2), round(box[3] - box[1], 2)]


def _write(
    path: str, paths: Sequence[str], fits: Sequence[Any], classes: Sequence[str], rows: list[dict[str, Any]]
) -> None:
    images = [
        {"id": number, "file_name": str(name), "height": fit.height, "width": fit.width}
        for number, (name, fit) in enumerate(zip(paths, fits, strict=True), 1)
    ]
    categories = [{"id": number, "name": name} for number, name in enumerate(classes, 1)]
    value = {"images": images, "annotations": rows, "categories": categories}
    write_bytes(path, json.dumps(value, ensure_ascii=True).encode())
