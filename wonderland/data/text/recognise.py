"""What a file or a folder of text is: a table, lines with labels, documents in classes, or plain text."""

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, open_plain
from wonderland.data.columns import read_column
from wonderland.data.dataset import Finding
from wonderland.data.decode import SUFFIXES as PICTURES
from wonderland.data.read import DELIMITERS, is_number
from wonderland.data.text.sources import TEXTS, is_text_file

SAMPLE = 1 << 17
_LABEL = re.compile(r"(?:__label__\S+|-?\d{1,4})\s+\S")


def recognise(path: Path) -> str | None:
    """What kind of text a path holds: "plain", "labelled" (a label first on each line), "folders" (texts in class folders); None
    where it holds no text, or a table."""
    if path.is_dir():
        return _folder(path)
    if not is_text_file(path):
        return None
    if path.suffix.lower() == ".gz":
        import gzip

        try:
            with open_plain(path) as plain, gzip.open(plain, "rb") as file:
                data = file.read(SAMPLE)
        except (OSError, EOFError):
            return None
    else:
        with open_plain(path) as file:
            data = file.read(SAMPLE)
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]
    lines = lines[:-1] if len(data) == SAMPLE else lines
    if is_table(lines):
        return None
    return "labelled" if is_labelled(lines) else "plain"


def is_table(lines: list[str]) -> bool:
    """Whether lines have columns: as many fields in nearly all of them, short ones or numbers.

    >>> is_table(["a,b", "1,2", "3,4"]), is_table(["To be, or not to be,", "that is the question,", "whether or no,"])
    (True, False)
    """
    if len(lines) < 2:
        return False
    words = [line.split() for line in lines]
    if all(len(line) == len(words[-1]) and all(map(is_number, line)) for line in words[1:]):
        return True
    if sum(line.rstrip().endswith((".", "!", "?", "。", "！", "？", ",", "，")) for line in lines) > 0.5 * len(lines):
        return any(line.count("\t") for line in lines) and all(
            line.count("\t") == lines[0].count("\t") for line in lines
        )
    for delimiter in DELIMITERS:
        counts = [line.count(delimiter) for line in lines if '"' not in line] or [0]
        usual = max(set(counts), key=counts.count)
        cells = [cell for line in lines[:500] for cell in line.split(delimiter)]
        long = sum(len(cell.split()) for cell in cells) / max(1, len(cells))
        if usual and counts.count(usual) >= 0.95 * len(counts) and len(lines) > 2 and (delimiter == "\t" or long < 4):
            return bool(delimiter != "," or all(cell.strip() for line in lines[:50] for cell in line.split(",")[:-1]))
    return False


def is_labelled(lines: list[str]) -> bool:
    """Whether each line begins with a label: `__label__name`, or one of a few whole numbers.

    >>> is_labelled(["0 how old is it ?", "1 who are you ?"] * 10), is_labelled(["0 a", "1 b"])
    (True, False)
    """
    if len(lines) < 20 or not all(_LABEL.match(line) for line in lines):
        return False
    return 2 <= len({line.split(None, 1)[0] for line in lines}) <= min(100, len(lines) // 5)


def _folder(path: Path) -> str | None:
    """Texts in class folders, texts in a flat folder, or something else."""
    texts = pictures = 0
    classes: set[str] = set()
    for here, inner, names in os.walk(path):
        inner[:] = [name for name in inner if not name.startswith(".")]
        parts = Path(here).relative_to(path).parts
        for name in names:
            suffix = Path(name).suffix.lower()
            if suffix in PICTURES:
                pictures += 1
            elif is_text_file(name) and not name.startswith("."):
                texts += 1
                classes |= {parts[0]} if parts else {""}
    if not texts or pictures > texts:
        return None
    return "folders" if len(classes) > 1 and "" not in classes else "plain"


def is_free_text(cells: pd.Series) -> bool:
    """Whether a column holds sentences: several words in most cells, and few cells alike.

    >>> is_free_text(pd.Series(["a fine day", "it rains again today", "cold and windy"]))
    True
    """
    if not (pd.api.types.is_object_dtype(cells) or pd.api.types.is_string_dtype(cells)):
        return False
    some = cells.dropna()
    some = some.iloc[np.linspace(0, len(some) - 1, min(2000, len(some))).astype(int)] if len(some) else some
    if not len(some) or not all(isinstance(cell, str) for cell in some):
        return False
    words = float(np.median([len(cell.split()) for cell in some]))
    letters = float(np.median([len(cell) for cell in some]))
    return (words >= 3 or (words < 2 and letters >= 12 and any(ord(c) > 0x2E80 for c in some.iloc[0]))) and (
        some.nunique() > 0.5 * len(some)
    )


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are: free text, others that say something about their rows, and those that do not.

    Identifiers, counts of rows and what is always the same say nothing. Where there is no free text, or too much of it for
    text to be all there is, `idle` is empty.
    """

    free: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, drop: Collection[str] = (), keep: Collection[str | None] = ()) -> "Roles":
        """The roles of all columns but those in `drop`; those in `keep` are taken to say something.

        >>> Roles.of(pd.DataFrame({"id": range(30), "text": [f"so be it {i}" for i in range(30)]}))
        Roles(free=('text',), others=(), idle=('id',))
        """
        names = [name for name in frame.columns if name not in drop]
        free = tuple(name for name in names if is_free_text(pd.Series(frame[name])))
        rest = [name for name in names if name not in free]
        if not 1 <= len(free) <= 2:
            return cls(free, tuple(rest))
        others, idle = [], []
        for name in rest:
            # With two others it is a table whatever the rest is, so nothing more is read.
            if name in keep or len(others) > 1 or _tells(name, pd.Series(frame[name])):
                others.append(name)
            else:
                idle.append(name)
        return cls(free, tuple(others), tuple(idle))

    def left_out(self) -> list[Finding]:
        """What is said of the columns that say nothing."""
        if len(self.idle) < 1:
            return []
        shown = ", ".join(map(repr, self.idle[:5])) + (
            f" and {len(self.idle) - 5:,} more" if len(self.idle) > 5 else ""
        )
        one = len(self.idle) == 1
        why = "an identifier or always the same" if one else "identifiers or always the same"
        text = f"{'Column' if one else 'Columns'} {shown} {'is' if one else 'are'} {why}, and left out."
        return [Finding("left out", self.idle[0], len(self.idle), text)]


def _tells(name: str, cells: pd.Series) -> bool:
    column = read_column(name, cells)
    if column.kind == "number" and len(column) > 1 and bool((np.diff(column.values) == 1).all()):
        return False  # it counts the rows, wherever it begins
    return column.kind not in ("identifier", "constant")


def refuse_kind(path: Path, kind: str) -> WonderlandError:
    """The error for a source that cannot be what was asked for."""
    return WonderlandError(
        f"{path} cannot be read as {kind}: text is in {', '.join(TEXTS)}, JSON lines, CSV, or folders."
    )
