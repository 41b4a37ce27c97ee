"""Scenes of digits as files: images with COCO JSON, with YOLO text files, or with masks."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

BRIGHT = 60


def scenes(
    count: int, side: int, seed: int
) -> Iterator[tuple[np.ndarray, list[tuple[int, int, int, int, int]], np.ndarray]]:
    """Pictures (side, side) with noise, boxes (left, top, right, bottom, digit) that do not touch, and masks with digit + 1."""
    drawn, digits = np.random.default_rng(seed), load_digits()
    for _ in range(count):
        image = drawn.normal(20, 8, (side, side))
        mask, boxes = np.zeros((side, side), np.uint8), []
        for _ in range(int(drawn.integers(2, 6))):
            row, size = int(drawn.integers(len(digits.images))), int(drawn.integers(side // 4, side // 2))
            small = Image.fromarray((digits.images[row] * 15.9).astype(np.uint8))
            digit = np.asarray(small.resize((size, size), Image.Resampling.BICUBIC))
            ys, xs = (digit > BRIGHT).nonzero()
            digit = digit[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]
            for _ in range(30):
                top, left = (int(drawn.integers(0, side - extent)) for extent in digit.shape)
                box = (left, top, left + digit.shape[1], top + digit.shape[0])
                if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes):
                    boxes.append((*box, int(digits.target[row])))
                    image[box[1] : box[3], box[0] : box[2]] += digit * 0.85
                    mask[box[1] : box[3], box[0] : box[2]][digit > BRIGHT] = digits.target[row] + 1
                    break
        yield np.clip(image, 0, 255).astype(np.uint8), boxes, mask


def write(folder: Path, form: str, count: int, side: int, seed: int = 0) -> Path:
    """Write scenes as "coco", "yolo" or "masks"."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    images, boxes = [], []
    for index, (image, found, mask) in enumerate(scenes(count, side, seed)):
        name = f"{index:05d}"
        Image.fromarray(image).save(folder / "images" / f"{name}.png")
        images.append({"id": index, "file_name": f"{name}.png", "width": side, "height": side})
        for left, top, right, bottom, digit in found:
            sides = [left, top, right - left, bottom - top]
            boxes.append({"id": len(boxes), "image_id": index, "category_id": digit, "bbox": sides})
        if form == "masks":
            (folder / "masks").mkdir(exist_ok=True)
            Image.fromarray(mask).save(folder / "masks" / f"{name}.png")
        if form == "yolo":
            (folder / "labels").mkdir(exist_ok=True)
            lines = [
                f"{digit} {(left + right) / 2 / side} {(top + bottom) / 2 / side} {(right - left) / side} {(bottom - top) / side}"
                for left, top, right, bottom, digit in found
            ]
            (folder / "labels" / f"{name}.txt").write_text("\n".join(lines))
    if form == "coco":
        kinds = [{"id": digit, "name": str(digit)} for digit in range(10)]
        (folder / "boxes.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": kinds}))
    if form != "coco":
        names = [str(digit) for digit in range(10)]
        (folder / "classes.txt").write_text("\n".join(["background", *names] if form == "masks" else names))
    return folder
