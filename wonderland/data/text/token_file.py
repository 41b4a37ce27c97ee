"""Token files: a corpus as token ids on disk, written as a stream and read through a memory map, so it may exceed memory.

The file is safetensors, so that anything can open it: `tokens` (n,) as uint16 or uint32, `documents` (d + 1,) the offset
of each document in tokens, `bytes` (d + 1,) its offset in bytes of text. The metadata hold vocabulary size and digests.
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
        digest = hashlib.sha256()
        for start in range(0, len(self.tokens), BATCH):
            batch = self.tokens[start : start + BATCH]
            digest.update(batch.tobytes())
            if int(batch.max()) >= self.vocab:
                at = start + int(np.argmax(batch >= self.vocab))
                raise WonderlandError(
                    f"{self.path}: token {int(self.tokens[at])} at position {at:,} is not in the vocabulary of {self.vocab:,}."
                )
        if digest.hexdigest() != self.digest:
            raise WonderlandError(f"{self.path} was changed since it was written: its digest does not match.")

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
    progress: Callable[[int], Any] | None = None,
) -> TokenFile:
    """Tokenize documents and write them as a token file; only a few pieces are in memory at a time.

    Args:
        pieces: (piece of text, whether it ends its document), as `read_documents` gives.
        tokenizer: turns the text into ids.
        path: the file; it is written under another name and then renamed.
        end: put the tokenizer's end token, if it has one, after each document.
        begin: put its begin token before each document, or the end token if it has no begin token.
        about: additional metadata.
        progress: called after each block with the bytes of text read so far.
    """
    path = Path(path)
    end_id = tokenizer.end if end else None
    begin_id = tokenizer.document_begin if begin else None
    dtype_name = "U16" if tokenizer.vocab <= 1 << 16 else "U32"
    temporary = [path.with_name(f".{path.name}.{os.getpid()}.{name}") for name in ("part", "documents", "bytes")]
    try:
        with temporary[0].open("wb") as tokens, temporary[1].open("wb") as documents, temporary[2].open("wb") as sizes:
            tokens.write(b"\0" * (8 + HEADER))
            count, digest, texts = _write_stream(
                pieces, tokenizer, DTYPES[dtype_name], (begin_id, end_id), tokens, documents, sizes, progress
            )
            if not count:
                raise WonderlandError("There is no text to write as tokens: every document is empty.")
            documents.flush()
            sizes.flush()
            _write_header(tokens, temporary, dtype_name, count, {"vocab": str(tokenizer.vocab), "digest": digest, "text": texts,
                                                  "tokenizer": tokenizer.digest, **(about or {})})  # fmt: skip
        os.replace(temporary[0], path)
    except OSError as error:
        raise disk_trouble(error, path) from error
    finally:
        for part in temporary:
            part.unlink(missing_ok=True)
    return TokenFile(path)


def _write_stream(
    pieces: Iterable[tuple[str, bool]],
    tokenizer: Tokenizer,
    dtype: np.dtype,
    begin_and_end: tuple[int | None, int | None],
    tokens: Any,
    documents: Any,
    sizes: Any,
    progress: Callable[[int], Any] | None,
) -> tuple[int, str, str]:
    """Write the tokens of all pieces to disk; returns their number, and the digests of tokens and of text."""
    digest, text_digest = hashlib.sha256(), hashlib.sha256()
    count = read = document_start = 0
    begin_bytes, end_bytes = (b"" if token is None else np.array([token], dtype).tobytes() for token in begin_and_end)
    documents.write(struct.pack("<q", 0))
    sizes.write(struct.pack("<q", 0))
    for block, ids_of_block in _prefetch_tokens(pieces, tokenizer):
        for (text, ends), ids in zip(block, ids_of_block, strict=True):
            data = ids.astype(dtype).tobytes()
            if begin_bytes and len(ids) and count == document_start:
                data = begin_bytes + data
            tokens.write(data)
            digest.update(data)
            count += len(data) // dtype.itemsize
            utf8 = text.encode()
            text_digest.update(utf8)
            read += len(utf8)
            if not ends:
                continue
            if end_bytes and count > document_start:
                tokens.write(end_bytes)
                digest.update(end_bytes)
                count += 1
            if count > document_start:
                documents.write(struct.pack("<q", count))
                sizes.write(struct.pack("<q", read))
                document_start = count
        if progress:
            progress(read)
    return count, digest.hexdigest(), text_digest.hexdigest()


def _prefetch_tokens(
    pieces: Iterable[tuple[str, bool]], tokenizer: Tokenizer
) -> Iterator[tuple[list[tuple[str, bool]], list[np.ndarray]]]:
    """Blocks with their tokens; the next block is tokenized in a thread while one is written."""
    with ThreadPoolExecutor(1, "tokens") as pool:
        previous = None
        for block in _blocks(pieces):
            pending = block, pool.submit(tokenizer.arrays, [text for text, _ in block])
            if previous is not None:
                yield previous[0], previous[1].result()
            previous = pending
        if previous is not None:
            yield previous[0], previous[1].result()


def _write_header(tokens: Any, temporary: list[Path], dtype_name: str, count: int, about: dict[str, str]) -> None:
    """Append the offsets to the tokens, and fill in the header, for which space was left at the start."""
    position, entries = 0, {}
    width = DTYPES[dtype_name].itemsize
    pad = -(count * width) % 8
    tokens.write(b"\0" * pad)
    entries["tokens"] = {"dtype": dtype_name, "shape": [count], "data_offsets": [0, count * width]}
    position = count * width
    if pad:  # safetensors allows no bytes outside of tensors, so the padding is stored as one
        entries["gap"] = {"dtype": "U8", "shape": [pad], "data_offsets": [position, position + pad]}
        position += pad
    for name, offsets in zip(("documents", "bytes"), temporary[1:], strict=True):
        size = offsets.stat().st_size
        with offsets.open("rb") as file:
            while data := file.read(BATCH):
                tokens.write(data)
        entries[name] = {"dtype": "I64", "shape": [size // 8], "data_offsets": [position, position + size]}
        position += size
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
