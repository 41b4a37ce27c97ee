"""JSON of texts with marked spans, or of lists of tokens with their tags, as words with tags."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding, counted

_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|\w+(?:[-'’]\w+)*|[^\w\s]")
TEXTS = ("text", "sentence", "content", "data", "document", "body")
TOKENS = ("tokens", "words", "token")
TAGS = ("ner_tags", "tags", "ner", "labels", "pos_tags", "bio", "iob")
SPANS = ("spans", "entities", "annotations", "ents", "label", "labels", "offsets")
_START = ("start", "begin", "start_offset", "start_char", "from", "startOffset", "start_index")
_STOP = ("end", "stop", "end_offset", "end_char", "to", "endOffset", "end_index")
_NAME = ("label", "type", "tag", "entity", "entity_type", "class", "name", "labels")


@dataclass
class Marked:
    """Words with tags of each record; with running text also the texts, and the place of each word in its text."""

    words: list[list[str]]
    tags: list[list[str]] | None
    sentence: str
    texts: list[str] | None = None
    places: list[list[tuple[int, int]]] | None = None
    findings: list[Finding] = field(default_factory=list)


def split_words(text: str) -> list[tuple[int, int]]:
    """The places of words and signs in a text: first character, and one past the last.

    >>> text = "It's 5 o'clock, Mr. Li-Wei!"
    >>> [text[first:stop] for first, stop in split_words(text)]
    ["It's", '5', "o'clock", ',', 'Mr', '.', 'Li-Wei', '!']
    """
    return [match.span() for match in _WORD.finditer(text)]


def read_marked(
    text: str, path: Path, column: str | None = None, target: str | None = None, *, need_tags: bool = True
) -> Marked | None:
    """JSON lines, or a JSON list, of records with tags; None for anything else."""
    records = _records(text)
    if not records:
        return None
    asked_tags = () if target is None else (target,)
    tokens = _field(records, (column,) if column else TOKENS, _is_tokens)
    if tokens is not None:
        tags = _field(records, asked_tags or TAGS, lambda value: isinstance(value, list))
        if tags is not None or not need_tags:
            return _of_tokens(records, tokens, tags, path, need_tags)
    words = _field(records, (column,) if column else TEXTS, lambda value: isinstance(value, str))
    spans = _field(records, asked_tags or SPANS, _is_spans)
    if words is None or (spans is None and need_tags):
        return None
    return _of_spans(records, words, spans, path)


def _records(text: str) -> list[Mapping[str, Any]]:
    """The records of a JSON list, of an object that holds one, or of JSON lines; none where it is no JSON."""
    read: Any
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        try:
            read = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return []
    if isinstance(read, dict):
        read = next((value for value in read.values() if isinstance(value, list) and value), [])
    if isinstance(read, list) and read and all(map(_is_annotated, read)):
        read = [{"text": row[0], **row[1]} for row in read]
    return read if isinstance(read, list) and all(isinstance(row, dict) for row in read) else []


def _is_annotated(row: Any) -> bool:
    """Whether a record is a pair of a text and its annotations."""
    return isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict)


def _field(records: Sequence[Mapping[str, Any]], names: Sequence[str], fits: Any) -> str | None:
    """The first of these names that every record has with a value that fits."""
    return next((name for name in names if all(name in row and fits(row[name]) for row in records)), None)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is_spans(value: Any) -> bool:
    return isinstance(value, list) and all(_span(item) is not None for item in value)


def _span(item: Any) -> tuple[int, int, str] | None:
    """First character, one past the last, and name of a span; None where it is none."""
    first: Any
    stop: Any
    name: Any
    if isinstance(item, list | tuple) and len(item) >= 3:
        first, stop, name = item[0], item[1], item[2]
    elif isinstance(item, Mapping):
        inner: Any = item.get("value") if isinstance(item.get("value"), Mapping) else item
        values = [next((inner[key] for key in keys if key in inner), None) for keys in (_START, _STOP, _NAME)]
        first, stop, name = values
        name = name[0] if isinstance(name, list) and len(name) == 1 else name
    else:
        return None
    whole = (
        isinstance(first, int) and isinstance(stop, int) and not isinstance(first, bool) and not isinstance(stop, bool)
    )
    return (first, stop, name) if whole and isinstance(name, str) and name else None


def _of_tokens(
    records: Sequence[Mapping[str, Any]], tokens: str, tags: str | None, path: Path, need_tags: bool
) -> Marked | None:
    words = [list(row[tokens]) for row in records if row[tokens]]
    if tags is None:
        return Marked(words, None, "")
    names = [[str(tag) for tag in row[tags]] for row in records if row[tokens]]
    if sum(len(own) != len(marks) for own, marks in zip(words, names, strict=True)) > 0.5 * len(words):
        return None  # several labels of a text, not a tag for each token
    for place, (own, marks) in enumerate(zip(words, names, strict=True)):
        if len(own) != len(marks):
            if not need_tags:
                return None
            raise WonderlandError(
                f"{path} has {counted(len(own), 'token', 'tokens')} and {counted(len(marks), 'tag', 'tags')} in record {place + 1}: each token needs one tag."
            )
    numbers = all(tag.isdigit() for marks in names for tag in marks)
    more = " The tags are numbers; write their names for a table that says what they mean." if numbers else ""
    sentence = (
        f"{path.name} is read as {counted(len(words), 'sentence', 'sentences')} of words in {tokens!r} with tags in {tags!r}. Options overrule it: "
        f"--column, --target, --kind.{more}"
    )
    return Marked(words, names, sentence)


def _of_spans(records: Sequence[Mapping[str, Any]], column: str, spans: str | None, path: Path) -> Marked | None:
    """Words of running text; a span that cuts a word is extended to the whole of it, and of spans that overlap the longest stays."""
    marked = Marked([], [], "", [], [])
    assert marked.tags is not None
    assert marked.texts is not None
    assert marked.places is not None
    moved = overlaps = outside = 0
    for row in records:
        text, marks = (
            row[column],
            [] if spans is None else [span for item in row[spans] if (span := _span(item)) is not None],
        )
        places = split_words(text)
        if not places:
            continue
        tags = ["O"] * len(places)
        for first, stop, name in sorted(marks, key=lambda span: (span[0] - span[1], span[0])):
            covered = [i for i, (begin, end) in enumerate(places) if begin < stop and end > first]
            if not covered or not 0 <= first < stop <= len(text):
                outside += 1
                continue
            if any(tags[i] != "O" for i in covered):
                overlaps += 1
                continue
            exact = text[first:stop].strip()
            moved += text[places[covered[0]][0] : places[covered[-1]][1]] != exact
            for i in covered:
                tags[i] = f"I-{name}"
            tags[covered[0]] = f"B-{name}"
        marked.words.append([text[begin:end] for begin, end in places])
        marked.tags.append(tags)
        marked.texts.append(text)
        marked.places.append(places)
    if spans is None:
        marked.tags = None
        return marked
    if not any(tag != "O" for tags in marked.tags for tag in tags):
        return None
    for count, kind, text in (
        (moved, "moved", "cut a word and are extended to the whole of it"),
        (overlaps, "overlap", "overlap a longer one and are left out"),
        (outside, "outside", "lie outside of their text and are left out"),
    ):
        if count:
            marked.findings.append(Finding(kind, spans, count, f"{count:,} of the spans {text}."))
    marked.sentence = (
        f"{path.name} is read as {counted(len(marked.words), 'text', 'texts')} in {column!r} with spans in {spans!r}. Options overrule it: --column, "
        "--target, --kind."
    )
    return marked
