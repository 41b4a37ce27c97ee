"""How files of texts with an answer are laid out: delimiters and quotes, label first or last, with or without a header.

Every layout that explains all lines of the file is tried. Where two of them give other answers to the rows, the reading stops
and names the option that decides.
"""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.limits import limit
from wonderland.core.unpack import read_unpacked
from wonderland.data.dataset import Finding, counted
from wonderland.data.encodings import to_utf8
from wonderland.data.read import is_number
from wonderland.data.reading import Reading
from wonderland.data.text.recognise import is_free_text

LARGEST = 1 << 28  # bytes of a file that is read in this way
DELIMITERS = ("\t", ",", ";", "|")
RARE_DELIMITERS = ("|||", "||", "::", "@@@", "+++$+++", "@", "\x01")
DELIMITER_WORDS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "pipe"}
LEAST_ROWS = 4
LEAST_OF_LINES = 20  # lines that begin or end with a label, without a delimiter that tells it from the text
MOST_EMPTY = 0.9
_LINE_LABEL = re.compile(r"__label__\S+|-?\d{1,4}|[A-Za-z]+[:_][A-Za-z:_]+|[A-Z][A-Z0-9_]+")
_BINARY = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".parquet", ".feather", ".xlsx", ".xlsm", ".zip", ".npz", ".npy", ".mat",
           ".safetensors", ".wav", ".mp3", ".flac", ".mp4", ".db", ".sqlite", ".sqlite3", ".pt", ".html", ".xml", ".json",
           ".jsonl", ".ndjson")  # fmt: skip


@dataclass(frozen=True)
class TextTable:
    """A file of texts as a frame: its columns of text, its target, and one sentence that says how it was read."""

    frame: pd.DataFrame
    texts: tuple[str, ...]
    target: str
    sentence: str
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class _Layout:
    """One way to cut the lines of a file into cells."""

    words: str
    rows: list[list[str]]
    rank: int  # among layouts that give the same answers, the lowest is taken
    option: str = ""  # what decides between this layout and another
    names: tuple[str, str] | None = None  # of its two columns, where a line has no cells


@dataclass(frozen=True)
class _Columns:
    """What the columns of a layout are."""

    header: bool
    names: tuple[str, ...]
    texts: tuple[int, ...]
    targets: tuple[int, ...]
    left: tuple[int, ...]

    @property
    def answer(self) -> str:
        """The name of the target; of several columns of 0 and 1 all of their names."""
        return ",".join(self.names[i] for i in self.targets)


def read_text_table(
    path: Path, reading: Reading, *, target: str | None = None, any_label: bool = False
) -> TextTable | None:
    """A file of texts and one answer for each, or None where it holds anything else.

    `target` names the column of the answers, where the user does. With `any_label`, the first or last word of a line counts as
    a label whatever it looks like, if few of them occur.
    """
    if path.is_dir() or path.suffix.lower() in _BINARY or path.stat().st_size > min(LARGEST, limit("table_bytes")):
        return None
    data = read_unpacked(path, "table_bytes")
    if len(data) > LARGEST or not data.strip():
        return None
    try:
        data, findings = to_utf8(data, path, reading.encoding)
    except WonderlandError:
        if reading.encoding is not None:
            raise
        return None
    text = data.decode("utf-8", "replace")
    if text.lstrip()[:1] in ("{", "[") or not _has_sentences(text):
        return None
    explained: list[tuple[_Layout, _Columns]] = []
    for layout in _layouts(text, reading, any_label):
        columns = _columns(layout)
        if columns is not None and target in (None, ",".join(columns.names[i] for i in columns.targets)):
            explained.append((layout, columns))
    if not explained:
        return None
    explained.sort(key=lambda pair: pair[0].rank)
    layout, columns = explained[0]
    _refuse_ties(path, explained)
    frame, further = _frame(layout, columns)
    return TextTable(
        frame, tuple(columns.names[i] for i in columns.texts), columns.answer,
        _sentence(path, layout, columns, findings), findings + further,
    )  # fmt: skip


