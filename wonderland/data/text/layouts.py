"""How files of texts with an answer are laid out: delimiters and quotes, label first or last, with or without a header.

Every layout that explains all lines of the file is tried. Where two of them give other answers to the rows, the reading stops
and names the option that decides.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.limits import limit
from wonderland.core.unpack import read_unpacked
from wonderland.data.dataset import Finding, counted
from wonderland.data.encodings import to_utf8
from wonderland.data.labels import separator_of
from wonderland.data.reading import Reading
from wonderland.data.text.dialects import LABEL, LINES, PARTS, Layout, few, is_amount, layouts, ragged, without_comments
from wonderland.data.text.recognise import is_free_text

LARGEST = 1 << 28  # bytes of a file that is read in this way
MOST_EMPTY = 0.9
UNSPACED = "\u2e80"  # letters from here on stand without spaces between words
_DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d{4}.*|\d{1,2}:\d\d(?::\d\d)?",
    re.I,
)
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
    explained = _explained(text, reading, target, any_label)
    if not explained:
        text, comments = without_comments(text)
        explained = _explained(text, reading, target, any_label) if comments else []
        if not explained:
            _refuse_ragged(path, text, reading, comments)
            return None
        lines = counted(comments, "line before the first row is a comment", "lines before the first row are comments")
        findings.append(Finding("comments", path.name, comments, f"{path.name}: {lines}, skipped."))
    explained.sort(key=lambda pair: pair[0].rank)
    if any(_has_decimal_commas(layout, columns) for layout, columns in explained):
        explained = [
            pair for pair in explained if not pair[0].words.startswith("cells separated by comma")
        ] or explained
    if any(layout.quoted for layout, _ in explained):  # quotes that end where cells end are no plain characters
        explained = [pair for pair in explained if pair[0].quoted]
    if explained[0][0].rank < PARTS and (
        explained[0][1].header or explained[0][0].words.startswith("cells separated by tab")
    ):
        explained = [pair for pair in explained if pair[0].rank < LINES]  # cells tell more than a label before a text
    layout, columns = explained[0]
    _refuse_ties(path, explained)
    frame, further = _frame(layout, columns)
    return TextTable(
        frame, tuple(columns.names[i] for i in columns.texts), columns.answer,
        _sentence(path, layout, columns, findings), findings + further,
    )  # fmt: skip


def _explained(text: str, reading: Reading, target: str | None, any_label: bool) -> list[tuple[Layout, _Columns]]:
    """The layouts under which the file is a table of texts and a target, with what their columns are."""
    explained = []
    for layout in layouts(text, reading, any_label):
        columns = _columns(layout)
        if columns is not None and target in (None, columns.answer):
            explained.append((layout, columns))
    return explained


def _refuse_ragged(path: Path, text: str, reading: Reading, comments: int) -> None:
    """Stop at a file of texts and a target where a few lines have too many or too few cells."""
    broken = ragged(text, reading)
    if broken is None:
        return
    layout, number, width, usual = broken
    if _columns(layout) is None:
        return
    raise WonderlandError(
        f"{path}: line {number + comments} has {counted(width, 'cell', 'cells')} where {usual} are expected ({layout.words}). Complete the "
        "line or leave it out, quote cells that hold the delimiter, or say how the file is written with --delimiter and --quote."
    )


def _has_sentences(text: str) -> bool:
    """Whether lines from the whole file hold several words of letters: a quick look before any layout is tried."""
    lines = [line for line in text.split("\n") if line.strip()]
    sample = "\n".join(lines[:: max(1, len(lines) // 500)])[: 1 << 20]
    letters = sum(letter.isalpha() for letter in sample)
    words = len(re.findall(r"[^\W\d_]{2,}", sample)) + sum(letter > UNSPACED for letter in sample) / 2
    return letters > 0.3 * len(sample) and words >= sample.count("\n") + 1


def _columns(layout: Layout) -> _Columns | None:
    """Which columns are texts and which are targets; None where it is no table of texts with a target."""
    rows = layout.rows
    body, first = rows[1:], rows[0]
    width = len(first)
    filled = [[row[i] for row in body if row[i]] for i in range(width)]
    empty = [len(cells) < (1 - MOST_EMPTY) * len(body) for cells in filled]
    left = [i for i in range(width) if empty[i] or len(set(filled[i])) < 2]
    left += [i for i in range(width) if i not in left and width > 2 and _is_about_the_row(filled[i], len(body))]
    texts = [i for i in range(width) if i not in left and _is_text(filled[i])]
    texts = texts or [i for i in range(width) if i not in left and _is_phrase(filled[i])]
    if not texts:
        return None
    candidates = []
    for i in (i for i in range(width) if i not in texts and i not in left):
        if _is_target(filled[i], len(body)) or _has_many_names(filled[i]):
            candidates.append(i)
        elif _is_title(filled[i]):
            texts = sorted([*texts, i])
        else:
            return None
    flags = len(candidates) > 1 and all(set(filled[i]) == {"0", "1"} for i in candidates)
    targets = candidates
    if len(candidates) > 1 and not flags:  # beside a class, an author or a source is left out
        targets = [i for i in candidates if not _has_many_names(filled[i])]
    if not flags and (len(targets) != 1 or not _is_target(filled[targets[0]], len(body))):
        return None  # with several other columns it is a table with a text in it
    if any(_median_words(filled[i]) > max(3, max(_median_words(filled[j]) for j in texts)) for i in targets):
        return None  # what is called a class here is longer than the text
    left = sorted({*left, *candidates} - set(targets))
    header = layout.names is None and _has_header(first, body, texts, targets)
    names = _names(first, width) if header else layout.names or tuple(f"c{i}" for i in range(width))
    return None if len(set(names)) < width else _Columns(header, names, tuple(texts), tuple(targets), tuple(left))


def _is_text(cells: list[str]) -> bool:
    """Whether cells are sentences, most of them different; a premise may come again with several hypotheses."""
    if is_free_text(pd.Series(cells, dtype=object)):
        return True
    return _median_words(cells) >= 4 and len(set(cells)) > max(20, 0.05 * len(cells))


def _is_phrase(cells: list[str]) -> bool:
    """Whether cells are names, titles or short messages, which are texts where no column holds sentences."""
    words = sum(len(cell.split()) for cell in cells) / max(1, len(cells))
    letters = sum(map(str.isalpha, "".join(cells[:1000]))) > 0.5 * sum(map(len, cells[:1000]))
    return words >= 1.3 and letters and len(set(cells)) > max(20, 0.4 * len(cells))


def _median_words(cells: list[str]) -> float:
    return float(np.median([len(cell.split()) for cell in cells[:2000]])) if cells else 0.0


def _is_title(cells: list[str]) -> bool:
    """Whether cells beside a text are short ones, such as titles: many of them different, some of several words."""
    words = sum(len(cell.split()) for cell in cells)
    letters = sum(map(str.isalpha, "".join(cells[:1000]))) > 0.5 * sum(map(len, cells[:1000]))
    return letters and len(set(cells)) > max(20, 0.1 * len(cells)) and words > 1.3 * len(cells)


def _is_about_the_row(cells: list[str], rows: int) -> bool:
    """Whether cells name the rows (all different, and no fractions), or are dates or addresses of pages."""
    sample = cells[:200]
    if all(map(_DATE.fullmatch, sample)) or all(
        cell.startswith(("http://", "https://", "www.")) and " " not in cell for cell in sample
    ):
        return True
    single = all(len(cell.split()) == 1 and max(cell) < UNSPACED for cell in sample) and not any(
        "." in cell and is_amount(cell) for cell in sample
    )
    return single and len(set(cells)) == len(cells) >= 0.9 * rows


def _has_many_names(cells: list[str]) -> bool:
    """Whether cells are single words of which there are many for the number of rows, such as authors and sources."""
    return (
        len(set(cells)) > max(20, 0.05 * len(cells))
        and all(len(cell.split()) == 1 for cell in cells)
        and not all(map(is_amount, cells))
    )


def _is_target(cells: list[str], rows: int) -> bool:
    """Whether cells are classes, lists of labels, or numbers to predict."""
    if all(map(is_amount, cells)):
        return True
    if separator_of(pd.Series(cells, dtype=object)) is not None:
        return True
    return few(cells) and float(np.median([len(cell) for cell in cells])) <= 60


def _has_header(first: list[str], body: list[list[str]], texts: list[int], targets: list[int]) -> bool:
    """Whether the first record holds names: short, different words, and in the target's place none of its classes."""
    if not targets:
        return False
    for i in targets:
        labels = {row[i] for row in body}
        if first[i] in labels or (
            first[i] and all(is_amount(label) for label in labels if label) and is_amount(first[i])
        ):
            return False
    named = [cell for cell in first if cell]
    short = all(len(cell.split()) <= 3 and len(cell) <= 40 and not is_amount(cell) for cell in named)
    return short and len({cell.casefold() for cell in named}) == len(named)


