"""wonderland tokenize: learns, writes, says what was written; bad input is a sentence and exit code 2."""

import pytest

from wonderland.cli.main import main
from wonderland.data import TokenFile, Tokenizer


@pytest.mark.parametrize("kind", ["bpe", "characters"])
def test_a_text_becomes_tokens(tmp_path, capsys, kind):
    text = "Now is the winter of our discontent.\r\n" * 20
    (tmp_path / "a.txt").write_bytes(text.encode())
    out = tmp_path / "deep" / "out"
    assert main(["tokenize", str(tmp_path / "a.txt"), "--kind", kind, "--vocab", "300", "--out", str(out)]) == 0
    tokenizer, tokens = Tokenizer.load(out), TokenFile(out / "tokens.safetensors")
    assert tokenizer.decode(tokens.tokens) == text.replace("\r\n", "\n")
    assert tokens.tokenizer == tokenizer.digest
    said = capsys.readouterr().out
    assert "20 lines end as in Windows; they are read as plain line ends." in said
    assert f"{len(tokens):,} tokens from 740 bytes of text" in said
    again = tmp_path / "again"
    words = ["--tokenizer", str(out / "tokenizer.json"), "--lines", "--quiet"]
    assert main(["tokenize", str(tmp_path / "a.txt"), "--out", str(again), *words]) == 0
    assert len(TokenFile(again / "tokens.safetensors").documents) == 21
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("content", "words", "says"),
    [
        (b"", [], "There is no text to learn tokens from: every text is empty."),
        (b"ab\0c", [], "is not text: there is a zero byte at offset 2."),
        (b"abc", ["--vocab", "7"], "A vocabulary of kind 'bpe' has from 260 to"),
        (b"abc", ["--sample", "0"], "sample is a number of megabytes, at least 1, not 0."),
        (b"abc", ["--kind", "byte"], "There is no kind 'byte'. Known are characters, words, bpe, wordpiece, unigram. See: "),
    ],
)  # fmt: skip
def test_bad_input(tmp_path, capsys, content, words, says):
    (tmp_path / "a.txt").write_bytes(content)
    assert main(["tokenize", str(tmp_path / "a.txt"), "--out", str(tmp_path / "out"), *words]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_options_of_training_are_refused_with_a_tokenizer(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("one two three " * 50)
    base = ["tokenize", str(tmp_path / "a.txt"), "--out", str(tmp_path / "out"), "--quiet"]
    assert main([*base, "--kind", "words"]) == 0
    words = ["--tokenizer", str(tmp_path / "out" / "tokenizer.json")]
    for name, *value in (("kind", "words"), ("vocab", "100"), ("lowercase",)):
        assert main([*base, *words, f"--{name}", *value]) == 2
        told = f"wonderland: --{name} is for tokens that are to be learned, and --tokenizer names those of a file."
        assert capsys.readouterr().err.strip() == told