def _layouts(text: str, reading: Reading, any_label: bool) -> Iterator[_Layout]:
    """Every way to cut all lines into equally many cells, at least two."""
    lines = [line for line in re.split(r"\r\n|\n|\r", text) if line.strip()]
    if len(lines) < LEAST_ROWS:
        return
    asked = reading.separator
    if asked is not None and asked != r"\s+":
        delimiters: tuple[str, ...] = (asked,)
    else:
        delimiters = () if asked is not None else (*DELIMITERS, *RARE_DELIMITERS)
    for place, delimiter in enumerate(delimiters):
        if not all(delimiter in line for line in lines[:LEAST_ROWS]) and not (reading.quote != "none" and '"' in text):
            continue
        word = DELIMITER_WORDS.get(delimiter, repr(delimiter)[1:-1])
        quotes = [reading.quote_character] if reading.quote is not None else ['"', ""] if '"' in text else [""]
        cut = [_cut(text, lines, delimiter, quote) for quote in quotes]
        if len(cut) > 1 and cut[0] is not None and cut[1] is not None and len(cut[0]) < len(cut[1]):
            cut[0] = None  # a lone quote swallowed line ends that are there without it
        whole = any(rows is not None for rows in cut)
        for rank, (quote, rows) in enumerate(zip(quotes, cut, strict=True)):
            if rows is not None:
                how = f"cells separated by {word}" + (
                    ", quotes as plain characters" if '"' in text and not quote else ""
                )
                yield _Layout(how, rows, 10 * place + rank, "--quote" if len(quotes) > 1 else "--delimiter")
        if not whole and reading.quote in (None, "none") and all(delimiter in line for line in lines):
            for rank, last in enumerate((False, True)):
                parts = [line.rsplit(delimiter, 1) if last else line.split(delimiter, 1) for line in lines]
                side = "last" if last else "first"
                rows = [[cell.strip() for cell in row] for row in parts]
                labels = [row[-1 if last else 0] for row in rows]
                if _few(labels[1:]) and max(len(label.split()) for label in labels) <= 4:
                    yield _Layout(f"each line cut at its {side} {word}", rows, 10 * place + 5 + rank)
    if asked in (None, r"\s+") and len(lines) >= LEAST_OF_LINES:
        for rank, last in enumerate((False, True)):
            parts = [line.strip().rsplit(None, 1) if last else line.split(None, 1) for line in lines]
            if any(len(row) < 2 for row in parts):
                continue
            labels = [row[-1 if last else 0] for row in parts]
            shaped = all((is_number(label) if last else _LINE_LABEL.fullmatch(label)) for label in labels)
            if (shaped or any_label) and _few(labels) and len(set(labels)) <= 200:
                rows = [[row[0].removeprefix("__label__"), row[1]] for row in parts] if not last else parts
                words = f"each line {'ends' if last else 'begins'} with its label"
                yield _Layout(words, rows, 200 + rank, names=("text", "label") if last else ("label", "text"))


def _cut(text: str, lines: list[str], delimiter: str, quote: str) -> list[list[str]] | None:
    """All records, if each has as many cells as the others; None otherwise."""
    if len(delimiter) > 1 or not quote:
        rows = [[cell.strip() for cell in line.split(delimiter)] for line in lines]
    else:
        try:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote, strict=True,
                                skipinitialspace=delimiter != "\t")  # fmt: skip
            rows = [[cell.strip() for cell in row] for row in reader if any(cell.strip() for cell in row)]
        except csv.Error:
            return None
    width = len(rows[0]) if rows else 0
    return rows if width >= 2 and len(rows) >= LEAST_ROWS and all(len(row) == width for row in rows) else None


