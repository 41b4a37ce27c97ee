"""Files of tagged words: CoNLL columns, tables with a word in each row, JSON with marked spans or with lists of tokens."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError
from wonderland.core.limits import check
from wonderland.core.unpack import read_unpacked
from wonderland.data.dataset import Finding, counted
from wonderland.data.encodings import to_utf8
from wonderland.data.reading import Reading
from wonderland.data.text.marked import Marked, read_marked

LONGEST = 200  # words of a piece of text that is tagged at once
MOST_TAGS = 500
SAMPLE = 1 << 16
_RARE = 0.01  # share of lines that may have other columns than the rest
_SENTENCE = ("sentence #", "sentence#", "sentence", "sentence_id", "sentence_idx", "sent_id", "sentence_number")
_WORD = ("word", "words", "token", "tokens", "form", "text")
_TAG = ("tag", "ner", "ner_tag", "ner_tags", "tags", "label", "labels", "bio", "iob", "entity", "target")
_JOINED = {sign: re.compile(rf"\S+{sign}[^\s\d]\S{{0,15}}") for sign in "/_"}
_END_OF_SENTENCE = re.compile(r"[.!?。！？]+")


@dataclass
class Tagged:
    """Sentences as lists of words with their tags, None where the file has none.

    `documents` numbers the text that each sentence belongs to. Where the file holds running text, `texts` are the texts and
    `places` the first and last character of each word in them.
    """

    words: list[list[str]]
    tags: list[list[str]] | None
    documents: list[int]
    sentence: str = ""
    texts: list[str] | None = None
    places: list[list[tuple[int, int]]] | None = None
    findings: list[Finding] = field(default_factory=list)


def read_tagged(
    path: Path,
    reading: Reading,
    *,
    column: str | None = None,
    target: str | None = None,
    need_tags: bool = True,
    known: Sequence[str] = (),
) -> Tagged | None:
    """A file of tagged words, or None where it holds anything else.

    `column` and `target` name the columns (from 1, or by name) or fields of the words and the tags. `known`
    are tags that a column of tags may hold however short the file is.
    """
    if path.is_dir() or not path.is_file() or not _may_be(path, reading, need_tags):
        return None
    data = read_unpacked(path, "table_bytes")
    check("table_bytes", len(data), path)
    try:
        data, findings = to_utf8(data, path, reading.encoding)
    except WonderlandError:
        if reading.encoding is not None:
            raise
        return None
    text = data.decode("utf-8", "replace")
    if text.lstrip()[:1] in ("{", "["):
        marked = read_marked(text, path, column, target, need_tags=need_tags)
        return None if marked is None else _of_marked(marked, findings)
    tagged = (
        _from_table(text, path, reading, column, target)
        or (_from_joined(text, path) if need_tags else None)
        or _from_columns(text, path, column, target, need_tags, known)
    )
    if tagged is not None:
        tagged.findings = [*findings, *tagged.findings]
    return None if tagged is None else in_pieces(tagged)


def _may_be(path: Path, reading: Reading, need_tags: bool) -> bool:
    """A quick look at the start of a file."""
    if path.suffix.lower() in (".gz", ".bz2", ".xz", ".zip"):
        return not need_tags or any(part in path.name.lower() for part in (".conll", ".iob", ".bio", ".jsonl"))
    with path.open("rb") as file:
        start = file.read(SAMPLE)
    text = start.decode(reading.encoding or "utf-8", "replace").removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "["):
        return not need_tags or bool(
            re.search(r'"(spans|entities|annotations|ner_tags|tags|labels?|offsets|pos_tags|ner|ents)"\s*:\s*\[', text)
        )
    if "\0" in text:
        return False
    lines = text.split("\n")
    lines = lines[:-1] if len(start) == SAMPLE else lines
    if lines and any(name in lines[0].casefold() for name in _SENTENCE):
        return True
    if not need_tags:
        return True
    return _has_runs(lines) or _joint(lines[:200]) is not None


def _has_runs(lines: Sequence[str]) -> bool:
    """Whether lines come in runs of several with empty ones between, each of equally many cells."""
    runs, size = [], 0
    for line in [*lines, ""]:
        if line.strip():
            size += 1
        elif size:
            runs.append(size)
            size = 0
    filled = [line for line in lines if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
    if len(runs) < 2 or not filled or sum(runs) / len(runs) < 2:
        return False
    for split in (str.split, lambda line: line.rstrip("\r\n").split("\t")):
        widths = Counter(len(split(line)) for line in filled)
        width, count = widths.most_common(1)[0]
        if width >= 2 and count >= (1 - 5 * _RARE) * len(filled):
            return True
    return False


def _joint(lines: Sequence[str]) -> str | None:
    """The sign between word and tag in lines such as "The/DT dog/NN"; None where lines are written otherwise."""
    tokens = [token for line in lines for token in line.split()]
    for sign in ("/", "_"):
        fitting = sum(_JOINED[sign].fullmatch(token) is not None for token in tokens)
        if len(tokens) >= 20 and fitting >= (1 - _RARE) * len(tokens):
            return sign
    return None


def _from_joined(text: str, path: Path) -> Tagged | None:
    """A sentence in each line, with the tag of each word behind it."""
    lines = [line for line in re.split(r"\r\n|\n|\r", text) if line.strip()]
    sign = _joint(lines)
    if sign is None or len(lines) < 2:
        return None
    tokens = [[token.rpartition(sign) for token in line.split()] for line in lines]
    words = [[word or tag for word, _, tag in row] for row in tokens]
    tags = [[tag if word else "O" for word, _, tag in row] for row in tokens]
    if not 2 <= len({tag for row in tags for tag in row}) <= min(MOST_TAGS, sum(map(len, tags)) / 4):
        return None
    sentence = (
        f"{path.name} is read as {counted(len(words), 'sentence', 'sentences')}, one in each line, with the tag of each word behind {sign!r}. "
        "Options overrule it: --encoding, --kind."
    )
    return Tagged(words, tags, list(range(len(words))), sentence)


def _from_columns(
    text: str, path: Path, column: str | None, target: str | None, need_tags: bool, known: Sequence[str]
) -> Tagged | None:
    """Lines of cells, an empty line after each sentence."""
    lines = re.split(r"\r\n|\n|\r", text)
    if not need_tags and not _has_runs(lines[:5000]):
        return None
    filled = [line for line in lines if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
    if not filled:
        return None
    tabs = Counter(line.count("\t") for line in filled).most_common(1)[0]
    by_tab = tabs[0] >= 1 and tabs[1] >= (1 - _RARE) * len(filled)

    def cut(line: str) -> list[str]:
        return [cell.strip() for cell in line.split("\t")] if by_tab else line.split()

    width, usual = Counter(len(cut(line)) for line in filled).most_common(1)[0]
    if width < (2 if need_tags else 1) or len(filled) - usual > max(1, _RARE * len(filled)):
        return None
    rows = [cut(line) for line in filled]
    word = _number(column, "column", width, path) if column else _word_column(rows, width)
    tag = _number(target, "target", width, path) if target else _tag_column(rows, width, word, known)
    if need_tags and tag is None:
        return None
    spaced = max(sum(" " in row[i] for row in rows if len(row) == width) for i in range(width))
    if need_tags and not column and spaced > 0.2 * len(rows):
        return None  # sentences, not words
    tags_seen = {row[tag] for row in rows if len(row) == width} if tag is not None else set()
    tagged = Tagged([], None if tag is None else [], [])
    words: list[str] = []
    tags: list[str] = []
    document, odd = -1, 0
    for line in [*lines, ""]:
        cells = cut(line)
        begins_text = line.startswith("-DOCSTART-")
        comment = line.startswith("#") and (len(cells) != width or (not words and cells[tag or 0] not in tags_seen))
        if comment:
            continue
        if not line.strip() or begins_text:
            if words:
                tagged.words.append(words)
                tagged.documents.append(max(document, 0) if document >= 0 else len(tagged.documents))
                if tagged.tags is not None:
                    tagged.tags.append(tags)
                words, tags = [], []
            document += begins_text
            continue
        odd += len(cells) != width
        words.append(cells[word] if len(cells) == width else cells[0])
        if tag is not None:
            tags.append(
                cells[tag] if len(cells) == width else cells[-1] if len(cells) > 1 and cells[-1] in tags_seen else "O"
            )
    if len(tagged.words) < (2 if need_tags else 1):
        return None
    others = [i + 1 for i in range(width) if i not in (word, tag)]
    rest = f"; columns {', '.join(map(str, others[:6]))} are not used" if others else ""
    if tag is not None:
        tagged.sentence = (
            f"{path.name} is read as {counted(len(tagged.words), 'sentence', 'sentences')} of words in column {word + 1} with tags in column {tag + 1} "
            f"of {width}{rest}. Options overrule it: --column, --target, --encoding, --kind."
        )
    if odd:
        lines_have = counted(odd, "line has", "lines have")
        tagged.findings.append(
            Finding(
                "columns",
                path.name,
                odd,
                f"{lines_have} other than {width} columns; the first cell is read as the word.",
            )
        )
    return tagged


def _number(name: str, option: str, width: int, path: Path) -> int:
    if name.isdigit() and 1 <= int(name) <= width:
        return int(name) - 1
    raise WonderlandError(
        f"{path} has columns without names, 1 to {width}: give {option} as one of them, not {name!r}."
    )


def _word_column(rows: list[list[str]], width: int) -> int:
    """The first column, or the second where the first numbers the words."""
    numbers = all(re.fullmatch(r"\d+([-.]\d+)?", row[0]) for row in rows[:2000] if row)
    return 1 if numbers and width > 2 else 0


def _tag_column(rows: list[list[str]], width: int, word: int, known: Sequence[str]) -> int | None:
    """The last column whose cells are few and short: tags."""
    if width == 10 and word == 1:  # CoNLL-U: the universal part of speech
        return 3
    for i in range(width - 1, -1, -1):
        cells = Counter(row[i] for row in rows if len(row) == width)
        if i != word and known and set(cells) <= set(known):
            return i
        if i != word and 2 <= len(cells) <= max(2, min(MOST_TAGS, len(rows) // 4)) and max(map(len, cells)) <= 60:
            return i
    return None


def _from_table(text: str, path: Path, reading: Reading, column: str | None, target: str | None) -> Tagged | None:
    """A table with a word in each row, and a column that numbers the sentences, perhaps at their first word only."""
    head = text[: text.find("\n")] if "\n" in text else text
    delimiter = reading.separator or next((sign for sign in ("\t", ";", ",", "|") if sign in head), ",")
    if len(delimiter) != 1:
        return None
    names = [name.strip().strip('"').casefold() for name in head.split(delimiter)]
    sentence = next((names.index(name) for name in _SENTENCE if name in names), None)
    if sentence is None or len(names) < 3:
        return None
    word = _named(names, column, _WORD, "column", path, sentence)
    tag = _named(names, target, _TAG, "target", path, sentence)
    if word is None or tag is None:
        return None
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=reading.quote_character or '"')
    tagged = Tagged([], [], [])
    assert tagged.tags is not None
    last: str | None = None
    for place, row in enumerate(rows):
        if not place or len(row) <= max(word, tag, sentence):
            continue
        number = row[sentence].strip()
        if not tagged.words or (number and number != last):
            tagged.words.append([])
            tagged.tags.append([])
            tagged.documents.append(len(tagged.documents))
            last = number
        if row[word].strip():
            tagged.words[-1].append(row[word].strip())
            tagged.tags[-1].append(row[tag].strip() or "O")
    kept = [i for i, words in enumerate(tagged.words) if words]
    tagged.words, tagged.tags = [tagged.words[i] for i in kept], [tagged.tags[i] for i in kept]
    tagged.documents = list(range(len(kept)))
    tagged.sentence = (
        f"{path.name} is read as {counted(len(kept), 'sentence', 'sentences')} of words in column {names[word]!r} with tags in column "
        f"{names[tag]!r}. Options overrule it: --column, --target, --encoding, --kind."
    )
    return tagged if len(kept) > 1 else None


def _named(names: list[str], asked: str | None, usual: Sequence[str], option: str, path: Path, but: int) -> int | None:
    if asked is not None:
        if asked.casefold() not in names:
            raise WonderlandError(
                f"{path} has no column {asked!r} (given as {option}); its columns are {', '.join(names[:20])}."
            )
        return names.index(asked.casefold())
    return next((names.index(name) for name in usual if name in names and names.index(name) != but), None)


def _of_marked(marked: Marked, findings: list[Finding]) -> Tagged:
    """Texts with spans as words with tags: B-NAME at the first word of a span and I-NAME at its others."""
    own = Tagged(marked.words, marked.tags, list(range(len(marked.words))), marked.sentence)
    own.texts, own.places = marked.texts, marked.places
    own.findings = [*findings, *marked.findings]
    return in_pieces(own)


def in_pieces(tagged: Tagged) -> Tagged:
    """Sentences longer than 200 words cut into pieces, where one ends if possible."""
    long = sum(len(words) > LONGEST for words in tagged.words)
    if not long:
        return tagged
    pieces = Tagged(
        [],
        None if tagged.tags is None else [],
        [],
        tagged.sentence,
        tagged.texts,
        None if tagged.places is None else [],
    )
    for i, words in enumerate(tagged.words):
        for first, stop in cuts(words):
            pieces.words.append(words[first:stop])
            pieces.documents.append(tagged.documents[i])
            if pieces.tags is not None and tagged.tags is not None:
                pieces.tags.append(tagged.tags[i][first:stop])
            if pieces.places is not None and tagged.places is not None:
                pieces.places.append(tagged.places[i][first:stop])
    text = f"{counted(long, 'text is', 'texts are')} longer than {LONGEST} words and tagged in pieces."
    pieces.findings = [*tagged.findings, Finding("pieces", "words", long, text)]
    return pieces


def cuts(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last place of the pieces of a text, each of at most 200 words, and ended by a full stop if there is one."""
    first = 0
    while len(words) - first > LONGEST:
        ends = [i + 1 for i in range(first + LONGEST // 2, first + LONGEST) if _END_OF_SENTENCE.fullmatch(words[i])]
        stop = ends[-1] if ends else first + LONGEST
        yield first, stop
        first = stop
    yield first, len(words)


def write_tagged(
    words: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str]],
    spans: Sequence[Sequence[Mapping[str, Any]]],
    texts: Sequence[str],
    suffix: str,
) -> str:
    """Tagged sentences as a file: columns with an empty line after each sentence, or JSON lines of a text and its spans."""
    if suffix in (".jsonl", ".ndjson"):
        rows = ({"text": text, "spans": list(own)} for text, own in zip(texts, spans, strict=True))
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    sentences = (
        "".join(f"{word}\t{tag}\n" for word, tag in zip(*pair, strict=True)) for pair in zip(words, tags, strict=True)
    )
    return "\n".join(sentences)
