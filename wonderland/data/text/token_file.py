"""Token files: a corpus as numbers on disk, written in a stream and read through a memory map, larger than memory or not.

The file is safetensors, so that anything can open it: `tokens` (n,) of 16 or 32 bits without sign, `documents` (d + 1,)
where each document begins, `bytes` (d + 1,) how much text lies before it. Its metadata name the vocabulary and digests.
"""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, disk_trouble, open_plain, read_header
from wonderland.data.text.tokenizer import Tokenizer

HEADER = 4096
DTYPES = {"U16": np.dtype("<u2"), "U32": np.dtype("<u4")}
BATCH = 1 << 20


class TokenFile:
    """A corpus of tokens through a memory map.

    `tokens` are all of them, one document after the other; document i is tokens[documents[i]:documents[i + 1]] and
    comes from bytes[i + 1] - bytes[i] bytes of text. `digest` is the SHA-256 of the tokens.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        header = read_header(self.path)
        about: dict[str, Any] = header.get("__metadata__") or {}
        refusal = WonderlandError(f"{self.path} is not a token file: it is damaged or not ours.")
        try:
            kind = header["tokens"]["dtype"]
            self.about = {str(name): str(value) for name, value in about.items()}
            self.vocab, self.digest, self.tokenizer = int(about["vocab"]), str(about["digest"]), str(about["tokenizer"])
            with open_plain(self.path) as file:
                start = 8 + struct.unpack("<Q", file.read(8))[0]
            self.tokens = _map(self.path, header["tokens"], start, DTYPES[kind])
            self.documents = _map(self.path, header["documents"], start, np.dtype("<i8"))
            self.bytes = _map(self.path, header["bytes"], start, np.dtype("<i8"))
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise refusal from error
        fine = len(self.documents) == len(self.bytes) >= 1 and self.vocab > 0
        if not fine or self.documents[0] != 0 or self.documents[-1] != len(self.tokens):
            raise refusal

    def __len__(self) -> int:
        return len(self.tokens)

    def document(self, i: int) -> np.ndarray:
        """The tokens of one document."""
        if not 0 <= i < len(self.documents) - 1:
            raise WonderlandError(f"There is no document {i}: {self.path.name} has {len(self.documents) - 1:,}.")
        return self.tokens[self.documents[i] : self.documents[i + 1]]

    def check(self) -> None:
        """Read everything once: the digest must be right, and every token in the vocabulary."""
        total = hashlib.sha256()
        for start in range(0, len(self.tokens), BATCH):
            some = self.tokens[start : start + BATCH]
            total.update(some.tobytes())
            if int(some.max()) >= self.vocab:
                at = start + int(np.argmax(some >= self.vocab))
                raise WonderlandError(
                    f"{self.path}: token {int(self.tokens[at])} at position {at:,} is not in the vocabulary of {self.vocab:,}."
                )
        if total.hexdigest() != self.digest:
            raise WonderlandError(f"{self.path} was changed since it was written: its digest is another.")

    def __repr__(self) -> str:
        return f"<TokenFile {self.path.name}: {len(self):,} tokens, {len(self.documents) - 1:,} documents, vocabulary {self.vocab:,}>"


def write_tokens(
    pieces: Iterable[tuple[str, bool]],
    tokenizer: Tokenizer,
    path: str | Path,
    *,
    end: bool = True,
    begin: bool = False,
    about: dict[str, str] | None = None,
    told: Callable[[int], Any] | None = None,
) -> TokenFile:
    """Cut documents into tokens and write them as a token file, with memory for a few pieces only.

    Args:
        pieces: (piece of text, whether it ends its document), as `read_documents` gives.
        tokenizer: what cuts the text.
        path: the file; it appears whole or not at all.
        end: put the tokenizer's end token, if it has one, after each document.
        begin: put its begin token before each document; the end token serves where there is none.
        about: more metadata, text by name.
        told: called with the bytes of text read so far, now and then.
    """
    path = Path(path)
    after = tokenizer.end if end else None
    before = tokenizer.opening if begin else None
    kind = "U16" if tokenizer.vocab <= 1 << 16 else "U32"
    asides = [path.with_name(f".{path.name}.{os.getpid()}.{name}") for name in ("part", "documents", "bytes")]
    try:
        with asides[0].open("wb") as tokens, asides[1].open("wb") as documents, asides[2].open("wb") as sizes:
            tokens.write(b"\0" * (8 + HEADER))
            count, digest, texts = _stream(
                pieces, tokenizer, DTYPES[kind], (before, after), tokens, documents, sizes, told
            )
            if not count:
                raise WonderlandError("There is no text to write as tokens: every document is empty.")
            documents.flush()
            sizes.flush()
            _finish(tokens, asides, kind, count, {"vocab": str(tokenizer.vocab), "digest": digest, "text": texts,
                                                  "tokenizer": tokenizer.digest, **(about or {})})  # fmt: skip
        os.replace(asides[0], path)
    except OSError as error:
        raise disk_trouble(error, path) from error
    finally:
        for aside in asides:
            aside.unlink(missing_ok=True)
    return TokenFile(path)


def _stream(
    pieces: Iterable[tuple[str, bool]],
    tokenizer: Tokenizer,
    dtype: np.dtype,
    around: tuple[int | None, int | None],
    tokens: Any,
    documents: Any,
    sizes: Any,
    told: Callable[[int], Any] | None,
) -> tuple[int, str, str]:
    """Blocks of pieces to tokens on disk; how many, and the digests of tokens and of text."""
    digest, text_digest = hashlib.sha256(), hashlib.sha256()
    count = read = begun = 0
    first, last = (b"" if one is None else np.array([one], dtype).tobytes() for one in around)
    documents.write(struct.pack("<q", 0))
    sizes.write(struct.pack("<q", 0))
    for block, found in _ahead(pieces, tokenizer):
        for (text, ends), ids in zip(block, found, strict=True):
            small = ids.astype(dtype)
            data = small.tobytes()
            if first and len(small) and count == begun:
                data = first + data
            tokens.write(data)
            digest.update(data)
            count += len(data) // dtype.itemsize
            utf8 = text.encode()
            text_digest.update(utf8)
            read += len(utf8)
            if not ends:
                continue
            if last and count > begun:
                tokens.write(last)
                digest.update(last)
                count += 1
            if count > begun:
                documents.write(struct.pack("<q", count))
                sizes.write(struct.pack("<q", read))
                begun = count
        if told:
            told(read)
    return count, digest.hexdigest(), text_digest.hexdigest()


def _ahead(
    pieces: Iterable[tuple[str, bool]], tokenizer: Tokenizer
) -> Iterator[tuple[list[tuple[str, bool]], list[np.ndarray]]]:
    """Blocks with their tokens; the next block is cut while one is written."""
    with ThreadPoolExecutor(1, "tokens") as helper:
        waiting = None
        for block in _blocks(pieces):
            coming = block, helper.submit(tokenizer.arrays, [text for text, _ in block])
            if waiting is not None:
                yield waiting[0], waiting[1].result()
            waiting = coming
        if waiting is not None:
            yield waiting[0], waiting[1].result()


def _finish(tokens: Any, asides: list[Path], kind: str, count: int, about: dict[str, str]) -> None:
    """The offsets behind the tokens, and the header, for which room was left, before them."""
    place, entries = 0, {}
    width = DTYPES[kind].itemsize
    pad = -(count * width) % 8
    tokens.write(b"\0" * pad)
    entries["tokens"] = {"dtype": kind, "shape": [count], "data_offsets": [0, count * width]}
    place = count * width
    if pad:  # every byte belongs to a tensor in this format, so the gap is one as well
        entries["gap"] = {"dtype": "U8", "shape": [pad], "data_offsets": [place, place + pad]}
        place += pad
    for name, aside in zip(("documents", "bytes"), asides[1:], strict=True):
        size = aside.stat().st_size
        with aside.open("rb") as file:
            while data := file.read(BATCH):
                tokens.write(data)
        entries[name] = {"dtype": "I64", "shape": [size // 8], "data_offsets": [place, place + size]}
        place += size
    text = json.dumps({"__metadata__": about, **entries}).encode()
    if len(text) > HEADER:
        raise WonderlandError("The metadata of a token file have at most about 3,000 bytes.")
    tokens.seek(0)
    tokens.write(struct.pack("<Q", HEADER) + text.ljust(HEADER))
    tokens.flush()
    os.fsync(tokens.fileno())


def _blocks(pieces: Iterable[tuple[str, bool]], letters: int = BATCH) -> Iterator[list[tuple[str, bool]]]:
    """Pieces in blocks of about a million characters: enough to keep every core busy, little enough to hold."""
    block: list[tuple[str, bool]] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece[0]) + 16
        if size >= letters:
            yield block
            block, size = [], 0
    if block:
        yield block


def _map(path: Path, entry: dict[str, Any], start: int, dtype: np.dtype) -> np.ndarray:
    (count,) = entry["shape"]
    begin, stop = entry["data_offsets"]
    if stop - begin != count * dtype.itemsize or begin < 0 or (start + begin) % dtype.itemsize:
        raise ValueError("offsets")
    if not count:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, "r", start + begin, (count,))
