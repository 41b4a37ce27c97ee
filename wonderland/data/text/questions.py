"""Files of questions about texts: SQuAD JSON with and without unanswerable questions, JSON lines, and tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError
from wonderland.core.limits import check
from wonderland.core.unpack import read_unpacked
from wonderland.data.dataset import Finding, counted
from wonderland.data.encodings import to_utf8
from wonderland.data.reading import Reading

CONTEXTS = ("context", "passage", "paragraph", "document", "article", "text")
QUESTIONS = ("question", "query")
ANSWERS = ("answers", "answer", "answer_text")
STARTS = ("answer_start", "start", "start_char")
SAMPLE = 1 << 16


@dataclass(frozen=True)
class Question:
    """A question about a text: its answers with the characters where they begin, none where the text does not say."""

    context: int
    text: str
    answers: tuple[tuple[str, int], ...] = ()
    key: str = ""


@dataclass
class Questions:
    """Questions, and the texts that they are about; `answered` says whether the file has answers."""

    contexts: list[str]
    questions: list[Question]
    answered: bool
    sentence: str = ""
    findings: list[Finding] = field(default_factory=list)


def read_questions(path: Path, reading: Reading) -> Questions | None:
    """A JSON file of questions, or None where it holds anything else."""
    if not path.is_file() or not _may_be(path):
        return None
    data = read_unpacked(path, "table_bytes")
    check("table_bytes", len(data), path)
    data, findings = to_utf8(data, path, reading.encoding)
    records = list(_records(data.decode("utf-8", "replace")))
    if not records or not all(
        isinstance(row.get("question"), str) and isinstance(row.get("context"), str) for row in records
    ):
        return None
    questions = of_records(records, path.name)
    questions.findings = [*findings, *questions.findings]
    return questions


def _may_be(path: Path) -> bool:
    if path.suffix.lower() not in (".json", ".jsonl", ".ndjson", ".gz", ".bz2", ".xz"):
        return False
    if path.suffix.lower() not in (".json", ".jsonl", ".ndjson"):
        return ".json" in path.name.lower()
    with path.open("rb") as file:
        start = file.read(SAMPLE).decode("utf-8", "replace")
    return start.lstrip()[:1] in ("{", "[") and any(
        f'"{name}"' in start for name in ("paragraphs", "qas", "context", *QUESTIONS)
    )


def _records(text: str) -> Iterator[dict[str, Any]]:
    """Flat records with context, question, answers and id, from any of the known forms."""
    read: Any
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        try:
            read = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return
    if isinstance(read, dict):
        read = (
            [read]
            if "paragraphs" in read or "context" in read
            else next((value for value in read.values() if isinstance(value, list)), [])
        )
    if not isinstance(read, list) or not all(isinstance(row, dict) for row in read):
        return
    for article in read:
        for paragraph in article["paragraphs"] if isinstance(article.get("paragraphs"), list) else [article]:
            if not isinstance(paragraph, dict):
                continue
            context = _first(paragraph, CONTEXTS)
            for row in paragraph["qas"] if isinstance(paragraph.get("qas"), list) else [paragraph]:
                if isinstance(row, dict):
                    yield {
                        "context": context,
                        "question": _first(row, QUESTIONS),
                        "answers": _answers(row),
                        "id": str(row.get("id", "")),
                    }


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if name in row), None)


def _answers(row: Mapping[str, Any]) -> list[tuple[str, int | None]] | None:
    """Answers with their first characters (None: not said); an empty list where there is no answer, None where none is given."""
    value = _first(row, ANSWERS)
    if row.get("is_impossible") is True:
        return []
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):  # the columns of a table of lists
        starts = value.get("answer_start") or [None] * len(value["text"])
        value = [{"text": text, "answer_start": start} for text, start in zip(value["text"], starts, strict=False)]
    if isinstance(value, str):
        value = [{"text": value, "answer_start": _first(row, STARTS)}] if value else []
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list):
        return None
    answers: list[tuple[str, int | None]] = []
    for item in value:
        text = item if isinstance(item, str) else item.get("text") if isinstance(item, Mapping) else None
        start = _first(item, STARTS) if isinstance(item, Mapping) else None
        if isinstance(text, str) and text:
            answers.append((text, start if isinstance(start, int) and not isinstance(start, bool) else None))
    return answers


def of_records(records: Sequence[Mapping[str, Any]], name: str) -> Questions:
    """Questions from flat records. An answer that is not where it is said to be is looked for in its text."""
    place: dict[str, int] = {}
    questions = Questions([], [], all(row["answers"] is not None for row in records))
    moved = lost = 0
    for row in records:
        context = row["context"]
        number = place.setdefault(context, len(place))
        if number == len(questions.contexts):
            questions.contexts.append(context)
        answers = []
        for text, start in row["answers"] or ():
            if start is not None and context[start : start + len(text)] == text:
                answers.append((text, start))
            elif (at := _nearest(context, text, start)) is not None:
                moved += start is not None
                answers.append((context[at : at + len(text)], at))
        if row["answers"] and not answers:
            lost += 1
            continue
        questions.questions.append(Question(number, row["question"], tuple(answers), row.get("id", "")))
    if moved:
        text = f"{counted(moved, 'answer is', 'answers are')} elsewhere in the text than the file says, and taken where they are."
        questions.findings.append(Finding("moved", name, moved, text))
    if lost:
        text = f"{counted(lost, 'question has', 'questions have')} an answer that is not in its text, and {'is' if lost == 1 else 'are'} left out."
        questions.findings.append(Finding("lost", name, lost, text))
    none = sum(not question.answers for question in questions.questions)
    about = f", {none:,} of them without an answer" if questions.answered and none else ""
    questions.sentence = f"{name} is read as {counted(len(questions.questions), 'question', 'questions')} about {counted(len(questions.contexts), 'text', 'texts')}{about}."
    return questions


def _nearest(context: str, text: str, start: int | None) -> int | None:
    """Where a text occurs nearest to a place, in other capital letters if need be."""
    for whole, part in ((context, text), (context.casefold(), text.casefold())):
        if len(whole) != len(context) or not part.strip():
            continue
        places, at = [], whole.find(part)
        while at >= 0 and len(places) < 1000:
            places.append(at)
            at = whole.find(part, at + 1)
        if places:
            return min(places, key=lambda place: abs(place - (start or 0)))
    return None


def of_frame(frame: pd.DataFrame, name: str, columns: tuple[str | None, str | None, str | None]) -> Questions | None:
    """Questions from a table with a column of texts, one of questions, and perhaps one of answers; None for another table."""
    folded = {str(column).strip().casefold(): str(column) for column in frame.columns}
    for asked in columns:
        if asked is not None and asked not in frame.columns:
            raise WonderlandError(
                f"{name} has no column {asked!r}; its columns are {', '.join(map(str, frame.columns[:20]))}."
            )
    chosen = [
        asked or next((folded[known] for known in usual if known in folded), None)
        for asked, usual in zip(columns, (CONTEXTS, QUESTIONS, ANSWERS), strict=True)
    ]
    context, question, answer = chosen
    if context is None or question is None:
        return None
    start = next((folded[known] for known in STARTS if known in folded), None)
    records = []
    for row in frame.to_dict("records"):
        given = None if answer is None else _cell(row[answer])
        at = row.get(start) if start is not None else None
        first = int(at) if isinstance(at, int | float) and at == at else None
        answers = None if answer is None else [(given, first)] if given else []
        records.append({"context": _cell(row[context]), "question": _cell(row[question]), "answers": answers})
    return of_records(records, name)


def _cell(value: Any) -> str:
    return "" if value is None or value != value else str(value)