def _names(first: list[str], width: int) -> tuple[str, ...]:
    return tuple(first[i] or f"column_{i}" for i in range(width))


def _refuse_ties(path: Path, explained: list[tuple[Layout, _Columns]]) -> None:
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


def _has_decimal_commas(layout: Layout, columns: _Columns) -> bool:
    """Whether the target is a number with a comma in most rows, which another delimiter keeps together."""
    cells = [row[i] for i in columns.targets for row in layout.rows[1:]]
    return all(map(is_amount, cells)) and sum("," in cell for cell in cells) > 0.5 * len(cells)


def _shown(answers: list[str]) -> str:
    return repr(",".join(answers)[:40])


def _answers(layout: Layout, columns: _Columns) -> list[list[str]]:
    return [[row[i].removeprefix(LABEL) for i in columns.targets] for row in layout.rows[int(columns.header) :]]


def _frame(layout: Layout, columns: _Columns) -> tuple[pd.DataFrame, list[Finding]]:
    rows = layout.rows[int(columns.header) :]
    kept = sorted((*columns.texts, *columns.targets))
    frame = pd.DataFrame({columns.names[i]: [row[i] or None for row in rows] for i in kept}, dtype=object)
    for name in (columns.names[i] for i in columns.targets):
        if frame[name].dropna().str.startswith(LABEL).all():
            frame[name] = frame[name].str.removeprefix(LABEL)
        if all(is_amount(answer) for answer in frame[name] if answer is not None):
            commas = frame[name].dropna().str.contains(",").any()
            if commas and separator_of(frame[name]) is not None:
                continue  # labels such as 4,7, or numbers: decided where the target is read
            frame[name] = pd.to_numeric(frame[name].str.replace(",", ".") if commas else frame[name])
    findings = []
    if columns.left:
        names = ", ".join(repr(columns.names[i]) for i in columns.left[:5])
        one = len(columns.left) == 1
        text = f"{'Column' if one else 'Columns'} {names} {'is' if one else 'are'} empty, always the same or about the row (identifiers, dates, addresses, authors), and left out."
        findings.append(Finding("left out", columns.names[columns.left[0]], len(columns.left), text))
    return frame, findings


def _sentence(path: Path, layout: Layout, columns: _Columns, findings: list[Finding]) -> str:
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
