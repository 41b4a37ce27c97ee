"""Ways to cut a file of texts into cells: delimiters, quotes, labels at the beginning or end of lines."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wonderland.data.read import COMMENTS, is_number
from wonderland.data.reading import Reading

DELIMITERS = ("\t", ",", ";", "|")
RARE_DELIMITERS = ("|||", "||", "::", "@@@", "+++$+++", "@", "\x01")
DELIMITER_WORDS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "pipe"}
LEAST_ROWS = 4
LEAST_OF_LINES = 20  # lines that begin or end with a label, without a delimiter that tells it from the text
WHOLE, PARTS, LINES = 0, 5, 200  # ranks: all cells of a line, a line cut once, a line and its label
LABEL = "__label__"
_LINE_LABEL = re.compile(r"-?\d{1,4}(?:\.0)?|[A-Za-z]+[:_][A-Za-z:_]+|[A-Z][A-Z0-9_]+")
_LABELS_FIRST = re.compile(r"((?:__label__\S+[ \t,;]+)+)(.*)", re.S)
_LABELS_LAST = re.compile(r"(.*?)((?:[ \t,;]+__label__\S+)+)", re.S)
_LABELS = re.compile(r"__label__\S+(?:\s+__label__\S+)*")
_QUOTED = "after a backslash"
_AMOUNT = re.compile(r"[+-]?\d+,\d+")
_SINGLE = re.compile(r"'.*'", re.S)
_NO_TEXT = re.compile(r"^[\s,;]+")


@dataclass(frozen=True)
class Layout:
    """One way to cut the lines of a file into cells."""

    words: str
    rows: list[list[str]]
    rank: int  # among layouts that give the same answers, the lowest is taken
    option: str = ""  # what decides between this layout and another
    quoted: bool = False  # whether quotes around cells were read as such
    names: tuple[str, str] | None = None  # of its two columns, where a line has no cells


def layouts(text: str, reading: Reading, any_label: bool) -> Iterator[Layout]:
    """Every way to cut all lines into equally many cells, at least two."""
    lines = lines_of(text)
    if len(lines) < LEAST_ROWS:
        return
    marked = _marked(lines) if reading.separator is None and len(lines) >= LEAST_OF_LINES else None
    if marked is not None:
        yield marked
    for place, delimiter in enumerate(_delimiters(reading, lines)):
        if not all(delimiter in line for line in lines[:LEAST_ROWS]) and not (reading.quote != "none" and '"' in text):
            continue
        word = DELIMITER_WORDS.get(delimiter, repr(delimiter)[1:-1])
        whole = _whole(text, lines, delimiter, reading)
        for rank, (how, rows) in enumerate(whole):
            if marked is not None and not any(
                all(map(_LABELS.fullmatch, column)) for column in zip(*rows, strict=True)
            ):
                continue  # the delimiter is a part of the texts
            option = "--quote" if how else "--delimiter"
            quoted = _QUOTED in how or (not how and '"' in text and reading.quote is None)
            yield Layout(f"cells separated by {word}{how}", rows, 10 * place + WHOLE + rank, option, quoted)
        if (
            marked is None
            and not whole
            and reading.quote in (None, "none")
            and all(delimiter in line for line in lines)
        ):
            for rank, last in enumerate((False, True)):
                parts = [line.rsplit(delimiter, 1) if last else line.split(delimiter, 1) for line in lines]
                side = "last" if last else "first"
                rows = [[cell.strip() for cell in row] for row in parts]
                labels = [row[-1 if last else 0] for row in rows]
                if few(labels[1:]) and max(len(label.split()) for label in labels) <= 4:
                    yield Layout(f"each line cut at its {side} {word}", rows, 10 * place + PARTS + rank)
    if marked is None and reading.separator in (None, r"\s+") and len(lines) >= LEAST_OF_LINES:
        yield from _labelled(lines, any_label)


def lines_of(text: str) -> list[str]:
    """The lines that are not blank."""
    return [line for line in re.split(r"\r\n|\n|\r", text) if line.strip()]


def without_comments(text: str) -> tuple[str, int]:
    """The text without the comment lines that it begins with, and how many there were.

    >>> without_comments("# exported today\\na,b\\n")
    ('a,b\\n', 1)
    """
    count = 0
    while text.lstrip().startswith(COMMENTS) and "\n" in text.lstrip():
        text = text.lstrip().split("\n", 1)[1]
        count += 1
    return text, count


def ragged(text: str, reading: Reading) -> tuple[Layout, int, int, int] | None:
    """A layout that all but a few lines have: it, the first line that has another number of cells, that number, and the right one."""
    lines = lines_of(text)
    if len(lines) < LEAST_OF_LINES:
        return None
    for place, delimiter in enumerate(_delimiters(reading, lines)[: len(DELIMITERS)]):
        if sum(delimiter in line for line in lines[:1000]) < 0.9 * len(lines[:1000]):
            continue
        tried = (
            [(reading.quote_character, None)]
            if reading.quote is not None
            else [('"', None), ('"', "\\"), ("'", None), ("", None)]
        )
        for quote, escape in tried:
            cells = _read(text, delimiter, quote, strict=escape is not None or quote == "'", escape=escape)
            if cells is None or not cells:
                continue
            widths = [len(row) for _, row in cells]
            usual = max(set(widths), key=widths.count)
            wrong = [(number, len(row)) for number, row in cells if len(row) != usual]
            if usual >= 2 and 0 < len(wrong) <= max(1, 0.05 * len(cells)):
                rows = [row for _, row in cells if len(row) == usual]
                word = DELIMITER_WORDS.get(delimiter, repr(delimiter)[1:-1])
                return Layout(f"cells separated by {word}", rows, place), *wrong[0], usual
    return None


def _delimiters(reading: Reading, lines: list[str]) -> tuple[str, ...]:
    """The delimiters to try; one that is part of another, such as | of |||, is not where the other is in every line."""
    asked = reading.separator
    if asked is None:
        everywhere = [mark for mark in RARE_DELIMITERS if len(mark) > 1 and all(mark in line for line in lines)]
        every = (*DELIMITERS, *RARE_DELIMITERS)
        return tuple(mark for mark in every if not any(mark in long and mark != long for long in everywhere))
    return () if asked == r"\s+" else (asked,)


def _whole(text: str, lines: list[str], delimiter: str, reading: Reading) -> list[tuple[str, list[list[str]]]]:
    """How quotes are read and the cells of all lines, by which every line has as many as the others.

    Quoted cells win over quotes as plain characters, unless a lone quote swallows line ends; single quotes and quotes after a
    backslash count only where nothing else explains all lines.
    """
    if reading.quote is not None:
        rows = _cut(text, lines, delimiter, reading.quote_character)
        return [] if rows is None else [("", rows)]
    plain = _cut(text, lines, delimiter, "")
    quoted = _cut(text, lines, delimiter, '"') if '"' in text else None
    if quoted is not None and (plain is None or len(quoted) >= len(plain)):
        return [("", quoted)]
    if '\\"' in text and (rows := _cut(text, lines, delimiter, '"', escape="\\")) is not None:
        return [(", quotes after a backslash", rows)]
    if plain is not None and any(all(map(_SINGLE.fullmatch, column)) for column in zip(*plain[1:], strict=True)):
        plain = _cut(text, lines, delimiter, "'") or plain
    if plain is not None:
        return [(", quotes as plain characters" if '"' in text else "", plain)]
    if "'" in text and (rows := _cut(text, lines, delimiter, "'")) is not None:
        return [(", single quotes around cells", rows)]
    return []


def _cut(text: str, lines: list[str], delimiter: str, quote: str, escape: str | None = None) -> list[list[str]] | None:
    """All records, if each has as many cells as the others; None otherwise."""
    if len(delimiter) > 1 or not quote:
        rows = [[cell.strip() for cell in line.split(delimiter)] for line in lines]
        if len(set(delimiter)) == 1 < len(delimiter):  # a text may end with the sign of the delimiter, as in "so:::yes"
            last = re.compile(re.escape(delimiter) + f"(?!{re.escape(delimiter[0])})")
            late = [[cell.strip() for cell in last.split(line)] for line in lines]
            rows = late if len({len(row) for row in late}) == 1 else rows
    else:
        read = _read(text, delimiter, quote, strict=True, escape=escape)
        if read is None:
            return None
        rows = [row for _, row in read]
    width = len(rows[0]) if rows else 0
    return rows if width >= 2 and len(rows) >= LEAST_ROWS and all(len(row) == width for row in rows) else None


def _read(
    text: str, delimiter: str, quote: str, *, strict: bool, escape: str | None = None
) -> list[tuple[int, list[str]]] | None:
    """The records that are not blank, with the line that each begins on."""
    how: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    if escape is not None:
        how |= {"escapechar": escape, "doublequote": False}
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, strict=strict, skipinitialspace=delimiter != "\t", **how
    )
    rows, line = [], 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((line, [cell.strip() for cell in row]))
            line = reader.line_num + 1
    except csv.Error:
        return None
    return rows


def _marked(lines: list[str]) -> Layout | None:
    """Lines that begin, or end, with one or several `__label__x`, as fastText reads them."""
    if LABEL not in lines[0]:
        return None
    for last, pattern in enumerate((_LABELS_FIRST, _LABELS_LAST)):
        matches = [pattern.fullmatch(line.strip()) for line in lines]
        if not all(matches):
            continue
        rows = []
        for match in matches:
            assert match is not None
            labels, text = match.groups() if not last else match.groups()[::-1]
            names = [name.strip(" \t,;") for name in labels.split(LABEL)]
            rows.append([";".join(name for name in names if name), _NO_TEXT.sub("", text).strip()])
        words = f"each line {'ends' if last else 'begins'} with its label"
        return Layout(words, rows, LINES, names=("label", "text"))
    return None


def _labelled(lines: list[str], any_label: bool) -> Iterator[Layout]:
    """Lines that begin or end with a label, a blank away from the text."""
    for rank, last in enumerate((False, True)):
        parts = [line.strip().rsplit(None, 1) if last else line.split(None, 1) for line in lines]
        if any(len(row) < 2 for row in parts):
            continue
        labels = [row[-1 if last else 0] for row in parts]
        shaped = all((is_number(label) if last else _LINE_LABEL.fullmatch(label)) for label in labels)
        if (shaped or any_label) and few(labels) and len(set(labels)) <= 200:
            words = f"each line {'ends' if last else 'begins'} with its label"
            yield Layout(words, parts, LINES + rank, names=("text", "label") if last else ("label", "text"))


def is_amount(cell: str) -> bool:
    """Whether a cell is a number, with a decimal comma or a point.

    >>> is_amount("1.5"), is_amount("1,5"), is_amount("one")
    (True, True, False)
    """
    return is_number(cell) or _AMOUNT.fullmatch(cell) is not None


def few(labels: list[str]) -> bool:
    """Whether cells may be classes: two or more, and few for their number."""
    distinct = len(set(labels))
    return 2 <= distinct <= max(2, min(1000, len(labels) // 4))
