"""COCO JSON: images, boxes, outlines and class names in one file."""

import json
import os
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from wonderland.core import WonderlandError, read_bytes
from wonderland.data.dataset import Finding, counted
from wonderland.data.decode import SUFFIXES
from wonderland.kinds.image.annotations import Annotations, Broken, Labelled

HEAD = 1 << 16


def is_coco(path: Path) -> bool:
    """Whether a file starts like COCO JSON, by its first bytes and by its keys where it is small."""
    try:
        if path.suffix.casefold() != ".json" or not path.is_file():
            return False
        with open(path, "rb") as file:
            head = file.read(HEAD)
            if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
                return False
            file.seek(max(0, os.path.getsize(path) - HEAD))
            ends = head + file.read(HEAD)
    except OSError:
        return False
    return sum(key in ends for key in (b'"images"', b'"annotations"', b'"categories"', b'"file_name"', b'"bbox"')) >= 2


def coco_files(root: Path) -> list[Path]:
    """The COCO files of a folder: beside its images, or in a folder annotations; those of outlines before others."""
    places = [root, *(path for path in sorted(root.iterdir()) if path.is_dir() and not path.name.startswith("."))]
    files = [path for place in places for path in sorted(place.glob("*.json")) if is_coco(path)]
    instances = [path for path in files if "instance" in path.name.casefold()]
    return instances or files


def read_coco(paths: list[Path], root: Path, skip: bool) -> Annotations:
    """The images of COCO files, in their order; `root` is where images are looked for."""
    broken = Broken(root, skip)
    values = [_load(path) for path in paths]
    names = _categories(values, paths)
    ids = sorted(names)
    code = {number: place for place, number in enumerate(ids)}
    where = {path: _files_below(root) for path in paths[:1]}[paths[0]]
    images: list[Labelled] = []
    crowds = 0
    for path, value in zip(paths, values, strict=True):
        part = _part_of(path) if len(paths) > 1 else None
        own: dict[Any, Labelled] = {}
        for entry in _entries(value, "images", path):
            name, number = entry.get("file_name"), entry.get("id")
            if not isinstance(name, str) or not isinstance(number, int | str):
                raise WonderlandError(f"{path} has an image without a file_name and an id.")
            file = _find(name, path, where)
            if file is None:
                broken.add(f"{path} names the image {name}, which is neither beside it nor below {root}.")
                continue
            own[number] = Labelled(file, part=part)
        gathered: dict[Any, list[tuple[list[float], int, Any]]] = {number: [] for number in own}
        known = {entry.get("id") for entry in _entries(value, "images", path)}
        for entry in _entries(value, "annotations", path):
            number = entry.get("image_id")
            if not isinstance(number, int | str) or number not in known:
                broken.add(f"{path} has an annotation for image {number!r}, which it does not list.")
                continue
            if number not in own:
                continue
            if entry.get("iscrowd"):
                crowds += 1
                continue
            box: Any = entry.get("bbox")
            outline = entry.get("segmentation")
            if not _is_box(box) and isinstance(outline, list) and outline:
                box = _box_of(outline, path)
            category: Any = entry.get("category_id")
            if not _is_box(box) or not _is_id(category) or category not in code:
                broken.add(
                    f"{path} has an annotation of image {own[number].path.name} without a box [left, top, width, height] and a category."
                )
                continue
            left, top, wide, tall = map(float, box)
            gathered[number].append(([left, top, left + wide, top + tall], code[category], _outline(outline)))
        for number, image in own.items():
            rows = gathered[number]
            image.boxes = np.array([row[0] for row in rows], np.float64).reshape(-1, 4)
            image.classes = np.array([row[1] for row in rows], np.int64)
            image.outlines = [row[2] for row in rows]
            images.append(image)
    if not images:
        raise WonderlandError(f"{paths[0]} names no image that is there.")
    findings = broken.findings()
    if nameless := [path.name for path, value in zip(paths, values, strict=True) if not value.get("categories")]:
        text = f"{nameless[0]} has no categories: its classes are called class NUMBER."
        findings.append(Finding("header", str(paths[0]), len(nameless), text))
    if crowds:
        text = f"{counted(crowds, 'annotation of a crowd is', 'annotations of crowds are')} left out."
        findings.append(Finding("crowds", str(paths[0]), crowds, text))
    named = " and ".join(path.name for path in paths[:3])
    sentence = f"Read as detection: {counted(len(images), 'image', 'images')} with boxes from {named}, in the form of COCO (--task overrules)."
    return Annotations(root, "coco", images, [names[number] for number in ids], sentence, findings=findings)