def _few(labels: list[str]) -> bool:
    """Whether cells may be classes: two or more, and few for their number."""
    distinct = len(set(labels))
    return 2 <= distinct <= max(2, min(1000, len(labels) // 4))


def _has_sentences(text: str) -> bool:
    """Whether lines from the whole file hold several words of letters: a quick look before any layout is tried."""
    lines = [line for line in text.split("\n") if line.strip()]
    sample = "\n".join(lines[:: max(1, len(lines) // 500)])[: 1 << 20]
    letters = sum(letter.isalpha() for letter in sample)
    return letters > 0.3 * len(sample) and len(sample.split()) >= 3 * (sample.count("\n") + 1)


def _columns(layout: _Layout) -> _Columns | None:
    """Which columns are texts and which are targets; None where it is no table of texts with a target."""
    rows = layout.rows
    body, first = rows[1:], rows[0]
    width = len(first)
    filled = [[row[i] for row in body if row[i]] for i in range(width)]
    empty = [len(cells) < (1 - MOST_EMPTY) * len(body) for cells in filled]
    texts = [i for i in range(width) if not empty[i] and _is_text(filled[i])]
    if not texts:
        return None
    targets, left = [], []
    for i in (i for i in range(width) if i not in texts):
        cells = filled[i]
        if empty[i] or len(set(cells)) < 2 or (width > 2 and _is_identifier(cells, len(body))):
            left.append(i)
        elif _is_target(cells, len(body)):
            targets.append(i)
        else:
            return None
    if not targets or (len(targets) > 1 and not all(set(filled[i]) == {"0", "1"} for i in targets)):
        return None  # with several other columns it is a table with a text in it
    header = layout.names is None and _has_header(first, body, texts, targets)
    names = _names(first, width) if header else layout.names or tuple(f"c{i}" for i in range(width))
    return None if len(set(names)) < width else _Columns(header, names, tuple(texts), tuple(targets), tuple(left))


def _is_text(cells: list[str]) -> bool:
    """Whether cells are sentences, most of them different; a premise may come again with several hypotheses."""
    if is_free_text(pd.Series(cells, dtype=object)):
        return True
    words = float(np.median([len(cell.split()) for cell in cells[:2000]]))
    return words >= 4 and len(set(cells)) > max(20, 0.05 * len(cells))


def _is_identifier(cells: list[str], rows: int) -> bool:
    """Whether cells name the rows: all different, and no fractions."""
    return len(set(cells)) == len(cells) >= 0.9 * rows and not any(
        "." in cell and is_number(cell) for cell in cells[:100]
    )


def _is_target(cells: list[str], rows: int) -> bool:
    """Whether cells are classes, or numbers to predict."""
    if all(map(is_number, cells)):
        return True
    return _few(cells) and float(np.median([len(cell) for cell in cells])) <= 60


def _has_header(first: list[str], body: list[list[str]], texts: list[int], targets: list[int]) -> bool:
    """Whether the first record holds names: short, different words, and in the target's place none of its classes."""
    if not targets:
        return False
    for i in targets:
        labels = {row[i] for row in body}
        if first[i] in labels or (
            first[i] and all(is_number(label) for label in labels if label) and is_number(first[i])
        ):
            return False
    named = [cell for cell in first if cell]
    short = all(len(cell.split()) <= 3 and len(cell) <= 40 and not is_number(cell) for cell in named)
    return short and len({cell.casefold() for cell in named}) == len(named)


def _names(first: list[str], width: int) -> tuple[str, ...]:
    return tuple(first[i] or f"column_{i}" for i in range(width))


def _refuse_ties(path: Path, explained: list[tuple[_Layout, _Columns]]) -> None:
    """Stop where another layout gives the rows other answers than the first one."""
    (first, columns), *others = explained
    answers = _answers(first, columns)
    for layout, other in others:
        if _answers(layout, other) != answers:
            decide = layout.option or first.option
            if columns.answer != other.answer:
                decide = f"--target {columns.answer} or --target {other.answer}"
            raise WonderlandError(
                f"{path} could be read in two ways: {first.words} (target {columns.answer!r}, for instance {_shown(answers[0])}), "
                f"or {layout.words} (target {other.answer!r}, for instance {_shown(_answers(layout, other)[0])}). "
                f"Say which with {decide or '--delimiter'}."
            )


def _shown(answers: list[str]) -> str:
    return repr(",".join(answers)[:40])


def _answers(layout: _Layout, columns: _Columns) -> list[list[str]]:
    return [[row[i] for i in columns.targets] for row in layout.rows[int(columns.header) :]]


def _frame(layout: _Layout, columns: _Columns) -> tuple[pd.DataFrame, list[Finding]]:
    rows = layout.rows[int(columns.header) :]
    kept = sorted((*columns.texts, *columns.targets))
    frame = pd.DataFrame({columns.names[i]: [row[i] or None for row in rows] for i in kept}, dtype=object)
    for name in (columns.names[i] for i in columns.targets):
        if all(is_number(answer) for answer in frame[name] if answer is not None):
            frame[name] = pd.to_numeric(frame[name])
    findings = []
    if columns.left:
        names = ", ".join(repr(columns.names[i]) for i in columns.left[:5])
        one = len(columns.left) == 1
        text = f"{'Column' if one else 'Columns'} {names} {'is' if one else 'are'} empty, always the same or all different, and left out."
        findings.append(Finding("left out", columns.names[columns.left[0]], len(columns.left), text))
    return frame, findings


def _sentence(path: Path, layout: _Layout, columns: _Columns, findings: list[Finding]) -> str:
    """How the file was read, in one sentence."""
    rows = len(layout.rows) - columns.header
    texts = " and ".join(repr(columns.names[i]) for i in columns.texts)
    header = "the first line holds names" if columns.header else "no header"
    encoding = "" if findings else ", UTF-8"
    noun = "is the text" if len(columns.texts) == 1 else "are the texts"
    return (
        f"{path.name} is read as {counted(rows, 'row', 'rows')}: {layout.words}, {header}{encoding}; {texts} {noun} and "
        f"{columns.answer!r} is the target. Options overrule it: --delimiter, --quote, --encoding, --target, --column, --kind."
    )
