"""The grammar of tokenizer.json: published forms are read, and what panics, never returns or takes all memory is refused by name."""

import base64
import json
import struct
import time

import pytest

from wonderland.core import WonderlandError
from wonderland.data.text.charsmap import check_charsmap
from wonderland.data.text.split_pattern import check_pattern
from wonderland.data.text.tokenizer import Tokenizer

UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PUBLISHED = {
    "GPT-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "LLaMA 3": SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SHORT}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SHORT}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "DeepSeek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "CLIP": r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "BLOOM": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "XLM-R": " {2,}",
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_patterns_of_published_tokenizers_are_read_and_need_linear_time(name):
    check_pattern(PUBLISHED[name])
    saved = json.loads(Tokenizer.train(["the fox ran"], kind="bpe", vocab=300).to_json())
    saved["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": PUBLISHED[name]}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}  # fmt: skip
    tokenizer = Tokenizer.from_json(saved)
    for letter in ("a", "A", " ", "\n", "1", "!", " a", "Aa"):
        text = letter * (20_000 // len(letter))
        began = time.process_time()
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "a+a+b", "a*b", r"(a)\1+", "(a{500}){500}", "(?<=x)a+", r"\s+$", r"\s+(?!\S)", "|a", "", "(", "[", "a)", "a{,}", "\\",
     "[[:alpha:]]", "(?:" * 2000, "a" * 5000, r"\X+", "a++b", "(?=a*b)a"],
)  # fmt: skip
def test_patterns_that_may_need_more_are_refused(pattern):
    with pytest.raises(WonderlandError):
        check_pattern(pattern)


def test_families_of_transformers_are_read(tmp_path):
    """The forms that transformers writes for BERT, GPT-2, LLaMA and T5, with equal tokens."""
    hf = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    letters = {
        letter: i
        for i, letter in enumerate(
            ["<unk>", "<s>", "</s>", "▁", *"theca", "th", "the", *(f"<0x{i:02X}>" for i in range(256))]
        )
    }
    made = {
        "bert": hf.BertTokenizer(vocab=str(tmp_path / "vocab.txt")),
        "gpt2": hf.GPT2Tokenizer(vocab={"t": 0, "h": 1, "th": 2, "Ġ": 3, "<|endoftext|>": 4}, merges=[("t", "h")]),
        "llama": hf.LlamaTokenizer(vocab=letters, merges=[("t", "h"), ("th", "e")]),
        "t5": hf.T5Tokenizer(vocab=[("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁the", -3.0), ("t", -4.0), ("h", -4.0), ("e", -4.0)]),
    }  # fmt: skip
    for name, theirs in made.items():
        theirs.save_pretrained(tmp_path / name)
        ours = Tokenizer.load(tmp_path / name)
        for text in ("the the cat", "th  the", "thé"):
            assert ours.encode(text, add_special_tokens=True) == theirs(text)["input_ids"], name


def trie(changes: dict[str, str]) -> tuple[list[int], bytes]:
    """A double-array trie with a block of 256 units for each node."""
    texts, units, blocks = b"", [0] * 256, {b"": 0}
    units[0] = 0
    for key, text in changes.items():
        path = b""
        for byte in key.encode():
            here = blocks[path]
            path += bytes([byte])
            if path not in blocks:
                blocks[path] = len(units)
                units += [0] * 256
                place = here + byte
                units[place] = byte | ((place ^ blocks[path]) << 10)
        place = blocks[path[:-1]] + path[-1]
        units[place] |= 1 << 8
        units[blocks[path]] = len(texts)
        texts += text.encode() + b"\0"
    return units, texts


def packed(units: list[int], texts: bytes) -> str:
    return base64.b64encode(struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + texts).decode()


