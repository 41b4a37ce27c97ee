"""Tokenising a text file: megabytes per second, compared with the `tokenizers` package on the same pieces, and peak memory.

    python -m bench.tokenize [--megabytes 16] [--rounds 3] [--text FILE]
    python -m bench.tokenize --gigabyte 1024    # one pass over a file of that many megabytes, in a process of its own

Both sides get the same pieces, the same threads (RAYON_NUM_THREADS) and the same blocks; results are compared first. The
peer converts each block to an array of 16-bit ids, as a token file needs, and writes it to a plain file.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from wonderland.core import peak_megabytes
from wonderland.data.text import TokenFile, Tokenizer, read_documents, write_tokens
from wonderland.data.text.token_file import _blocks


def make(path: Path, megabytes: int, text: str | None) -> None:
    """A file of a size: a given text, or random words with Zipf frequencies, repeated with different offsets."""
    if text:
        seed = Path(text).read_text()
    else:
        random = np.random.default_rng(0)
        letters = np.array(list("etaoinshrdlucmfwygpbvk"))
        words = ["".join(random.choice(letters, random.integers(1, 10))) for _ in range(20_000)]
        drawn = np.minimum(random.zipf(1.3, 400_000) - 1, len(words) - 1)
        seed = " ".join(words[i] + (".\n" if i % 11 == 0 else "") for i in drawn)
    with path.open("w") as file:
        written, repeats = 0, 0
        while written < megabytes << 20:
            part = seed[repeats * 7919 % 1000 :]
            file.write(part)
            written += len(part.encode())
            repeats += 1


def peer(documents, tokenizer: Tokenizer, out: Path) -> None:
    """The `tokenizers` package on the same pieces."""
    inner = tokenizer._inner
    with out.open("wb") as file:
        for block in _blocks(documents):
            encodings = inner.encode_batch_fast([text for text, _ in block], add_special_tokens=False)
            for encoding in encodings:
                file.write(np.asarray(encoding.ids, np.uint16).tobytes())


def race(path: Path, kind: str, rounds: int) -> None:
    """Time both sides alternately for one kind of tokenizer."""
    folder = path.parent
    texts = (piece for i, piece in enumerate(read_documents(path).texts()) if i % 8 == 0)
    tokenizer = Tokenizer.train(texts, kind=kind, vocab=8000)
    size = path.stat().st_size / 1e6
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        write_tokens(read_documents(path), tokenizer, folder / "ours", end=False)
        ours.append(size / (time.perf_counter() - began))
        began = time.perf_counter()
        peer(read_documents(path), tokenizer, folder / "theirs")
        theirs.append(size / (time.perf_counter() - began))
    assert (TokenFile(folder / "ours").tokens == np.fromfile(folder / "theirs", np.uint16)).all()
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    print(
        f"{kind:11s} ours {median(ours):7.2f} MB/s   tokenizers {median(theirs):7.2f} MB/s   "
        f"ratio {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


def one_pass(path: Path, kind: str) -> None:
    """Train a tokenizer and tokenise a large file once; print times and peak memory."""
    began = time.perf_counter()
    texts = (piece for i, piece in enumerate(read_documents(path).texts()) if i % 16 == 0)
    tokenizer = Tokenizer.train(texts, kind=kind, vocab=8000)
    trained = time.perf_counter()
    tokens = write_tokens(read_documents(path), tokenizer, path.parent / "tokens")
    spent, size = time.perf_counter() - trained, path.stat().st_size / 1e6
    print(
        f"{kind}: {size:,.0f} MB, training {trained - began:.0f} s, writing {len(tokens):,} tokens in {spent:.0f} s "
        f"({size / spent:.1f} MB/s), peak memory {peak_megabytes():,.0f} MiB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--gigabyte", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--text")
    parser.add_argument("--kinds", default="bpe,characters,words,wordpiece,unigram")
    parser.add_argument("--pass-over", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pass_over:
        one_pass(Path(options.pass_over), options.kinds)
        sys.exit()
    print(f"threads: {os.environ.get('RAYON_NUM_THREADS', 'all')}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        make(path, options.gigabyte or options.megabytes, options.text)
        for kind in options.kinds.split(","):
            if options.gigabyte:
                command = ["-m", "bench.tokenize", "--pass-over", str(path), "--kinds", kind]
                subprocess.run([sys.executable, *command], check=True)
            else:
                race(path, kind, options.rounds)
