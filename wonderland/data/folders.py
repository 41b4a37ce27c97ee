"""Folders of images: one walk that sorts files into classes, images outside of classes, and other files."""

import os
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from wonderland.core import WonderlandError
from wonderland.core.errors import visible
from wonderland.data.dataset import Finding, counted
from wonderland.data.decode import SUFFIXES, decode

_PARTS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing", "eval"),
}
_TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")


@dataclass
class Listing:
    """The content of a folder: images with their class (`files`), images outside of class folders (`loose`), counts of the rest."""

    root: Path
    name: str
    classes: list[str] = field(default_factory=list)
    files: list[tuple[Path, str]] = field(default_factory=list)
    loose: list[Path] = field(default_factory=list)
    foreign: Counter = field(default_factory=Counter)
    tables: list[Path] = field(default_factory=list)
    links: int = 0
    parted: bool = False  # whether its folders are train, validation or test, with the class folders below them

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def findings(self) -> list[Finding]:
        findings = []
        filled = {label for _, label in self.files}
        if empty := [name for name in self.classes if name not in filled]:
            names = ", ".join(map(repr, empty[:5])) + (f" and {len(empty) - 5} more" if len(empty) > 5 else "")
            findings.append(
                Finding("empty class", str(self.root), len(empty), f"Folders without images are left out: {names}.")
            )
        if self.foreign:
            files = (
                "file that is not PNG, JPEG, WebP, GIF, BMP or TIFF is",
                "files that are not PNG, JPEG, WebP, GIF, BMP or TIFF are",
            )
            kinds = ", ".join(f"{suffix or 'no suffix'}: {n}" for suffix, n in sorted(self.foreign.items())[:5])
            text = f"{counted(self.foreign.total(), *files)} left out ({kinds})."
            findings.append(Finding("foreign files", str(self.root), self.foreign.total(), text))
        if self.loose:
            images = ("image outside of the class folders is", "images outside of the class folders are")
            text = f"{counted(len(self.loose), *images)} left out."
            findings.append(Finding("loose images", str(self.root), len(self.loose), text))
        if self.links:
            links = ("link to a folder or out of the data is", "links to folders or out of the data are")
            text = f"{counted(self.links, *links)} not followed."
            findings.append(Finding("links", str(self.root), self.links, text))
        return findings


def scan(root: Path) -> Listing:
    """Walk a folder whose subfolders are classes; hidden files are skipped, and links out of it are not followed."""
    if not root.exists():
        raise WonderlandError(f"{root} is missing.")
    if not root.is_dir():
        raise WonderlandError(f"{root} is a file where a folder of images should be.")
    listing = Listing(root, root.resolve().name)
    resolved_root = root.resolve()
    for folder, folders, files in os.walk(root, onerror=_unreadable_folder):
        directory = Path(folder)
        links = [name for name in folders if (directory / name).is_symlink() and not name.startswith(".")]
        listing.links += len(links)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in links)
        inner = directory.relative_to(root).parts
        if not inner:
            listing.classes = sorted(map(visible, folders), key=natural)
        for name in sorted(files):
            if not name.startswith("."):
                _add_file(listing, directory / name, inner[0] if inner else "", resolved_root)
    return listing


def part_of_folder(name: str) -> str | None:
    """The part of a split that a folder's name stands for: "train", "validation" or "test"; None for any other name.

    >>> part_of_folder("Val"), part_of_folder("cats")
    ('validation', None)
    """
    return next((part for part, names in _PARTS.items() if name.casefold() in names), None)


def by_parts(listing: Listing) -> Listing:
    """The listing with the folders below as classes, where its own folders are the parts of a split; else the listing as it is.

    Images that lie directly in the folder of a part have no class, and are left out.
    """
    parts = {part_of_folder(name) for name in listing.classes}
    deeper = [(path, path.relative_to(listing.root).parts) for path, _ in listing.files]
    if None in parts or "train" not in parts or not any(len(names) > 2 for _, names in deeper):
        return listing
    files = [(path, visible(names[1])) for path, names in deeper if len(names) > 2]
    loose = [path for path, names in deeper if len(names) == 2]
    classes = sorted({label for _, label in files}, key=natural)
    return replace(listing, classes=classes, files=files, loose=[*listing.loose, *loose], parted=True)


