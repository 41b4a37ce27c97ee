"""Text from files: what is read, what is repaired and counted, what is refused."""

import gzip
import re

import pytest

from wonderland.core import WonderlandError
from wonderland.data import Tokenizer, read_documents
from wonderland.data.text import sources
from wonderland.data.text.sources import cut


def documents(path, **named):
    return list(read_documents(path, **named).documents())


def refuses(text, call):
    with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
        call()


def test_files_folders_and_lines(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n\nthree")
    assert documents(tmp_path / "a.txt") == ["one\ntwo\n\nthree"]
    assert documents(tmp_path / "a.txt", lines=True) == ["one", "two", "three"]
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("zwei ä".encode()))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c10.md").write_text("ten")
    (tmp_path / "sub" / "c9.md").write_text("nine")
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\0")
    (tmp_path / ".hidden.txt").write_text("no")
    found = read_documents(tmp_path)
    assert list(found.documents()) == ["one\ntwo\n\nthree", "zwei ä", "nine", "ten"]
    assert [finding.text for finding in found.findings] == ["1 file is no text by its name and left out."]


def test_json_lines_and_columns(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x\\ny", "n": 1}\n\n{"text": "z"}\n"plain"\n')
    assert documents(tmp_path / "a.jsonl") == ["x\ny", "z", "plain"]
    (tmp_path / "b.csv").write_text('n,body,title\n1,"two, words\nand a line",t\n2,next,t\n')
    assert documents(tmp_path / "b.csv") == ["two, words\nand a line", "next"]
    assert documents(tmp_path / "b.csv", column="title") == ["t", "t"]
    (tmp_path / "c.tsv").write_text("go .\tva !\nhi .\tsalut !\n")
    assert documents(tmp_path / "c.tsv", column="va !") == ["salut !"]


def test_line_ends_marks_and_scripts(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\ntwo\r\n漢字\r🙂".encode())
    found = read_documents(path)
    assert list(found.documents()) == ["one\ntwo\n漢字\n🙂"]
    assert [(finding.text, finding.repair) for finding in found.findings] == [
        ("2 lines end as in Windows; they are read as plain line ends.", False)
    ]


def test_line_ends_and_characters_across_blocks(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    text = "añ\r\n漢🙂\r" * 50
    path.write_bytes(text.encode())
    for block in (1, 2, 3, 5, 7):
        monkeypatch.setattr(sources, "BLOCK_SIZE", block)
        found = read_documents(path)
        assert "".join(found.documents()) == text.replace("\r\n", "\n").replace("\r", "\n")
        assert found.crlf_lines == 50


def test_a_few_broken_bytes_are_counted(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"caf\xe9 ol\xc3\xa9 \xf0\x9f")
    for block in (1, 4, 1 << 20):
        monkeypatch.setattr(sources, "BLOCK_SIZE", block)
        found = read_documents(path)
        assert "".join(found.documents()).startswith("caf\ufffd olé \ufffd")
        assert found.findings[0].text == (
            "3 bytes are no UTF-8 text and read as U+FFFD (first: byte 0xe9 at offset 3 of a.txt)."
        )
        assert found.findings[0].repair
    refuses(
        f"{path} is not UTF-8 text: byte 0xe9 at offset 3. Save it as UTF-8, for instance: "
        "iconv -f CP1252 -t UTF-8 a.txt > utf8.txt",
        lambda: documents(path, strict=True),
    )


def test_errors_to_the_word(tmp_path):
    latin = tmp_path / "latin.txt"
    latin.write_bytes("été à la forêt ".encode("latin-1") * 20)
    refuses(
        f"{latin} is not UTF-8 text: byte 0xe9 at offset 0. Save it as UTF-8, for instance: "
        "iconv -f CP1252 -t UTF-8 latin.txt > utf8.txt",
        lambda: documents(latin),
    )
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"abc\0def")
    refuses(f"{binary} is not text: there is a zero byte at offset 3.", lambda: documents(binary))
    wide = tmp_path / "wide.txt"
    wide.write_bytes("hi".encode("utf-16"))
    refuses(f"{wide} is UTF-16 text. Save it as UTF-8.", lambda: documents(wide))
    refuses(
        f"There is no file or folder {tmp_path / 'latn.txt'}. Did you mean 'latin.txt'?",
        lambda: documents(tmp_path / "latn.txt"),
    )
    (tmp_path / "empty").mkdir()
    refuses(
        f"{tmp_path / 'empty'} holds no text files (.txt, .text, .md, .rst, .log, .tex).",
        lambda: documents(tmp_path / "empty"),
    )
    (tmp_path / "empty" / "x.png").write_bytes(b"")
    refuses(
        f"{tmp_path / 'empty'} holds no text files (.txt, .text, .md, .rst, .log, .tex); 1 file is of another kind.",
        lambda: documents(tmp_path / "empty"),
    )
    torn = tmp_path / "torn.txt.gz"
    torn.write_bytes(gzip.compress(b"abc" * 1000)[:20])
    refuses(f"{torn} is not a whole gzip file: it is damaged or cut short.", lambda: documents(torn))
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"text": "a"}\n{"txt": "b"}\n')
    refuses(
        f"{lines}: line 2 has no field 'text': name the one that holds the text with the option column. It has 'txt'.",
        lambda: documents(lines),
    )
    refuses(f"{lines}: line 1 has no field 'txet'. Did you mean 'text'?", lambda: documents(lines, column="txet"))
    lines.write_text('{"text": 3}\n')
    refuses(f"{lines}: line 1 has no text in 'text', but 3.", lambda: documents(lines))
    lines.write_text("[1]\n")
    refuses(f"{lines}: line 1 holds no object and no text. Write one object a line.", lambda: documents(lines))
    lines.write_text("{\n")
    with pytest.raises(WonderlandError, match=r"line 1 is not valid JSON \(Expecting property name"):
        documents(lines)
    table = tmp_path / "a.csv"
    table.write_text("a,b\n1,2\n")
    refuses(
        f"{table} has no field 'text': name the one that holds the text with the option column. It has 'a', 'b'.",
        lambda: documents(table),
    )
    parquet = tmp_path / "a.parquet"
    parquet.write_bytes(b"")
    refuses(
        f"{parquet}: text is read from text files, JSON lines and CSV, not from Parquet.", lambda: documents(parquet)
    )


@pytest.mark.parametrize("kind", ["bpe", "words", "wordpiece", "characters"])
def test_pieces_cut_no_token(kind):
    text = ("It's  a test...\n\n  indented, \t and so on\n" + "end. " * 5 + "\n") * 20
    tokenizer = Tokenizer.train(text, kind=kind, vocab=300)
    whole = tokenizer.encode(text)
    for size in (7, 20, 64):
        pieces = [piece for piece, _ in cut([text[:100], text[100:]], size)]
        assert "".join(pieces) == text
        assert len(pieces) > 5
        assert [i for piece in pieces for i in tokenizer.encode(piece)] == whole


def test_text_without_a_place_to_cut_is_cut_anyway():
    pieces = list(cut(["漢" * 100], 10))
    assert [len(piece) for piece, _ in pieces] == [40, 40, 20]
    assert [ends for _, ends in pieces] == [False, False, True]