def unigram(charsmap: str) -> dict:
    saved = json.loads(Tokenizer.train(["ab fi"], kind="characters", vocab=20).to_json())
    saved["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    return saved


def test_a_precompiled_map_of_characters():
    tokenizer = Tokenizer.from_json(unigram(packed(*trie({"ﬁ": "fi", "Ａ": "a"}))))
    assert tokenizer.encode("ﬁ b") == tokenizer.encode("fi b")
    assert tokenizer._inner.normalizer.normalize_str("ﬁＡ") == "fia"


def test_damaged_maps_of_characters_are_refused():
    units, texts = trie({"ﬁ": "fi"})
    far, beyond, between = list(units), list(units), list(units)
    far[0xEF] |= 0xFFFFF << 10
    leaf = next(i for i in range(256, len(units)) if units[i] >> 8 & 1)
    beyond[leaf ^ units[leaf] >> 10] = 900
    between[leaf ^ units[leaf] >> 10] = 1
    says = "The precompiled character map is damaged: "
    damaged = {
        "not base64!": "it is not base64",
        "AAAA": "its trie is cut short",
        packed(far, texts): "its trie leads out of its array",
        packed(units[:300], texts): "its trie leads out of its array",
        packed(beyond, texts): "it points between or behind its texts",
        packed(between, "é\0".encode()): "it points between or behind its texts",
        packed(units, b"\xff\0"): "its texts are not UTF-8",
        packed(units, b"x" * 100): "one of its texts is longer than 64 bytes",
    }
    for encoded, reason in damaged.items():
        with pytest.raises(WonderlandError) as caught:
            check_charsmap(encoded)
        assert str(caught.value) == f"{says}{reason}."


PARTS = {
    "a pattern": ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
                  "The pattern '(a+)+$' is refused: its alternative '(a+)+$' may take more than linear time."),
    "a template": ("post_processor", {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}], "pair": [], "special_tokens": {}},
                   "This tokenizer is not read: post_processor (TemplateProcessing) names '[X]', which is not described."),
    "no length": ("pre_tokenizer", {"type": "FixedLength", "length": 0},
                  "This tokenizer is not read: pre_tokenizer (FixedLength).length must be a whole number from 1 to 10,000, not 0."),
    "a huge strip": ("decoder", {"type": "Strip", "content": " ", "start": 10**12, "stop": 0},
                     "This tokenizer is not read: decoder (Strip).start must be a whole number from 0 to 1,000, not 1000000000000."),
    "growth": ("normalizer", {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 50}] * 2},
               "This tokenizer is not read: normalizer makes a text up to 2,500 times as long, more than 32."),
    "a long replacement": ("normalizer", {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000},
               f"This tokenizer is not read: normalizer (Replace).content must be text of 0 to 100 characters, not {'a' * 1000!r:.60}."),
    "another part": ("normalizer", {"type": "Lower"}, "This tokenizer is not read: normalizer is of type 'Lower'. Did you mean 'Lowercase'? Known are "),
    "another argument": ("decoder", {"type": "Fuse", "run": "x"}, "This tokenizer is not read: decoder (Fuse) has an argument 'run', which is not known."),
    "depth": ("decoder", {"type": "Sequence", "decoders": [{"type": "Sequence", "decoders": [{"type": "Sequence", "decoders": [{"type": "Sequence", "decoders": [
        {"type": "Sequence", "decoders": []}]}]}]}]}, "This tokenizer is not read: decoder[0][0][0][0] is a sequence that is nested too deeply or damaged."),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_parts_outside_of_the_grammar_are_refused_by_name(name):
    slot, part, message = PARTS[name]
    saved = json.loads(Tokenizer.train(["the fox"], kind="bpe", vocab=270).to_json())
    saved[slot] = part
    with pytest.raises(WonderlandError) as caught:
        Tokenizer.from_json(saved)
    assert str(caught.value).startswith(message)


def test_dropout_unknown_tokens_and_sizes():
    saved = json.loads(Tokenizer.train(["the fox"], kind="bpe", vocab=270).to_json())

    def refused(change):
        changed = json.loads(json.dumps(saved))
        change(changed)
        with pytest.raises(WonderlandError) as caught:
            Tokenizer.from_json(changed)
        return str(caught.value)

    start = "This tokenizer is not read: "
    assert refused(lambda t: t["model"].update(dropout=0.1)) == (
        start + "model (BPE) has dropout=0.1, which cuts a text differently each time."
    )
    assert refused(lambda t: t["model"].update(unk_token="<gone>")) == (
        start + "its unknown token '<gone>' is not in its vocabulary."
    )
    assert refused(lambda t: t.update(command="x")) == start + "it has an entry 'command', which is not known."
    many = {f"t{i}": i for i in range(300_001)}
    seen = 300_001 + len(saved["added_tokens"])
    assert refused(lambda t: t["model"].update(vocab=many, merges=[])) == (
        f"This tokenizer has {seen:,} tokens; the limit is 300,000. If you trust it, raise the limit: "
        f"WONDERLAND_LIMITS=tokenizer_tokens={seen}."
    )
    first = max(saved["model"]["vocab"].values()) + 1
    extra = [{"id": first + i, "content": f"<x{i}>"} for i in range(10_001)]
    assert "added tokens; the limit is 10,000" in refused(lambda t: t["added_tokens"].extend(extra))


def test_learning_takes_time_proportional_to_the_text():
    for text in ("ab" * 15_000, " " * 30_000):
        for kind in ("bpe", "unigram", "wordpiece", "words"):
            began = time.process_time()
            Tokenizer.train([text, "a b"], kind=kind, vocab=500)
            assert time.process_time() - began < 2, kind
