"""Pascal VOC: an XML file for each image. Documents that declare a type or entities are refused, so none are expanded."""

from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from wonderland.core import WonderlandError, read_bytes
from wonderland.data.dataset import Finding, counted
from wonderland.data.decode import SUFFIXES
from wonderland.data.folders import natural
from wonderland.kinds.image.annotations import Annotations, Broken, Labelled

MOST_DEPTH = 16


def xml_files(root: Path) -> list[Path]:
    """XML files of a folder, in natural order."""
    return sorted((path for path in root.rglob("*.xml") if path.is_file()), key=lambda path: natural(str(path)))


def is_voc(root: Path) -> bool:
    """Whether a folder has XML files, of which the first holds an annotation."""
    files = xml_files(root)
    if not files:
        return False
    with open(files[0], "rb") as file:
        return b"<annotation" in file.read(1 << 12)


def read_voc(root: Path, skip: bool) -> Annotations:
    """The images of a folder with the boxes of their XML files."""
    pictures: dict[str, Path] = {}
    for path in sorted(root.rglob("*"), key=lambda path: natural(str(path))):
        if path.suffix.casefold() in SUFFIXES and path.is_file():
            pictures.setdefault(path.name, path)
            pictures.setdefault(path.stem, path)
    broken = Broken(root, skip)
    rows: list[tuple[Path, list[tuple[str, list[float]]]]] = []
    for path in xml_files(root):
        try:
            name, objects = read_objects(path)
        except WonderlandError as error:
            broken.add(str(error))
            continue
        image = pictures.get(Path(name).name) or pictures.get(path.stem)
        if image is None:
            broken.add(f"{path} names the image {name or path.stem}, which is not below {root}.")
            continue
        rows.append((image, objects))
    names = sorted({label for _, objects in rows for label, _ in objects}, key=natural)
    if not names:
        raise WonderlandError(
            f"None of the XML files of {root} holds an object with a box, so there is nothing to find."
        )
    code = {name: place for place, name in enumerate(names)}
    images = [
        Labelled(
            path,
            np.array([box for _, box in objects], np.float64).reshape(-1, 4),
            np.array([code[label] for label, _ in objects], np.int64),
            [None] * len(objects),
        )
        for path, objects in rows
    ]
    findings = broken.findings()
    taken = {image.path for image in images}
    if alone := sorted(set(pictures.values()) - taken):
        text = f"{counted(len(alone), 'image has', 'images have')} no XML file and {'is' if len(alone) == 1 else 'are'} left out: {alone[0].name}"
        findings.append(Finding("no boxes", str(root), len(alone), text + (", ..." if len(alone) > 1 else ".")))
    sentence = f"Read as detection: {counted(len(images), 'image', 'images')} with boxes from XML files in the form of Pascal VOC (--task overrules)."
    return Annotations(root, "voc", images, names, sentence, findings=findings)


def read_objects(path: Path) -> tuple[str, list[tuple[str, list[float]]]]:
    """The file name in an annotation, and each object with its box (left, top, right, bottom).

    VOC counts pixels from 1 and includes the last: left and top are lowered by one.
    """
    reader = _Reader(path)
    objects = []
    for entry in reader.read():
        label, box = entry.get("name", ""), [entry.get(side) for side in ("xmin", "ymin", "xmax", "ymax")]
        try:
            left, top, right, bottom = (float(str(side)) for side in box)
        except ValueError as error:
            raise WonderlandError(f"{path} has an object without xmin, ymin, xmax and ymax as numbers.") from error
        if not label:
            raise WonderlandError(f"{path} has an object without a name.")
        if not all(abs(side) < 1e9 for side in (left, top, right, bottom)):
            raise WonderlandError(f"{path} has a box whose sides are not pixels of an image.")
        objects.append((label, [left - 1, top - 1, right, bottom]))
    return reader.filename, objects


class _Reader:
    """Collects the name of the image, and of each object its name and the sides of its box; parts of objects are skipped."""

    def __init__(self, path: Path):
        self.path, self.filename = path, ""
        self.stack: list[str] = []
        self.text: list[str] = []
        self.objects: list[dict[str, str]] = []

    def read(self) -> list[dict[str, str]]:
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self.text.append
        try:
            parser.Parse(read_bytes(self.path, "annotation_text_bytes"), True)
        except WonderlandError:
            raise
        except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: an encoding that expat lacks
            raise WonderlandError(f"{self.path} is not XML, or it is cut short ({error}).") from error
        return self.objects

    def _refuse(self, *_: Any) -> None:
        raise WonderlandError(
            f"{self.path} declares a document type or entities, which annotations do not need: remove the declaration."
        )

    def _start(self, name: str, _: Any) -> None:
        self.stack.append(name)
        self.text.clear()
        if len(self.stack) > MOST_DEPTH:
            raise WonderlandError(f"{self.path} nests its elements more than {MOST_DEPTH} deep.")
        if self.stack[1:] == ["object"]:
            self.objects.append({})

    def _end(self, name: str) -> None:
        inner, text = self.stack[1:], "".join(self.text).strip()
        if inner == ["filename"]:
            self.filename = text
        elif self.objects and (inner == ["object", "name"] or (inner[:2] == ["object", "bndbox"] and len(inner) == 3)):
            self.objects[-1][name] = text
        self.stack.pop()
        self.text.clear()
