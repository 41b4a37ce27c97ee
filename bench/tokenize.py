"""Tokenising a text file: megabytes a second against calling the `tokenizers` package on the same pieces, and peak memory.

    python -m bench.tokenize [--megabytes 16] [--rounds 3] [--text FILE]
    python -m bench.tokenize --gigabyte 1024    # one pass over a file of that many megabytes, in a process of its own

Both sides get the same pieces, the same threads (RAYON_NUM_THREADS) and the same blocks; results are compared first. The
rival makes an array of 16-bit numbers of each block, as a token file needs, and writes it to a plain file.
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
    """A file of that size: a given text, or words drawn with a few common and many rare ones, again and again."""
    if text:
        seed = Path(text).read_text()
    else:
        random = np.random.default_rng(0)
        letters = np.array(list("etaoinshrdlucmfwygpbvk"))
        words = ["".join(random.choice(letters, random.integers(1, 10))) for _ in range(20_000)]
        drawn = np.minimum(random.zipf(1.3, 400_000) - 1, len(words) - 1)
        seed = " ".join(words[i] + (".\n" if i % 11 == 0 else "") for i in drawn)
    with path.open("w") as file:
        written, turn = 0, 0
        while written < megabytes << 20:
            part = seed[turn * 7919 % 1000 :]
            file.write(part)
            written += len(part.encode())
            turn += 1


def rival(documents, tokenizer: Tokenizer, out: Path) -> None:
    """The package itself on the same pieces."""
    inner = tokenizer._inner
    with out.open("wb") as file:
        for block in _blocks(documents):
            found = inner.encode_batch_fast([text for text, _ in block], add_special_tokens=False)
            for one in found:
                file.write(np.asarray(one.ids, np.uint16).tobytes())


def race(path: Path, kind: str, rounds: int) -> None:
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
        rival(read_documents(path), tokenizer, folder / "theirs")
        theirs.append(size / (time.perf_counter() - began))
    assert (TokenFile(folder / "ours").tokens == np.fromfile(folder / "theirs", np.uint16)).all()
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    print(
        f"{kind:11s} ours {median(ours):7.2f} MB/s   tokenizers {median(theirs):7.2f} MB/s   "
        f"ratio {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


def one_pass(path: Path, kind: str) -> None:
    began = time.perf_counter()
    texts = (piece for i, piece in enumerate(read_documents(path).texts()) if i % 16 == 0)
    tokenizer = Tokenizer.train(texts, kind=kind, vocab=8000)
    learned = time.perf_counter()
    made = write_tokens(read_documents(path), tokenizer, path.parent / "tokens")
    spent, size = time.perf_counter() - learned, path.stat().st_size / 1e6
    print(
        f"{kind}: {size:,.0f} MB, learning {learned - began:.0f} s, writing {len(made):,} tokens in {spent:.0f} s "
        f"({size / spent:.1f} MB/s), peak memory {peak_megabytes():,.0f} MiB"
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--megabytes", type=int, default=16)
    options.add_argument("--gigabyte", type=int)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--text")
    options.add_argument("--kinds", default="bpe,characters,words,wordpiece,unigram")
    options.add_argument("--pass-over", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.pass_over:
        one_pass(Path(given.pass_over), given.kinds)
        sys.exit()
    print(f"threads: {os.environ.get('RAYON_NUM_THREADS', 'all')}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        make(path, given.gigabyte or given.megabytes, given.text)
        for kind in given.kinds.split(","):
            if given.gigabyte:
                words = ["-m", "bench.tokenize", "--pass-over", str(path), "--kinds", kind]
                subprocess.run([sys.executable, *words], check=True)
            else:
                race(path, kind, given.rounds)
