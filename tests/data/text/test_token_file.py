"""Token files: what is written is what is read, in a bounded stream; damage is seen."""

import re
import subprocess
import sys

import numpy as np
import pytest

from wonderland.core import WonderlandError
from wonderland.data import TokenFile, Tokenizer, read_documents, write_tokens
from wonderland.data.text import sources, token_file

TEXT = "A hare and a tortoise ran a race. The hare slept.\n" * 40


def pieces(*texts):
    return [(text, True) for text in texts]


def test_documents_and_their_bytes(tmp_path):
    tokenizer = Tokenizer.train(TEXT, kind="characters")
    made = write_tokens(pieces("hare", "", "ran ä"), tokenizer, tmp_path / "t", about={"name": "x"})
    assert made.documents.tolist() == [0, 5, 11]
    assert made.bytes.tolist() == [0, 4, 10]
    assert made.document(0).tolist() == [*tokenizer.encode("hare"), tokenizer.end]
    assert made.document(1).tolist() == [*tokenizer.encode("ran ä"), tokenizer.end]
    assert made.tokens.dtype == np.uint16
    assert isinstance(made.tokens, np.memmap)
    made.check()
    assert repr(made) == f"<TokenFile t: 11 tokens, 2 documents, vocabulary {tokenizer.vocab}>"
    bare = write_tokens(pieces("hare", "ran"), tokenizer, tmp_path / "u", end=False)
    assert bare.tokens.tolist() == tokenizer.encode("hareran")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t", "u"]


def test_the_file_is_safetensors(tmp_path):
    from safetensors.numpy import load_file

    tokenizer = Tokenizer.train(TEXT, kind="characters")
    made = write_tokens(pieces("a", "ab", "abc"), tokenizer, tmp_path / "t.safetensors")
    found = load_file(tmp_path / "t.safetensors")
    assert (found["tokens"] == made.tokens).all()
    assert (found["documents"] == made.documents).all()


def test_a_large_vocabulary_takes_32_bits(tmp_path, monkeypatch):
    tokenizer = Tokenizer.train(TEXT, kind="characters")
    monkeypatch.setattr(tokenizer, "vocab", 70_000)
    assert write_tokens(pieces("hare"), tokenizer, tmp_path / "t").tokens.dtype == np.uint32


def test_tokenizing_in_blocks_equals_tokenizing_the_whole_text(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    tokenizer = Tokenizer.train(TEXT, kind="bpe", vocab=300)
    monkeypatch.setattr(token_file, "BATCH", 100)
    monkeypatch.setattr(sources, "PIECE_SIZE", 64)
    progress = []
    made = write_tokens(read_documents(path), tokenizer, tmp_path / "t", end=False, progress=progress.append)
    assert made.tokens.tolist() == tokenizer.encode(TEXT)
    assert progress[-1] == len(TEXT) == made.bytes[-1]


def test_nothing_is_left_of_a_failed_write(tmp_path):
    tokenizer = Tokenizer.train(TEXT, kind="characters")

    def broken():
        yield "abc", True
        raise WonderlandError("torn")

    with pytest.raises(WonderlandError, match=r"^torn$"):
        write_tokens(broken(), tokenizer, tmp_path / "t")
    with pytest.raises(WonderlandError, match=r"^There is no text to write as tokens: every document is empty\.$"):
        write_tokens(pieces("", ""), tokenizer, tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_refused(tmp_path):
    tokenizer = Tokenizer.train(TEXT, kind="characters")
    path = tmp_path / "t"
    write_tokens(pieces("hare"), tokenizer, path)
    whole = path.read_bytes()
    start = 8 + token_file.HEADER

    def says(text, data, call):
        path.write_bytes(data)
        with pytest.raises(WonderlandError, match="^" + re.escape(f"{path}{text}") + "$"):
            call(TokenFile(path))

    says(" is not a safetensors file: it is damaged, cut short or not ours.", whole[:-3], len)
    says(" is not a token file: it is damaged or not ours.", whole.replace(b'"vocab"', b'"cabov"'), len)
    says(" is not a token file: it is damaged or not ours.", whole.replace(b'"U16"', b'"U32"'), len)
    last = tokenizer.vocab - 1
    outside = whole[:start] + (last + 1).to_bytes(2, "little") + whole[start + 2 :]
    says(f": token {last + 1} at position 0 is not in the vocabulary of {last + 1}.", outside, TokenFile.check)
    other = whole[:start] + b"\0\0" + whole[start + 2 :]
    says(" was changed since it was written: its digest does not match.", other, TokenFile.check)
    path.write_bytes(whole)
    with pytest.raises(WonderlandError, match=r"^There is no document 1: t has 1\.$"):
        TokenFile(path).document(1)


@pytest.mark.slow
def test_a_large_file_takes_little_memory(tmp_path):
    path = tmp_path / "a.txt"
    with path.open("w") as file:
        for _ in range(60_000):
            file.write(TEXT)
    code = (
        "import sys; from wonderland.core import peak_megabytes\n"
        "from wonderland.data import Tokenizer, read_documents, write_tokens\n"
        "t = Tokenizer.train('abcdefghijklmnopqrstuvwxyzATH. \\n', kind='characters')\n"
        "before = peak_megabytes()\n"
        "write_tokens(read_documents(sys.argv[1]), t, sys.argv[1] + '.tokens')\n"
        "print(peak_megabytes() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert path.stat().st_size > 100e6
    assert float(done.stdout) < 120
