"""Sentences: words, and a tag for each of them where they are known."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, write_bytes
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.text.tagged import Tagged, write_tagged
from wonderland.tasks.text.tag_spans import marks_spans, spans_of

SUFFIXES = (".conll", ".iob", ".bio", ".tsv", ".txt", ".jsonl", ".ndjson")
MOST_TAGS = 500
LEAST_DOCUMENTS = 50  # with as many documents, none is divided among the parts


class Sentences(Dataset):
    """Sentences and the tags of their words; `classes` are the names of the tags, `tags` their codes (None: not known)."""

    kind = "tags"
    noun = "sentences"
    task = "tagging"
    target = "tag"

    def __init__(
        self,
        name: str,
        tagged: Tagged,
        *,
        classes: list[str] | None = None,
        findings: Sequence[Finding] = (),
        origin: dict[str, Any] | None = None,
    ):
        self.name, self.tagged, self.words = name, tagged, tagged.words
        self.classes, self.origin, self.y = classes, origin or {}, None
        self.findings = [*tagged.findings, *findings]
        code = {tag: i for i, tag in enumerate(classes or ())}
        self.tags = None if tagged.tags is None or classes is None else [
            np.array([code[tag] for tag in tags], np.int16) for tags in tagged.tags
        ]  # fmt: skip
        documents = np.asarray(tagged.documents)
        if LEAST_DOCUMENTS <= len(np.unique(documents)) < len(documents):
            self.groups, self.group = np.unique(documents, return_inverse=True)[1], "document"
        total = hashlib.sha256()
        for row, words in enumerate(self.words):
            own = [] if tagged.tags is None else tagged.tags[row]
            total.update(("\t".join(words) + "\n" + "\t".join(own) + "\n").encode("utf-8", "surrogatepass"))
        self.fingerprint = total.hexdigest()

    @classmethod
    def learned(cls, name: str, tagged: Tagged, origin: dict[str, Any], strict: bool) -> "Sentences":
        """Sentences to learn from; refused where there is nothing to learn."""
        assert tagged.tags is not None
        counts = Counter(tag for tags in tagged.tags for tag in tags)
        if len(counts) < 2:
            raise WonderlandError(
                f"{name} has the tag {next(iter(counts), 'O')!r} only: name the column of the tags with target."
            )
        if len(counts) > MOST_TAGS:
            raise WonderlandError(
                f"{name} has {len(counts):,} different tags, more than {MOST_TAGS}: name the column of the tags with target."
            )
        if "" in counts:
            raise WonderlandError(
                f"{name} has {counted(counts[''], 'word', 'words')} without a tag: give each word one."
            )
        findings = [Finding("text", name, len(tagged.words), tagged.sentence)] if tagged.sentence else []
        copies = len(tagged.words) - len({tuple(words) for words in tagged.words})
        if copies:
            text = f"{counted(copies, 'sentence is a copy', 'sentences are copies')} of another: scores may look better than they are."
            findings.append(Finding("copies", name, copies, text))
        order = sorted(
            counts, key=lambda tag: (tag != "O", tag[2:], tag[:2]) if marks_spans(list(counts)) else (False, tag, "")
        )
        dataset = cls(name, tagged, classes=order, findings=findings, origin=origin)
        stop_if_strict(dataset.findings, strict)
        return dataset

    def __len__(self) -> int:
        return len(self.words)

    def headline(self) -> str:
        """The sentences in one line."""
        words = sum(map(len, self.words))
        about = f", {len(self.classes)} tags" if self.classes else ""
        return f"{self.name}: {counted(len(self), 'sentence', 'sentences')} of {words:,} words{about}"

    def summary(self) -> list[dict[str, Any]]:
        """The tags, or the names of spans, and how many there are."""
        tags = self.tagged.tags
        if tags is None:
            return [{"sentences": len(self), "words": sum(map(len, self.words))}]
        if marks_spans(self.classes or []):
            span_counts = Counter(
                (name, " ".join(self.words[row][a:b])) for row, own in enumerate(tags) for a, b, name in spans_of(own)
            )
            names = sorted({name for name, _ in span_counts})
            return [
                {"span": name, "spans": sum(n for (own, _), n in span_counts.items() if own == name),
                 "example": next((text for (own, text), _ in span_counts.most_common() if own == name), "")[:60]}
                for name in names
            ]  # fmt: skip
        counts = Counter(tag for own in tags for tag in own)
        seen = {
            tag: word for words, own in zip(self.words, tags, strict=True) for word, tag in zip(words, own, strict=True)
        }
        return [{"tag": tag, "words": count, "example": seen[tag][:60]} for tag, count in counts.most_common(100)]

    def example(self, i: int) -> dict[str, Any]:
        """One sentence, and its tags where they are known."""
        shown: dict[str, Any] = {"words": " ".join(self.words[i])}
        return shown if self.tagged.tags is None else shown | {"tags": " ".join(self.tagged.tags[i])}

    def write(self, path: Path, tags: list[list[str]], spans: list[list[dict[str, Any]]]) -> None:
        """Write predicted tags: columns, or JSON lines whose spans name characters of the text."""
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES:
            raise WonderlandError(f"Tagged words are written as {', '.join(SUFFIXES)}, not {path.suffix or path.name}.")
        texts, marks = self._in_characters(spans) if suffix in (".jsonl", ".ndjson") else ([], [])
        write_bytes(path, write_tagged(self.words, tags, marks, texts, suffix).encode("utf-8", "surrogatepass"))

    def _in_characters(self, spans: list[list[dict[str, Any]]]) -> tuple[list[str], list[list[dict[str, Any]]]]:
        """The texts of documents, words joined by spaces where there is no running text, and their spans by characters."""
        texts: list[str] = []
        marks: list[list[dict[str, Any]]] = []
        last = -1
        for row, words in enumerate(self.words):
            running, places = self.tagged.texts, self.tagged.places
            if running is None or places is None:
                ends = np.cumsum([len(word) + 1 for word in words])
                own = [(int(end) - len(word) - 1, int(end) - 1) for word, end in zip(words, ends, strict=True)]
                texts.append(" ".join(words))
                marks.append([])
            else:
                own = places[row]
                if self.tagged.documents[row] != last:
                    last = self.tagged.documents[row]
                    texts.append(running[last])
                    marks.append([])
            for span in spans[row]:
                first, stop = own[span["first"]][0], own[span["stop"] - 1][1]
                marks[-1].append({"start": first, "end": stop, "label": span["label"], "chance": span["chance"]})
        return texts, marks
