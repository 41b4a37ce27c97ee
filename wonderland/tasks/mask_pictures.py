"""Masks as pictures: laid over their images, and as files of class ids."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from PIL import Image

from wonderland.tasks.box_pictures import (
    SIDE,
    colour_of,
    data_uri,
    original,
    picture_names,
    ready_folder,
    write_picture,
)


def palette(count: int) -> np.ndarray:
    """A colour for each class, black for class 0: uint8 (count, 3)."""
    colours = [[0, 0, 0]]
    for label in range(1, count):
        text = colour_of(label - 1)
        colours.append([int(text[place : place + 2], 16) for place in (1, 3, 5)])
    return np.array(colours[:count], np.uint8)


def overlaid(image: np.ndarray, mask: np.ndarray, classes: int) -> Image.Image:
    """An image (h, w) or (h, w, 3) with its mask (h, w) laid over it; class 0 and pixels that do not count stay clear."""
    plain = np.repeat(image[:, :, None], 3, 2) if image.ndim == 2 else image
    colours = np.concatenate([palette(classes), np.zeros((256 - classes, 3), np.uint8)])[mask]
    seen = ((mask > 0) & (mask < classes))[:, :, None]
    return Image.fromarray(np.where(seen, (plain * 0.45 + colours * 0.55).astype(np.uint8), plain))


def mask_pictures(
    dataset: Any, rows: np.ndarray, predicted: Sequence[np.ndarray], classes: Sequence[str], which: Iterable[int]
) -> list[dict[str, str]]:
    """Pictures with the true mask at the left and the found one at the right, for the report."""
    pictures = []
    for i in which:
        row = int(rows[i])
        example, true = dataset.example(row), dataset.masks(np.array([row]))[0]
        image = np.ascontiguousarray(example["image"])
        both = [overlaid(image, mask, len(classes)) for mask in (true, predicted[i])]
        scale = min(4.0, SIDE / max(image.shape[:2]))
        size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
        sheet = Image.new("RGB", (2 * size[0] + 6, size[1]), "white")
        for place, picture in enumerate(both):
            sheet.paste(picture.resize(size, Image.Resampling.NEAREST), (place * (size[0] + 6), 0))
        wrong = float(((true != predicted[i]) & (true != 255)).mean())
        pictures.append(
            {
                "image": data_uri(sheet),
                "path": str(example["path"]),
                "words": f"{100 * wrong:.1f} % of the pixels wrong",
            }
        )
    return pictures


def write_masks(
    asked: Any, dataset: Any, paths: Sequence[str], classes: Sequence[str]
) -> Callable[[int, np.ndarray], None]:
    """A function that writes a mask (h, w) as NAME_mask.png with class ids in a palette, and NAME.png with it over the image."""
    if getattr(asked, "draw", None) is None:
        return lambda row, mask: None
    out, names, colours = ready_folder(asked.draw), picture_names(paths), palette(len(classes))

    def write(row: int, mask: np.ndarray) -> None:
        ids = Image.fromarray(mask)
        ids.putpalette(colours.tobytes())
        write_picture(out / f"{names[row]}_mask.png", ids)
        write_picture(out / f"{names[row]}.png", overlaid(original(dataset, row), mask, len(classes)))

    return write
