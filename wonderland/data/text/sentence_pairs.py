"""Tables and JSON of two sentences and an answer, known by the names of their columns: entailment, duplicates, similarity."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core.limits import check
from wonderland.core.unpack import read_unpacked
from wonderland.data.dataset import Finding, counted

SIDES = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("text1", "text2"),
         ("sentence_a", "sentence_b"), ("text_a", "text_b"))  # fmt: skip
ANSWERS = ("gold_label", "label", "is_duplicate", "entailment_label", "entailment_judgment", "similarity_score", "score", "relatedness_score",
           "similarity", "target", "class")  # fmt: skip
UNDECIDED = ("-", "")  # what stands where annotators do not agree


@dataclass(frozen=True)
class SentencePairs:
    """Two columns of sentences and one of answers."""

    frame: pd.DataFrame
    texts: tuple[str, str]
    target: str
    findings: list[Finding] = field(default_factory=list)


def pairs_of_names(names: Sequence[Any], target: str | None = None) -> tuple[tuple[str, str], str] | None:
    """The columns of both sentences and of the answer among these names; None where one of them is missing.

    >>> pairs_of_names(["pairID", "gold_label", "sentence1", "sentence2", "sentence1_parse"])
    (('sentence1', 'sentence2'), 'gold_label')
    """
    folded = {str(name).strip().casefold(): str(name) for name in names}
    sides = next(((folded[a], folded[b]) for a, b in SIDES if a in folded and b in folded), None)
    answer = (
        target
        if target in names
        else None
        if target
        else next((folded[name] for name in ANSWERS if name in folded), None)
    )
    return None if sides is None or answer is None or answer in sides else (sides, answer)


def pairs_of_frame(frame: pd.DataFrame, name: str, target: str | None = None) -> SentencePairs | None:
    """A table of sentence pairs, or None for another table."""
    columns = pairs_of_names(list(frame.columns), target)
    if columns is None or len(frame) < 2:
        return None
    (first, second), answer = columns
    texts = frame[[first, second]].map(lambda cell: isinstance(cell, str)).mean()
    if (texts < 0.5).any():
        return None
    undecided = frame[answer].map(lambda cell: isinstance(cell, str) and cell.strip() in UNDECIDED)
    if set(frame[answer].dropna().astype(str)) == {
        "-1",
        "0",
        "1",
        "2",
    }:  # -1 stands for no agreed label among the three
        undecided = frame[answer].astype(str) == "-1"
    kept = frame.loc[~undecided, [first, second, answer]].reset_index(drop=True)
    left = len(frame.columns) - 3
    rest = f", and {counted(left, 'other column is', 'other columns are')} not used" if left else ""
    text = (
        f"{name} is read as {counted(len(kept), 'pair', 'pairs')} of sentences in {first!r} and {second!r} with the answer in {answer!r}{rest}. "
        "Options overrule it: --column, --target, --kind."
    )
    findings = [Finding("text", name, len(kept), text)]
    count = int(np.asarray(undecided).sum())
    if count:
        pairs_have = counted(count, "pair has", "pairs have")
        findings.append(
            Finding("undecided", answer, count, f"{pairs_have} '-', -1 or nothing for {answer!r} and are left out.")
        )
    return SentencePairs(kept, (first, second), answer, findings)


def pairs_of_json(path: Path, target: str | None = None) -> SentencePairs | None:
    """JSON lines, or a JSON list, of sentence pairs, which may hold lists and other nested values beside them."""
    if path.suffix.lower() not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(1 << 14).decode("utf-8", "replace")
    if not any(f'"{a}"' in start and f'"{b}"' in start for a, b in SIDES):
        return None
    text = read_unpacked(path, "table_bytes").decode("utf-8", "replace")
    check("table_bytes", len(text), path)
    try:
        read: Any = (
            json.loads(text)
            if text.lstrip()[:1] == "["
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, list) or not read or not all(isinstance(row, Mapping) for row in read):
        return None
    columns = pairs_of_names(list(read[0]), target)
    if columns is None:
        return None
    (first, second), answer = columns
    plain = {name: [row.get(name) for row in read] for name in (first, second, answer)}
    if any(isinstance(cell, list | dict) for cells in plain.values() for cell in cells):
        return None
    return pairs_of_frame(pd.DataFrame(plain), path.name, target)