def _load(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_bytes(path, "annotation_bytes"))
    except WonderlandError:
        raise
    except (ValueError, RecursionError) as error:
        raise WonderlandError(f"{path} is not JSON, or it is cut short.") from error
    if not isinstance(value, dict) or not isinstance(value.get("images"), list):
        raise WonderlandError(f"{path} is JSON without a list of images, so it is not in the form of COCO.")
    return value


def _entries(value: dict[str, Any], key: str, path: Path) -> list[dict[str, Any]]:
    rows = value.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise WonderlandError(f"{path} has {key} that are no list of objects.")
    return rows


def _categories(values: list[dict[str, Any]], paths: list[Path]) -> dict[int, str]:
    names: dict[int, str] = {}
    for value, path in zip(values, paths, strict=True):
        listed = _entries(value, "categories", path)
        for entry in listed:
            number, name = entry.get("id"), entry.get("name")
            if not _is_id(number) or not isinstance(name, str):
                raise WonderlandError(f"{path} has a category without an id and a name.")
            if names.setdefault(number, name) != name:
                raise WonderlandError(f"{path} calls category {number} {name!r}, and another file {names[number]!r}.")
        if not listed:
            numbers = [entry.get("category_id") for entry in _entries(value, "annotations", path)]
            used = {number for number in numbers if _is_id(number)}
            names |= {number: f"class {number}" for number in used if number not in names}
    if not names:
        raise WonderlandError(f"{paths[0]} has no categories, so there is nothing to find.")
    seen: dict[str, int] = {}
    for number, name in sorted(names.items()):
        if name in seen:
            names[number] = f"{name} ({number})"
        seen[name] = number
    return names


def _files_below(root: Path) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if Path(name).suffix.casefold() in SUFFIXES:
                paths.setdefault(name, Path(folder) / name)
    return paths


def _find(name: str, path: Path, below: dict[str, Path]) -> Path | None:
    """The file of an image: beside the JSON, or anywhere below the folder; names that lead out of it are only looked up inside."""
    inner = Path(name)
    if not inner.is_absolute() and ".." not in inner.parts and (path.parent / inner).is_file():
        return path.parent / inner
    return below.get(inner.name)


def _part_of(path: Path) -> str | None:
    words = path.stem.casefold().replace("-", "_").split("_")
    names = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}
    return next((names[part] for word in words for part in names if word.rstrip("0123456789") == part), None)


def _is_id(number: Any) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool)


def _is_box(box: Any) -> bool:
    return (
        isinstance(box, list)
        and len(box) == 4
        and all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e9 for v in box)
    )


def _box_of(outline: list[Any], path: Path) -> list[float]:
    points = np.concatenate([_polygon(ring, path) for ring in outline])
    low, high = points.min(0), points.max(0)
    return [*low.tolist(), *(high - low).tolist()]


def _polygon(ring: Any, path: Path | None = None) -> np.ndarray:
    fine = isinstance(ring, list) and len(ring) >= 6 and len(ring) % 2 == 0 and all(
        isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e9 for v in ring
    )  # fmt: skip
    if not fine:
        raise WonderlandError(f"{path} has an outline that is no list of at least three points x, y.")
    return np.asarray(ring, np.float64).reshape(-1, 2)


def _outline(value: Any) -> Any:
    """Polygons as a list of (k, 2), a run-length code as it is; None where there is none that can be read."""
    if isinstance(value, list) and value:
        try:
            return [_polygon(ring) for ring in value]
        except WonderlandError:
            return None
    if isinstance(value, dict) and isinstance(value.get("counts"), list | str) and isinstance(value.get("size"), list):
        return value
    return None
