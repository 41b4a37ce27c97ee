"""Tokenizers: every kind, the standard file, foreign files, damaged files, streaming output."""

import json
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.core import WonderlandError
from wonderland.data import Tokenizer
from wonderland.data.text import vocabulary

TEXT = [
    "The quick brown fox jumps over the lazy dog.\n\nIt did so twice, they say; it was seen.",
    "Ein Käfer läuft über die Straße. 漢字 и кириллица 🙂 12345 ...",
] * 3
KINDS = ("characters", "words", "bpe", "wordpiece", "unigram")


@pytest.fixture(scope="module")
def made():
    return {kind: Tokenizer.train(TEXT, kind=kind, vocab=400) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_trains_saves_and_loads_everywhere(made, kind, tmp_path):
    from tokenizers import Tokenizer as Package
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    ours = made[kind]
    assert ours.kind == kind
    ours.save(tmp_path / "t.json")
    ours.save(tmp_path)
    ids = [ours.encode(text) for text in TEXT]
    assert ids == ours.encode_batch(TEXT) == [array.tolist() for array in ours.arrays(TEXT)]
    assert max(map(max, ids)) < ours.vocab
    again = Tokenizer.load(tmp_path / "t.json")
    assert again.encode_batch(TEXT) == ids
    assert again.digest == ours.digest == Tokenizer.load(tmp_path).digest
    package = Package.from_file(str(tmp_path / "t.json"))
    assert [package.encode(text, add_special_tokens=False).ids for text in TEXT] == ids
    for theirs in (
        PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "t.json")),
        AutoTokenizer.from_pretrained(tmp_path),
    ):
        assert [theirs.encode(text, add_special_tokens=False) for text in TEXT] == ids
    assert theirs.pad_token_id == ours.pad == 0
    assert theirs.eos_token_id == ours.end == 3
    assert (ours.unknown, ours.begin, ours.mask, ours.separator) == (1, 2, None, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_streaming_writes_what_decoding_gives(made, kind):
    tokenizer = made[kind]
    draw = random.Random(0)
    pieces = tokenizer.pieces()
    assert len(pieces) == tokenizer.vocab
    assert all(pieces[i] == b"" for i in tokenizer.specials)
    for length in (0, 1, 2, 50, 400):
        ids = [draw.randrange(tokenizer.vocab) for _ in range(length)]
        writer = tokenizer.writer()
        written = [writer.push(i) for i in ids]
        assert "".join(written) + writer.close() == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=60))
def test_byte_level_tokens_decode_exactly(made, kind, text):
    tokenizer = made[kind]
    if any(0xD800 <= ord(letter) <= 0xDFFF for letter in text):
        return
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(tokenizer.pieces()[i] for i in ids) == text.encode()


def test_a_character_is_never_split(made):
    tokenizer = made["bpe"]
    writer = tokenizer.writer()
    written = [writer.push(i) for i in tokenizer.encode("🙃")]  # not in the training text: four bytes
    assert len(written) > 1
    assert written[:-1] == [""] * (len(written) - 1)
    assert written[-1] == "🙃"


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=40))
def test_characters_by_numpy_are_those_of_the_package(made, text):
    tokenizer = made["characters"]
    if any(0xD800 <= ord(letter) <= 0xDFFF for letter in text):
        return
    assert tokenizer.encode(text) == tokenizer._inner.encode(text, add_special_tokens=False).ids


def test_characters_keep_the_most_frequent():
    tokenizer = Tokenizer.train("aaabbc", kind="characters", vocab=3, specials=["<unk>"])
    assert [tokenizer.token(i) for i in range(tokenizer.vocab)] == ["<unk>", "a", "b"]
    assert tokenizer.encode("abcx") == [1, 2, 0, 0]
    bare = Tokenizer.train("ab", kind="characters", specials=[])
    assert bare.unknown is None
    assert bare.encode("axb") == [0, 1] == bare._inner.encode("axb").ids


def test_special_tokens_in_a_text_are_text(made):
    tokenizer = made["bpe"]
    plain = tokenizer.encode("a</s>b")
    assert tokenizer.end not in plain
    assert tokenizer.decode(plain) == "a</s>b"
    assert tokenizer.encode("a</s>b", specials=True) == [tokenizer.id("a"), tokenizer.end, tokenizer.id("b")]


def test_learning_is_the_same_each_time(made):
    for kind in ("characters", "words", "bpe"):
        assert Tokenizer.train(iter(TEXT), kind=kind, vocab=400).digest == made[kind].digest


def test_lowercase():
    for kind in KINDS:
        tokenizer = Tokenizer.train(TEXT, kind=kind, vocab=400, lowercase=True)
        assert tokenizer.encode("THE FOX") == tokenizer.encode("the fox"), kind


