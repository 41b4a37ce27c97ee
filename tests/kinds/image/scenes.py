"""Small scenes with bright shapes, as files that people have: masks, COCO JSON, YOLO text, Pascal VOC XML."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

NAMES = ("square", "bar")


def scenes(count: int, side: int = 32, seed: int = 0):
    """Pictures (side, side), boxes (m, 4) with classes (m,), and masks of class ids with 0 for background."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        image = draw.normal(40, 8, (side, side))
        mask = np.zeros((side, side), np.uint8)
        boxes = []
        for column in (0, side // 2):
            label = int(draw.integers(2))
            wide, tall = (10, 10) if label == 0 else (12, 5)
            left, top = column + int(draw.integers(side // 2 - wide)), int(draw.integers(side - tall))
            image[top : top + tall, left : left + wide] += 150
            mask[top : top + tall, left : left + wide] = label + 1
            boxes.append((left, top, left + wide, top + tall, label))
        yield np.clip(image, 0, 255).astype(np.uint8), boxes, mask


def write_masks(folder: Path, count: int, seed: int = 0) -> Path:
    """images/ and masks/ with class ids, and classes.txt."""
    for index, (image, _, mask) in enumerate(scenes(count, seed=seed)):
        _save(folder / "images" / f"{index}.png", image)
        _save(folder / "masks" / f"{index}.png", mask)
    (folder / "classes.txt").write_text("\n".join(("background", *NAMES)))
    return folder


def write_coco(folder: Path, count: int, seed: int = 0, outlines: bool = False) -> Path:
    """photos/ and boxes.json."""
    images, boxes = [], []
    for index, (image, found, _) in enumerate(scenes(count, seed=seed)):
        _save(folder / "photos" / f"{index}.png", image)
        images.append({"id": index, "file_name": f"{index}.png", "width": 32, "height": 32})
        for left, top, right, bottom, label in found:
            box = {
                "id": len(boxes),
                "image_id": index,
                "category_id": label + 1,
                "bbox": [left, top, right - left, bottom - top],
            }
            if outlines:
                box["segmentation"] = [[left, top, right, top, right, bottom, left, bottom]]
            boxes.append(box)
    kinds = [{"id": place + 1, "name": name} for place, name in enumerate(NAMES)]
    (folder / "boxes.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": kinds}))
    return folder


def write_yolo(folder: Path, count: int, seed: int = 0) -> Path:
    """images/ and labels/ with text files."""
    (folder / "labels").mkdir(parents=True)
    for index, (image, found, _) in enumerate(scenes(count, seed=seed)):
        _save(folder / "images" / f"{index}.png", image)
        lines = [
            f"{label} {(left + right) / 64} {(top + bottom) / 64} {(right - left) / 32} {(bottom - top) / 32}"
            for left, top, right, bottom, label in found
        ]
        (folder / "labels" / f"{index}.txt").write_text("\n".join(lines))
    return folder


def write_voc(folder: Path, count: int, seed: int = 0) -> Path:
    """JPEGImages/ and Annotations/ with XML files."""
    (folder / "Annotations").mkdir(parents=True)
    for index, (image, found, _) in enumerate(scenes(count, seed=seed)):
        _save(folder / "JPEGImages" / f"{index}.png", image)
        objects = "".join(
            f"<object><name>{NAMES[label]}</name><bndbox><xmin>{left + 1}</xmin><ymin>{top + 1}</ymin><xmax>{right}</xmax>"
            f"<ymax>{bottom}</ymax></bndbox></object>"
            for left, top, right, bottom, label in found
        )
        text = f"<annotation><filename>{index}.png</filename>{objects}</annotation>"
        (folder / "Annotations" / f"{index}.xml").write_text(text)
    return folder


def _save(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
