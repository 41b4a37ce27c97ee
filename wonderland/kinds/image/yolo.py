"""YOLO text files: for each image a file of the same name, with a line "class x y width height" for each box."""

from pathlib import Path

import numpy as np

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding, counted
from wonderland.data.decode import SUFFIXES
from wonderland.data.folders import natural, part_of_folder
from wonderland.kinds.image.annotations import (
    NAME_FILES,
    Annotations,
    Broken,
    Labelled,
    is_index,
    numbered_names,
    read_names,
    read_text,
)
from wonderland.kinds.image.masks import role

LOOKED_AT = 5  # files that decide whether a folder holds boxes: one may be damaged


def label_files(root: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Images and text files of a folder by their common names; files of class names are left out."""
    images: dict[str, Path] = {}
    texts: dict[str, Path] = {}
    for path in sorted(root.rglob("*"), key=lambda path: natural(str(path))):
        if any(part.startswith(".") for part in path.relative_to(root).parts) or not path.is_file():
            continue
        suffix = path.suffix.casefold()
        if suffix in SUFFIXES:
            images.setdefault(role(path, root)[1], path)
        elif suffix == ".txt" and path.name not in NAME_FILES:
            texts.setdefault(role(path, root)[1], path)
    return images, texts


def is_yolo(root: Path) -> bool:
    """Whether images of a folder have text files of their names, and most of the first that are not empty hold boxes."""
    images, texts = label_files(root)
    both = [texts[name] for name in images if name in texts]
    votes: list[bool] = []
    for path in both[:50]:
        lines = [line.split() for line in _head(path).splitlines() if line.strip()]
        if lines and len(votes) < LOOKED_AT:
            votes.append(
                all(
                    len(words) >= 5 and is_index(words[0]) and _numbers(words[1:]) is not None
                    for words in lines[:-1] or lines
                )
            )
    return sum(votes) * 2 > len(votes)


def read_yolo(root: Path, skip: bool) -> Annotations:
    """The images of a folder with the boxes of their text files; lines with more numbers are outlines."""
    images, texts = label_files(root)
    broken = Broken(root, skip)
    labelled: list[Labelled] = []
    empty = 0
    for name, path in images.items():
        image = Labelled(path, relative=True, part=_part(path, root))
        if name in texts and not _fill(image, texts[name], broken):
            continue
        empty += not len(image.boxes)
        labelled.append(image)
    findings = broken.findings()
    if spare := [name for name in texts if name not in images]:
        text = f"{counted(len(spare), 'text file has', 'text files have')} no image and {'is' if len(spare) == 1 else 'are'} left out: {texts[spare[0]].name}"
        findings.append(Finding("no image", str(root), len(spare), text + (", ..." if len(spare) > 1 else ".")))
    folders = [
        root,
        *sorted({path.parent for path in texts.values()}),
        *sorted({path.parent for path in images.values()}),
    ]
    names = read_names(folders)
    used = {int(number) for image in labelled for number in image.classes}
    if not used:
        raise WonderlandError(f"None of the text files of {root} holds a box, so there is nothing to find.")
    order, labels, noted = numbered_names(used, names, str(root))
    code = {number: place for place, number in enumerate(order)}
    for image in labelled:
        image.classes = np.array([code[int(number)] for number in image.classes], np.int64)
    if len({image.part for image in labelled}) < 2 or not any(image.part == "train" for image in labelled):
        for image in labelled:
            image.part = None
    sentence = f"Read as detection: {counted(len(labelled), 'image', 'images')} with boxes from text files in the form of YOLO (--task overrules)."
    return Annotations(root, "yolo", labelled, labels, sentence, findings=[*findings, *noted])


def _fill(image: Labelled, path: Path, broken: Broken) -> bool:
    """Read the lines of one file into an image; False where the file is left out."""
    boxes, classes, outlines = [], [], []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        values = _numbers(words[1:])
        if values is None or not is_index(words[0]) or len(values) < 4 or (len(values) > 5 and len(values) % 2):
            broken.add(f"{path}, line {number}: {line.strip()[:60]!r} is no line CLASS X Y WIDTH HEIGHT.")
            return False
        if len(values) > 5:
            points = np.array(values).reshape(-1, 2)
            boxes.append([*points.min(0), *points.max(0)])
            outlines.append([points])
        else:
            x, y, wide, tall = values[:4]
            if max(map(abs, values[:4])) > 2:
                broken.add(
                    f"{path}, line {number}: coordinates of YOLO are parts of the image, from 0 to 1, not {line.strip()[:60]!r}."
                )
                return False
            boxes.append([x - wide / 2, y - tall / 2, x + wide / 2, y + tall / 2])
            outlines.append(None)
        classes.append(int(words[0]))
    image.boxes = np.array(boxes, np.float64).reshape(-1, 4)
    image.classes = np.array(classes, np.int64)
    image.outlines = outlines
    return True


def _numbers(words: list[str]) -> list[float] | None:
    try:
        values = [float(word) for word in words]
    except ValueError:
        return None
    return values if all(abs(value) < 1e9 for value in values) else None


def _head(path: Path) -> str:
    with open(path, "rb") as file:
        return file.read(1 << 14).decode("utf-8-sig", errors="replace")


def _part(path: Path, root: Path) -> str | None:
    return next(filter(None, map(part_of_folder, path.relative_to(root).parts[:-1])), None)