def bert(tmp_path):
    from transformers import BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(vocab=str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def test_a_folder_of_transformers(tmp_path):
    tokenizer = Tokenizer.load(bert(tmp_path))
    assert tokenizer.encode("The cats sat.") == [5, 6, 7, 8, 9]
    assert tokenizer.encode("The cats sat.", add_special_tokens=True) == [2, 5, 6, 7, 8, 9, 3]
    found = (tokenizer.pad, tokenizer.unknown, tokenizer.begin, tokenizer.mask, tokenizer.separator)
    assert found == (0, 1, 2, 4, 3)
    assert tokenizer.pieces()[5:8] == [b" the", b" cat", b"s"]


def test_saved_truncation_and_padding_are_ignored(made):
    saved = json.loads(made["bpe"].to_json())
    saved["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    saved["padding"] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                        "pad_type_id": 0, "pad_token": "<pad>"}  # fmt: skip
    assert Tokenizer.from_json(saved).encode(TEXT[0]) == made["bpe"].encode(TEXT[0])


def test_byte_fallback_and_metaspace():
    saved = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
             "decoder": {"type": "Sequence", "decoders": [
                 {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                 {"type": "Fuse"}]},
             "model": {"type": "BPE", "vocab": {"▁a": 0, "b": 1, "<0xC3>": 2, "<0xA9>": 3}, "merges": []}}  # fmt: skip
    tokenizer = Tokenizer.from_json(saved)
    assert tokenizer.kind == "other"
    assert tokenizer.pieces() == [b" a", b"b", b"\xc3", b"\xa9"]
    writer = tokenizer.writer()
    assert writer.extend([0, 1, 2, 3]) + writer.close() == tokenizer.decode([0, 1, 2, 3]) == " abé"


DAMAGED = {
    "not json": ("{", "This is not the JSON of a tokenizer: it is damaged or not JSON at all."),
    "a list": ("[1]", "This is not the JSON of a tokenizer: it has no model with a vocabulary."),
    "deep": ("[" * 100_000, "This is not the JSON of a tokenizer: it is damaged or not JSON at all."),
    "no model": ('{"model": {}}', "This is not the JSON of a tokenizer: it has no model with a vocabulary."),
    "added": (
        '{"model": {"vocab": {}}, "added_tokens": [1]}',
        "This is not the JSON of a tokenizer: its added tokens are damaged.",
    ),
    "huge id": (
        '{"model": {"type": "BPE", "vocab": {"a": 99999999}, "merges": []}}',
        "This tokenizer has ids outside of 0 to 299,999: it is damaged.",
    ),
    "gap": (
        '{"model": {"type": "BPE", "vocab": {"a": 7}, "merges": []}}',
        "This tokenizer has 1 tokens with ids up to 7: ids must have no gaps.",
    ),
    "unknown model": (
        '{"model": {"type": "Own", "vocab": {"a": 0}}}',
        "This tokenizer is not read: model is of type 'Own'. Known are BPE, Unigram, WordPiece, WordLevel.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file(tmp_path, name):
    text, says = DAMAGED[name]
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    with pytest.raises(WonderlandError, match="^" + re.escape(f"{path} cannot be used: {says}")):
        Tokenizer.load(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(WonderlandError, match="^" + re.escape(f"{tmp_path / 'tokenizer.json'} is missing.") + "$"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(WonderlandError, match=r"is not a tokenizer: it is not UTF-8 text\.$"):
        Tokenizer.load(tmp_path)
    with (tmp_path / "tokenizer.json").open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(
        WonderlandError,
        match=r"has 65 MiB; the limit is 64 MiB\. If you trust it, raise the limit: WONDERLAND_LIMITS=tokenizer_bytes=65MiB\.$",
    ):
        Tokenizer.load(tmp_path)


def test_errors_of_train():
    def says(text, *args, **named):
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            Tokenizer.train(*args, **named)

    for kind in KINDS:
        says("There is no text to learn tokens from: every text is empty.", ["", ""], kind=kind)
    says("There are no tokens of kind 'byte'. Known are characters, words, bpe, wordpiece, unigram.", "a", kind="byte")
    says("A vocabulary of kind 'bpe' has from 260 to 300,000 tokens (256 bytes and the special tokens), not 100.", "a",
         vocab=100)  # fmt: skip
    says("Tokens of kind 'words' need '<unk>' among the special tokens, for words that are not in the vocabulary.", "a", kind="words",
         specials=[])  # fmt: skip
    says("Special tokens are different names, none of them empty.", "a", specials=["<s>", "<s>"])
    says("A tokenizer is trained on texts, and 3 is of type int.", [3])
    says("The text holds half of a character (a lone surrogate) at position 1: it is damaged.", "a\ud800",
         kind="characters")  # fmt: skip


def test_errors_of_encode_and_decode(made):
    def says(text, call):
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            call()

    for kind, tokenizer in made.items():
        last = tokenizer.vocab
        says(
            f"Token {last} is not in the vocabulary: tokens are 0 to {last - 1}.",
            lambda t=tokenizer, i=last: t.decode([i]),
        )
        says(
            f"Token {last} is not in the vocabulary: tokens are 0 to {last - 1}.",
            lambda t=tokenizer, i=last: t.writer().push(i),
        )
        says("A tokenizer reads text, and b'a' is of type bytes.", lambda t=tokenizer: t.encode(b"a"))
        says(
            "The text holds half of a character (a lone surrogate) at position 1: it is damaged.",
            lambda t=tokenizer: t.encode("a\ud800"),
        )
        assert tokenizer.encode("") == [], kind
    says(f"There is no token 'zzz' in this vocabulary of {made['bpe'].vocab}.", lambda: made["bpe"].id("zzz"))


def test_without_the_package(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("wonderland.core.errors.importlib.import_module", missing)
    with pytest.raises(
        WonderlandError, match=r"^tokenizers is needed to cut text into tokens: pip install 'wonderland\[text\]'\.$"
    ):
        Tokenizer.train("abc")


def test_code_points():
    assert vocabulary.code_points("a🙂").tolist() == [97, 0x1F642]
    assert vocabulary.code_points("").dtype == np.int64