def _add_file(listing: Listing, path: Path, label: str, home: Path) -> None:
    # realpath, since Path.resolve raises an error for a link that leads to itself
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(home):
        listing.links += 1
    elif path.suffix.casefold() not in SUFFIXES or not path.is_file():
        listing.foreign[path.suffix.casefold()[:12]] += 1
        if is_table(path):
            listing.tables.append(path)
    elif label:
        listing.files.append((path, visible(label)))
    else:
        listing.loose.append(path)


def _unreadable_folder(error: OSError) -> None:
    raise WonderlandError(f"{error.filename} cannot be read ({error.strerror}).") from error


def listed(paths: list[Path], name: str) -> Listing:
    """Files named one by one, in the order given; they are recognised by content, not by name."""
    for path in paths:
        if not path.exists():
            raise WonderlandError(f"{path} is missing.")
        if not path.is_file():
            raise WonderlandError(f"{path} is not a file: give images, or one folder.")
    return Listing(Path(os.path.commonpath([path.absolute().parent for path in paths])), name, loose=paths)


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name.

    >>> is_table(Path("a.CSV")), is_table(Path("a.jsonl.gz")), is_table(Path("a.txt"))
    (True, True, False)
    """
    return path.name.casefold().removesuffix(".gz").endswith(_TABLES)


def refuse_tables(listing: Listing) -> None:
    """Stop at a folder of tables without images: one of them is probably meant."""
    if listing.files or listing.loose or not listing.tables:
        return
    names = ", ".join(listing.relative(path) for path in listing.tables[:5])
    more = f" and {len(listing.tables) - 5} more" if len(listing.tables) > 5 else ""
    tables, which = ("a table", "it") if len(listing.tables) == 1 else ("tables", "one of them")
    raise WonderlandError(f"{listing.root} is a folder with {tables} and no images: {names}{more}. Name {which}.")


def refuse_flat(listing: Listing) -> NoReturn:
    """Stop at a folder without class folders, and say what it holds instead."""
    refuse_tables(listing)
    if listing.loose:
        raise WonderlandError(
            f"{listing.root} has {counted(len(listing.loose), 'image', 'images')} but no class folders. "
            "Make one folder for each class and sort the images into them."
        )
    raise WonderlandError(f"{listing.root} holds neither images (PNG, JPEG, WebP, GIF, BMP, TIFF) nor text files.")


def without_broken(listing: Listing, *, limit_bytes: int | None = None) -> tuple[Listing, list[Finding]]:
    """The listing without files that are missing or cannot be decoded, and a finding that names them."""
    broken: list[str] = []
    kept = []
    for path, label in listing.files:
        try:
            if not path.is_file():
                raise WonderlandError(f"{path} is missing.")
            decode(path, (8, 8), limit_bytes=limit_bytes)
        except WonderlandError:
            broken.append(listing.relative(path))
        else:
            kept.append((path, label))
    if not broken:
        return listing, []
    if not kept:
        raise WonderlandError(f"None of the {len(broken)} images of {listing.root} can be read.")
    listing.files = kept
    shown = ", ".join(broken[:10]) + (f" and {len(broken) - 10} more" if len(broken) > 10 else "")
    text = f"{counted(len(broken), 'image cannot be read and is', 'images cannot be read and are')} left out: {shown}."
    return listing, [Finding("broken", str(listing.root), len(broken), text)]


def natural(text: str) -> list:
    """Sort key by which '2' comes before '10'."""
    return [
        (0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"(\d+)", text) if piece
    ] + [(2, 0, text)]
