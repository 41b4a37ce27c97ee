"""Corpus: text for a language model, read as a stream, and split into four disjoint parts."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, permutation
from wonderland.data.dataset import Dataset, Finding, counted, stop_if_strict
from wonderland.data.split import PARTS, Parts
from wonderland.data.text.sources import Documents, read_documents
from wonderland.data.text.token_file import TokenFile, write_tokens
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.data.text.vocabulary import CODE_POINTS, code_points

MANY = 20  # from this number of documents on, whole documents are assigned to the parts
LARGEST = {
    "validation": 50_000,
    "calibration": 50_000,
    "test": 100_000,
}  # characters; larger parts would not measure noticeably better


class Corpus(Dataset):
    """Text as one or many documents. Few documents are split by position: the end of the text is the test part; many are assigned
    whole, at random.

    `letters` counts characters, `size` bytes, `count` documents; `home` is the folder for token files.
    """

    kind = "corpus"
    noun = "tokens"

    def __init__(
        self,
        documents: Documents,
        *,
        name: str,
        origin: dict[str, Any],
        strict: bool = False,
        findings: Sequence[Finding] = (),
    ):
        self.documents, self.name, self.origin = documents, name, origin
        self.task, self.classes, self.y, self.home = "language", None, None, Path(".")
        self.tokenizer: Tokenizer | None = None
        self.letters = self.size = self.count = 0
        total, seen = hashlib.sha256(), np.zeros(CODE_POINTS, bool)
        begun = False
        for piece, ends in documents:
            data = piece.encode()
            total.update(data)
            self.letters += len(piece)
            self.size += len(data)
            begun = begun or bool(piece)
            seen[code_points(piece)] = True
            if ends:
                total.update(b"\xff")
                self.count += begun
                begun = False
        self.fingerprint = total.hexdigest()
        self.distinct = int(seen.sum())
        self.findings = [Finding("text", name, self.count, self._finding_text()), *findings, *documents.findings]
        if not self.letters or not seen[33:].any():
            raise WonderlandError(f"{name} holds no text to learn from.")
        stop_if_strict(self.findings, strict)

    @classmethod
    def open(
        cls,
        source: str | Path,
        *,
        column: str | None = None,
        lines: bool = False,
        strict: bool = False,
        findings: Sequence[Finding] = (),
    ) -> "Corpus":
        """A corpus from whatever `read_documents` takes."""
        path = Path(source).expanduser()
        documents = read_documents(path, column=column, lines=lines, strict=strict)
        return cls(documents, name=path.name, origin={"path": str(path.absolute())}, strict=strict, findings=findings)

    @property
    def many(self) -> bool:
        """Whether there are enough documents to assign whole ones to the parts."""
        return self.count >= MANY

    def _finding_text(self) -> str:
        documents = "one document" if self.count == 1 else f"{self.count:,} documents"
        return f"{self.name} is read as plain text ({documents}): the task is to predict the next token."

    def __len__(self) -> int:
        return self.letters

    def headline(self) -> str:
        """The corpus in one line."""
        return f"{self.name}: {self.size:,} bytes of text, {counted(self.count, 'document', 'documents')}, language modelling"

    def summary(self) -> list[dict[str, Any]]:
        """Counts."""
        rows = {"characters": self.letters, "bytes": self.size, "different characters": self.distinct}
        rows |= {"documents": self.count}
        return [{"what": name, "count": number} for name, number in rows.items()]

    def example(self, i: int) -> dict[str, Any]:
        """The first characters of a document."""
        for number, text in enumerate(self.documents.documents()):
            if number == i:
                return {"text": text[:500]}
        raise WonderlandError(f"There is no document {i}: {self.name} has {self.count:,}.")

    def shares(self, test: float) -> dict[str, float]:
        """How much of the text each part gets: a share, but no more than is needed to measure well."""
        asked = {"validation": 0.05, "calibration": 0.05, "test": test}
        shares = {name: min(share, LARGEST[name] / self.letters) for name, share in asked.items()}
        train = 1 - sum(shares.values())
        if train <= 0:
            raise WonderlandError(
                f"A test part of {test:g} leaves nothing of {self.name} to learn from: give it at most 0.8 of the text."
            )
        return {"train": train, **shares}

    def part(self, name: str, shares: dict[str, float], seed: int) -> Iterator[tuple[str, bool]]:
        """The pieces of one part, as a stream."""
        edges = np.cumsum([0.0, *(shares[part] for part in PARTS)])
        low, high = edges[PARTS.index(name)], edges[PARTS.index(name) + 1]
        high = 2.0 if name == PARTS[-1] else high
        if self.many:
            yield from self._documents_of(name, shares, seed)
            return
        at, first, stop = 0, round(low * self.letters), round(min(high, 1.0) * self.letters)
        for piece, ends in self.documents:
            inner = piece[max(0, first - at) : max(0, stop - at)]
            at += len(piece)
            if inner:
                yield inner, ends or at >= stop

    def _documents_of(self, name: str, shares: dict[str, float], seed: int) -> Iterator[tuple[str, bool]]:
        """The documents of a part: assigned at random, at least one to each part; empty ones to none."""
        part_of_document = np.zeros(self.count, np.int8)
        order, first = permutation(seed, 0, self.count), 0
        for code, part in enumerate(PARTS[1:], start=1):
            size = max(1, round(shares[part] * self.count))
            part_of_document[order[first : first + size]] = code
            first += size
        part_index, number, nonempty = PARTS.index(name), 0, []
        for piece, ends in self.documents:
            if part_of_document[min(number, self.count - 1)] == part_index and piece:
                yield piece, ends
            nonempty.append(bool(piece))
            if ends:
                number += any(nonempty)
                nonempty = []


@dataclass(frozen=True)
class TokenParts(Parts):
    """The four parts of a corpus as token files."""

    files: dict[str, TokenFile]
    shares: dict[str, float]
    seed: int
    many: bool
    note: str = ""

    @property
    def parts(self) -> dict[str, TokenFile]:
        """Part by name."""
        return self.files

    folds = None

    @property
    def train(self) -> TokenFile:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The training part."""
        return self.files["train"]

    @property
    def digest(self) -> str:
        """SHA-256 over the tokens of every part."""
        return hashlib.sha256("".join(self.files[name].digest for name in PARTS).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The split as plain data, for the record of a run."""
        sizes = {name: len(file) for name, file in self.files.items()}
        return {"seed": self.seed, "shares": self.shares, "sizes": sizes, "unit": "tokens", "by": "document" if self.many
                else "place", "folds": None, "digest": self.digest, "note": self.note}  # fmt: skip


def learn_tokens(
    corpus: Corpus, shares: dict[str, float], seed: int, *, kind: str | None, vocab: int | None
) -> Tokenizer:
    """A tokenizer for the training part: characters if the text is small and has few different ones, else byte pair encoding."""
    small = corpus.distinct <= 512 and corpus.letters <= 5_000_000
    kind = kind or ("characters" if small else "bpe")
    size = vocab or (8000 if kind in ("characters", "words") else _vocab_size(corpus.letters))
    skip = max(1, corpus.size // (64 << 20))
    texts = (piece for i, (piece, _) in enumerate(corpus.part("train", shares, seed)) if i % skip == 0)
    specials = ("<unk>",) if kind in ("characters", "words", "wordpiece") else ()
    return Tokenizer.train(texts, kind=kind, vocab=size, specials=(*specials, "</s>") if corpus.many else specials)


def _vocab_size(letters: int) -> int:
    """A vocabulary size for byte pair encoding, by the length of the text."""
    return int(np.clip(2 ** round(np.log2(max(letters, 1) / 1500)), 1024, 8192))


def write_parts(
    corpus: Corpus,
    tokenizer: Tokenizer,
    shares: dict[str, float],
    seed: int,
    progress: Callable[[int], Any] | None = None,
) -> TokenParts:
    """Write every part as a token file into `corpus.home`; files of an earlier call are reused if they are complete and match."""
    corpus.home.mkdir(parents=True, exist_ok=True)
    mark = hashlib.sha256(f"{corpus.fingerprint} {tokenizer.digest} {shares} {seed}".encode()).hexdigest()
    for leftover in corpus.home.glob(".*.safetensors.*"):  # of a process that was killed while writing
        leftover.unlink(missing_ok=True)
    files = {}
    for name in PARTS:
        path = corpus.home / f"{name}.safetensors"
        files[name] = _reusable(path, mark) or _write_part(corpus, name, shares, seed, tokenizer, path, mark, progress)
    return TokenParts(files, shares, seed, corpus.many)


def _reusable(path: Path, mark: str) -> TokenFile | None:
    if not path.exists():
        return None
    try:
        file = TokenFile(path)
        file.check()
    except WonderlandError:
        return None
    return file if file.about.get("mark") == mark else None


def _write_part(
    corpus: Corpus,
    name: str,
    shares: dict[str, float],
    seed: int,
    tokenizer: Tokenizer,
    path: Path,
    mark: str,
    progress: Callable[[int], Any] | None,
) -> TokenFile:
    pieces = corpus.part(name, shares, seed)
    try:
        return write_tokens(
            pieces, tokenizer, path, end=corpus.many, begin=corpus.many, about={"mark": mark}, progress=progress
        )
    except WonderlandError as error:
        if "every document is empty" not in str(error):
            raise
        raise WonderlandError(
            f"{corpus.name} is too short to be split into parts for training and testing: its {name} part is empty."
        ) from error
