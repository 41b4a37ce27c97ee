"""Recognise text: whether a file or folder is plain text, labelled lines, class folders of texts, or a table; and which columns
of a table are free text."""

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from wonderland.core import open_plain
from wonderland.data.columns import read_column
from wonderland.data.dataset import Finding
from wonderland.data.decode import SUFFIXES as IMAGE_SUFFIXES
from wonderland.data.json_table import JSON_START
from wonderland.data.read import DELIMITERS, is_number
from wonderland.data.read import SUFFIXES as TABLES
from wonderland.data.text.sources import is_text_file

SAMPLE = 1 << 17
MOST_TEXT_COLUMNS = 5
MOST_CLASS_FILES = 50
_LABELLED_LINE = re.compile(r"(?:__label__\S+|-?\d{1,4})\s+\S")


def recognise(path: Path) -> str | None:
    """The layout of the text at a path: "plain", "labelled" (each line begins with a label) or "folders" (one folder for each class);
    None for tables and for anything that is not text."""
    if path.is_dir():
        return _recognise_folder(path)
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
    if JSON_START.match(data):
        return None
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]
    lines = lines[:-1] if len(data) == SAMPLE else lines
    if is_table(lines):
        return None
    return "labelled" if is_labelled(lines) else "plain"


def is_table(lines: list[str]) -> bool:
    """Whether lines are rows of a table: nearly all have the same number of fields, and these are short or numbers.

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
    if len(lines) < 20 or not all(_LABELLED_LINE.match(line) for line in lines):
        return False
    return 2 <= len({line.split(None, 1)[0] for line in lines}) <= min(100, len(lines) // 5)


def _recognise_folder(path: Path) -> str | None:
    """`recognise` for a folder: "folders", "plain", or None when it holds no text files or more images than texts."""
    if class_files(path):
        return "folders"
    texts = pictures = 0
    classes: set[str] = set()
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        parts = Path(folder).relative_to(path).parts
        for name in names:
            suffix = Path(name).suffix.lower()
            if suffix in IMAGE_SUFFIXES:
                pictures += 1
            elif is_text_file(name) and not name.startswith("."):
                texts += 1
                classes |= {parts[0]} if parts else {""}
    if not texts or pictures > texts:
        return None
    return "folders" if len(classes) > 1 and "" not in classes else "plain"


def class_files(path: Path) -> dict[str, Path]:
    """The files of a folder that hold the texts of one class each, a text in each line, by the part of their names that differs.

    Such files have names with unknown endings (rt-polarity.pos and rt-polarity.neg); an empty dict where the folder holds others.
    """
    try:
        entries = [entry for entry in path.iterdir() if not entry.name.lower().startswith((".", "readme", "license"))]
    except OSError:
        return {}
    if not 2 <= len(entries) <= MOST_CLASS_FILES or not all(entry.is_file() for entry in entries):
        return {}
    names = sorted(entry.name for entry in entries)
    start = _common_start(names)
    end = _common_start([name[::-1] for name in names])[::-1]
    words = [name[len(start) : len(name) - len(end)].strip("._-") for name in names]
    parts = [name.split(".") for name in names]
    known = any(name.lower().endswith((*TABLES, *IMAGE_SUFFIXES)) or is_text_file(name) for name in names)
    if (
        known
        or len({len(part) for part in parts}) > 1
        or len(parts[0]) < 2
        or not all(word.isalpha() for word in words)
    ):
        return {}
    if len(set(words)) < len(words) or sum(len({part[i] for part in parts}) > 1 for i in range(len(parts[0]))) != 1:
        return {}
    for name in names:
        with open_plain(path / name) as file:
            if b"\0" in file.read(SAMPLE):
                return {}
    return {_whole_word(start, word, end): path / name for name, word in zip(names, words, strict=True)}


def _common_start(names: list[str]) -> str:
    """The letters that all names begin with."""
    first, last = min(names), max(names)
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _whole_word(start: str, word: str, end: str) -> str:
    """The part of a name between two dots that a word stands in.

    >>> _whole_word("rt-polarity.p", "os", ".txt")
    'pos'
    """
    return start.rpartition(".")[2] + word + end.partition(".")[0]


def is_free_text(cells: pd.Series) -> bool:
    """Whether a column holds sentences: several words in most cells, and most cells different.

    >>> is_free_text(pd.Series(["a fine day", "it rains again today", "cold and windy"]))
    True
    """
    if not (pd.api.types.is_object_dtype(cells) or pd.api.types.is_string_dtype(cells)):
        return False
    sample = cells.dropna()
    sample = sample.iloc[np.linspace(0, len(sample) - 1, min(2000, len(sample))).astype(int)] if len(sample) else sample
    if not len(sample) or not all(isinstance(cell, str) for cell in sample):
        return False
    words = float(np.median([len(cell.split()) for cell in sample]))
    letters = float(np.median([len(cell) for cell in sample]))
    unspaced = words < 3 and float(np.mean([any(ord(c) > 0x2E80 for c in cell) for cell in sample])) > 0.5
    return (words >= 3 or (unspaced and letters >= 6)) and sample.nunique() > 0.5 * len(sample)


def holds_sentences(cells: pd.Series) -> bool:
    """Whether a column holds sentences that may come again, such as a premise with several hypotheses.

    >>> holds_sentences(pd.Series([f"the man number {i // 3} walks here" for i in range(90)]))
    True
    """
    if not (pd.api.types.is_object_dtype(cells) or pd.api.types.is_string_dtype(cells)):
        return False
    sample = cells.dropna().iloc[:2000]
    if not len(sample) or not all(isinstance(cell, str) for cell in sample):
        return False
    return float(np.median([len(cell.split()) for cell in sample])) >= 4 and sample.nunique() > max(
        20, 0.05 * len(sample)
    )


def holds_phrases(cells: pd.Series) -> bool:
    """Whether a column holds different phrases of about two words, such as short messages.

    >>> holds_phrases(pd.Series([f"ok {word}" for word in "see you then we are late but come now".split()]))
    True
    """
    if not (pd.api.types.is_object_dtype(cells) or pd.api.types.is_string_dtype(cells)):
        return False
    sample = cells.dropna().iloc[:2000]
    if not len(sample) or not all(isinstance(cell, str) for cell in sample):
        return False
    letters = sum(letter.isalpha() for cell in sample for letter in cell)
    words = float(np.mean([len(cell.split()) for cell in sample]))
    return words >= 1.5 and letters > 0.6 * sum(map(len, sample)) and sample.nunique() > 0.5 * len(sample)


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of a table by role: free text, other informative columns, and uninformative ones.

    Identifiers, row numbers, dates and constant columns are uninformative. They are only looked for where at most five columns are free
    text, to tell a table of texts from any other; otherwise `uninformative` is empty.
    """

    free_text: tuple[str, ...] = ()
    informative: tuple[str, ...] = ()
    uninformative: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: pd.DataFrame, drop: Collection[str] = (), keep: Collection[str | None] = ()) -> "ColumnRoles":
        """The roles of all columns but those in `drop`; those in `keep` count as informative.

        >>> ColumnRoles.of(pd.DataFrame({"id": range(30), "text": [f"so be it {i}" for i in range(30)]}))
        ColumnRoles(free_text=('text',), informative=(), uninformative=('id',))
        """
        names = [name for name in frame.columns if name not in drop]
        free = tuple(
            name
            for name in names
            if is_free_text(pd.Series(frame[name])) and not _is_attribution(pd.Series(frame[name]))
        )
        free = free or tuple(name for name in names if holds_phrases(pd.Series(frame[name])))[:2]
        rest = [name for name in names if name not in free]
        if not 1 <= len(free) <= MOST_TEXT_COLUMNS:
            return cls(free, tuple(rest))
        informative, uninformative = [], []
        for name in rest:
            # Two informative columns make it a table, so the rest need not be inspected.
            if name in keep or len(informative) > 1 or _is_informative(name, pd.Series(frame[name])):
                informative.append(name)
            else:
                uninformative.append(name)
        return cls(free, tuple(informative), tuple(uninformative))

    def left_out(self) -> list[Finding]:
        """The finding that uninformative columns are left out."""
        if len(self.uninformative) < 1:
            return []
        shown = ", ".join(map(repr, self.uninformative[:5])) + (
            f" and {len(self.uninformative) - 5:,} more" if len(self.uninformative) > 5 else ""
        )
        single = len(self.uninformative) == 1
        why = "an identifier or always the same" if single else "identifiers or always the same"
        text = f"{'Column' if single else 'Columns'} {shown} {'is' if single else 'are'} {why}, and left out."
        return [Finding("left out", self.uninformative[0], len(self.uninformative), text)]


def _is_attribution(cells: pd.Series) -> bool:
    """Whether a column says under which licence, and by whom, each row was published."""
    return bool(cells.dropna().iloc[:200].astype(str).str.contains("CC[- ]BY").mean() > 0.9)


def _is_informative(name: str, cells: pd.Series) -> bool:
    if _is_attribution(cells):
        return False
    column = read_column(name, cells)
    if column.kind == "number" and len(column) > 1 and bool((np.diff(column.values) == 1).all()):
        return False  # row numbers, from any start
    return column.kind not in ("identifier", "constant", "date")
