"""Annotations of a folder of images in one form, whatever files they come from: boxes with classes, outlines, masks."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, read_bytes
from wonderland.data.dataset import Finding, counted
from wonderland.data.folders import natural

NAME_FILES = ("classes.txt", "class_names.txt", "labels.txt", "obj.names", "classes.names", "classes.json", "data.yaml",
              "data.yml", "dataset.yaml", "class_dict.csv", "labelmap.txt")  # fmt: skip


@dataclass
class Labelled:
    """One image with its boxes (m, 4) in pixels (or, `relative`, as parts of its size), their classes (m,) and outlines.

    An outline is a list of polygons (k, 2), a run-length code, or None. `mask` is the file of classes for each pixel.
    """

    path: Path
    boxes: np.ndarray = field(default_factory=lambda: np.zeros((0, 4)))
    classes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    outlines: list[Any] = field(default_factory=list)
    relative: bool = False
    mask: Path | None = None
    part: str | None = None


@dataclass
class Annotations:
    """All images of a source, the names of the classes, and what was noticed; `form` and `sentence` say how it was read."""

    root: Path
    form: str
    images: list[Labelled]
    names: list[str]
    sentence: str
    values: np.ndarray | None = None  # of masks: the value or colour of each class
    in_colour: bool = False
    ignored: frozenset[int] = frozenset()
    findings: list[Finding] = field(default_factory=list)

    @property
    def outlined(self) -> bool:
        """Whether every box has an outline."""
        return any(len(image.boxes) for image in self.images) and all(
            len(image.outlines) == len(image.boxes) and all(outline is not None for outline in image.outlines)
            for image in self.images
        )


@dataclass
class Broken:
    """Faults of single files: the first stops, or with `skip` all are left out and listed."""

    root: Path
    skip: bool
    texts: list[str] = field(default_factory=list)

    def add(self, sentence: str) -> None:
        """A fault in a sentence that names its file."""
        if not self.skip:
            raise WonderlandError(f"{sentence} Correct it, or leave such files out with skip_broken (--skip-broken).")
        self.texts.append(sentence)

    def findings(self) -> list[Finding]:
        """What was left out, as one finding."""
        if not self.texts:
            return []
        more = f" And {len(self.texts) - 10} more." if len(self.texts) > 10 else ""
        text = f"{counted(len(self.texts), 'fault', 'faults')} left out: {' '.join(self.texts[:10])}{more}"
        return [Finding("broken", str(self.root), len(self.texts), text)]


def read_text(path: Path) -> str:
    """A small text file; a byte order mark is dropped."""
    try:
        return read_bytes(path, "annotation_text_bytes").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WonderlandError(f"{path} is not UTF-8 text.") from error


@dataclass(frozen=True)
class Names:
    """Names of classes by number, and by colour where the file gives colours."""

    by_id: dict[int, str]
    by_colour: dict[int, str]
    path: Path


def read_names(folders: Iterable[Path]) -> Names | None:
    """The names of classes from the first of the usual files in these folders; None where there is none."""
    for folder in folders:
        for name in NAME_FILES:
            path = folder / name
            if path.is_file():
                names = _parse_names(path)
                if names.by_id or names.by_colour:
                    return names
    return None


def _parse_names(path: Path) -> Names:
    text = read_text(path)
    if path.suffix == ".json":
        return Names(_names_of_json(text, path), {}, path)
    if path.suffix in (".yaml", ".yml"):
        return Names(_names_of_yaml(text), {}, path)
    if path.name in ("class_dict.csv", "labelmap.txt"):
        return _names_of_colours(text, path)
    lines = [line.strip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return Names({number: line or f"class {number}" for number, line in enumerate(lines)}, {}, path)


def _names_of_json(text: str, path: Path) -> dict[int, str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WonderlandError(f"{path} is not JSON: it should be a list of class names.") from error
    if isinstance(value, list):
        return {number: str(name) for number, name in enumerate(value)}
    if isinstance(value, dict):
        pairs = value.items()
        if all(is_index(str(key)) for key, _ in pairs):
            return {int(key): str(name) for key, name in pairs}
        if all(is_index(str(number)) for _, number in pairs):
            return {int(number): str(key) for key, number in pairs}
    return {}


def _names_of_yaml(text: str) -> dict[int, str]:
    """The entry `names` of a YOLO data file: a list in brackets, or an indented list or mapping below it. No other YAML is read."""
    lines = [line.split(" #")[0].rstrip() for line in text.splitlines()]
    for place, line in enumerate(lines):
        if not line.startswith("names:"):
            continue
        rest = line.removeprefix("names:").strip()
        if rest.startswith("["):
            whole = " ".join([rest, *lines[place + 1 :]])
            inside = whole[1 : whole.index("]")] if "]" in whole else whole[1:]
            return {number: _plain(word) for number, word in enumerate(inside.split(",")) if word.strip()}
        names: dict[int, str] = {}
        for below in lines[place + 1 :]:
            word = below.strip()
            if not word:
                continue
            key, colon, name = word.partition(":")
            if word.startswith("- "):
                names[len(names)] = _plain(word[2:])
            elif below[0] in " \t" and colon and is_index(key.strip()):
                names[int(key)] = _plain(name)
            else:
                break
        return names
    return {}


def is_index(word: str) -> bool:
    """Whether a word is a whole number from 0 that fits into 32 bits.

    >>> is_index("12"), is_index("-1"), is_index("9" * 5000)
    (True, False, False)
    """
    return word.isdecimal() and len(word) < 10


def _plain(word: str) -> str:
    return word.strip().strip("'\"").strip()


def _names_of_colours(text: str, path: Path) -> Names:
    """Lines "name,r,g,b" (a header is skipped) or "name:r,g,b:..."."""
    by_colour: dict[int, str] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.partition(":" if path.name == "labelmap.txt" else ",")
        numbers = rest.split(":")[0].replace(";", ",").split(",")[:3]
        if len(numbers) == 3 and all(is_index(number.strip()) for number in numbers):
            red, green, blue = (int(number) for number in numbers)
            if max(red, green, blue) < 256:
                by_colour[red << 16 | green << 8 | blue] = name.strip()
    if not by_colour:
        raise WonderlandError(f"{path} has no line with a name and a colour, such as road,128,64,128.")
    return Names({}, by_colour, path)


def numbered_names(ids: Iterable[int], names: Names | None, where: str) -> tuple[list[int], list[str], list[Finding]]:
    """The ids that occur or have a name, in order, their names, and a finding where names are missing."""
    used = set(ids)
    known = {} if names is None else names.by_id
    order = sorted(used | set(known))
    labels = [known.get(number, f"class {number}") for number in order]
    if names is None:
        text = f"{where} numbers its {counted(len(used), 'class', 'classes')} without names: they are called class NUMBER. A file classes.txt gives names, a line each."
        return order, labels, [Finding("header", where, len(used), text)]
    nameless = sorted(used - set(known))
    if nameless:
        text = f"{names.path} has no name for {', '.join(map(str, nameless[:5]))}: such a class is called class NUMBER."
        return order, labels, [Finding("header", where, len(nameless), text)]
    return order, labels, []


def by_stem(paths: Iterable[Path], key: Callable[[Path], str]) -> dict[str, Path]:
    """Files by a key, the first in natural order where several have it."""
    paths_by_stem: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: natural(str(path))):
        paths_by_stem.setdefault(key(path), path)
    return paths_by_stem
