"""Mutated tokenizers. `python -m tests.fuzz.tokenizers FIRST COUNT` prints what did not hold."""

import base64
import contextlib
import copy
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.fuzz.mutate import dumps, mutate_bytes, mutate_json_text, mutate_json_value
from tests.fuzz.worker import reset_peak, resident
from wonderland.core import WonderlandError
from wonderland.data import Tokenizer

TEXTS = ["the fox ran over the hill and back home", "a small town by the sea", "42 boats"] * 5
ODD = [
    "the fox and a whale",
    "",
    " " * 300,
    "aaaa" * 300,
    "é\u0301ﬁ🙃\n\t",
    "<unk></s>",
    "\x00\u202e\ufeff" * 20,
    "a" * 5000 + "!",
]
SLOTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
# Parts as published tokenizers have them, put into a learned one so that they are mutated too.
PARTS: dict[str, list[dict[str, Any]]] = {
    "normalizer": [
        {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Strip", "strip_left": True, "strip_right": True}]},
        {"type": "Nmt"}, {"type": "ByteLevel"}, {"type": "NFKC"},
    ],
    "pre_tokenizer": [
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}| ?\p{L}+|\s+(?!\S)|\s+"}, "behavior": "Isolated", "invert": False},
        {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "FixedLength", "length": 5}]},
        {"type": "Sequence", "pretokenizers": [{"type": "Punctuation", "behavior": "MergedWithNext"}, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
        {"type": "UnicodeScripts"}, {"type": "CharDelimiterSplit", "delimiter": " "}, {"type": "BertPreTokenizer"},
    ],
    "post_processor": [
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
         "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]}}},
        {"type": "BertProcessing", "sep": ["</s>", 3], "cls": ["<s>", 2]},
        {"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": False}, {"type": "RobertaProcessing", "sep": ["</s>", 3], "cls": ["<s>", 2], "trim_offsets": True, "add_prefix_space": True}]},
    ],
    "decoder": [
        {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
        {"type": "BPEDecoder", "suffix": "</w>"}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Metaspace", "replacement": "▁"},
    ],
}  # fmt: skip
# What the native library is known to trust: patterns, maps, lengths, growth.
TRAPS: tuple[dict[str, Any], ...] = (
    {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
    {"type": "Split", "pattern": {"Regex": r"(?<=a)\1(?=b)"}, "behavior": "Removed", "invert": True},
    {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False},
    {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000},
    {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 30}] * 3},
    {"type": "Replace", "pattern": {"Regex": ""}, "content": "ab"},
    {"type": "Strip", "content": " ", "start": 10**12, "stop": 10**12},
    {"type": "FixedLength", "length": 0},
    {"type": "Prepend", "prepend": ""},
    {"type": "Metaspace", "replacement": "ab", "prepend_scheme": "sometimes", "split": 1},
    {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<none>", "type_id": 0}}],
        "pair": [],
        "special_tokens": {},
    },
)


def subjects() -> list[dict[str, Any]]:
    """One tokenizer of each kind, and some with parts of published ones."""
    kinds = ("characters", "words", "bpe", "wordpiece", "unigram")
    learned = [json.loads(Tokenizer.train(iter(TEXTS), kind=kind, vocab=300).to_json()) for kind in kinds]
    return learned + [{**learned[i % 5], slot: part} for slot, parts in PARTS.items() for i, part in enumerate(parts)]


def mutated(whole: list[dict[str, Any]], draw: random.Random) -> tuple[Any, str]:
    """The content of a tokenizer.json with something changed, as a value or as bytes; and how."""
    saved = copy.deepcopy(draw.choice(whole))
    way = draw.randrange(10)
    if way < 3:  # the parts, which are few beside the tokens of the vocabulary
        slot = draw.choice([*SLOTS, "added_tokens", "truncation", "padding"])
        changed, words = mutate_json_value({slot: saved.get(slot)}, draw)
        return ({**saved, **changed} if isinstance(changed, dict) else changed), words
    if way == 3:
        return {
            **saved,
            **{slot: draw.choice([*PARTS[slot], *TRAPS]) for slot in draw.sample(SLOTS, draw.choice([1, 2, 4]))},
        }, "other parts"
    if way == 4:
        return _model(saved, whole, draw)
    if way == 5:
        slot = draw.choice(SLOTS)
        map_ = base64.b64encode(draw.randbytes(draw.choice([0, 3, 4, 8, 400]))).decode()
        part = draw.choice([{"type": "Precompiled", "precompiled_charsmap": map_}, *TRAPS])
        key, copies = draw.choice(["normalizers", "pretokenizers", "processors", "decoders"]), draw.choice([1, 1, 2])
        for _ in range(draw.choice([1, 2, 5, 10] if copies == 2 else [1, 2, 5, 70])):
            part = {"type": "Sequence", key: [part] * copies}
        return {**saved, slot: part}, f"{slot}: a trap in sequences"
    if way == 6:
        return mutate_json_text(json.dumps(saved).encode(), draw)
    if way == 7:
        return mutate_bytes(json.dumps(saved, ensure_ascii=draw.random() < 0.5).encode(), draw)
    return mutate_json_value(saved, draw)


def _model(saved: dict[str, Any], whole: list[dict[str, Any]], draw: random.Random) -> tuple[Any, str]:
    """The model and its vocabulary, merges and added tokens."""
    model, vocab = saved["model"], saved["model"]["vocab"]
    names = list(vocab) if isinstance(vocab, dict) else [entry[0] for entry in vocab]
    name, other = draw.choice(names), draw.choice(names)
    size = draw.choice([1000, 250_000])

    def scored(score: Any) -> None:
        model["vocab"] = (
            [[entry[0], score if entry[0] == name else entry[1]] for entry in vocab]
            if isinstance(vocab, list)
            else {n: score if n == name else i for n, i in vocab.items()}
        )

    ways: dict[str, Any] = {
        "another model's type": lambda: model.update(type=draw.choice(["BPE", "Unigram", "WordPiece", "WordLevel", "", "bpe", None])),
        "another model": lambda: saved.update(model=draw.choice(whole)["model"]),
        "a score or id": lambda: scored(draw.choice([0, -1, 1e308, -1e308, float("nan"), 2**31, 2**32, 2**64, "0", None, True, 1.0])),
        "dropout": lambda: model.update(dropout=draw.choice([0.5, 1.0, 0.0, -1, float("nan")])),
        "merges": lambda: model.update(merges=[draw.choice([[name, other], f"{name} {other}", [name], "a", 3, [name, other, name], ["no", "such"]])] * draw.choice([1, 3, 50_000])),
        "a large vocabulary": lambda: model.update(vocab={f"t{i}": i for i in range(size)} if isinstance(vocab, dict) else [[f"t{i}", -1.0] for i in range(size)]),
        "a long token": lambda: model.update(vocab={**vocab, "a" * 1_000_000: len(vocab)} if isinstance(vocab, dict) else [*vocab, ["a" * 1_000_000, 0.0]]),
        "an empty vocabulary": lambda: model.update(vocab=type(vocab)()),
        "an empty token": lambda: model.update(vocab={**vocab, "": len(vocab)} if isinstance(vocab, dict) else [*vocab, ["", 0.0]]),
        "a token twice": lambda: model.update(vocab={**vocab, f"{name}x": vocab[name]} if isinstance(vocab, dict) else [*vocab, vocab[0]]),
        "flags": lambda: model.update({key: draw.choice([True, False, None, 1]) for key in ("byte_fallback", "fuse_unk", "ignore_merges")}),
        "prefix and suffix": lambda: model.update({key: draw.choice(["", "##", "é", "x" * 500, None]) for key in ("continuing_subword_prefix", "end_of_word_suffix")}),
        "unknown token": lambda: model.update(unk_token=draw.choice([name, "", "no such", None, "<unk>"]), unk_id=draw.choice([0, 1, len(names), 10**9, -1, None])),
        "longest word": lambda: model.update(max_input_chars_per_word=draw.choice([0, 1, 10**9, -1])),
        "many added tokens": lambda: saved.update(added_tokens=[{"id": len(names) + i, "content": f"<{i}>", "special": bool(i % 2)} for i in range(draw.choice([10, 9000, 200_000]))]),
        "odd added tokens": lambda: saved.update(added_tokens=[{"id": len(names), "content": draw.choice(["", " ", name, "a", "\n", "\x00", "é"]), **{key: draw.random() < 0.5 for key in ("single_word", "lstrip", "rstrip", "normalized", "special")}}]),
    }  # fmt: skip
    way = draw.choice(sorted(ways))
    ways[way]()
    return saved, f"model: {way}"


def use(content: Any, folder: Path) -> None:
    """What a user does with a tokenizer.json."""
    path = folder / "tokenizer.json"
    path.write_bytes(content if isinstance(content, bytes) else dumps(content))
    tokenizer = Tokenizer.load(path)
    for odd in ODD:
        tokenizer.decode(tokenizer.encode(odd, add_special_tokens=True, specials=True))
        tokenizer.decode(tokenizer.encode(odd))
    tokenizer.pieces()
    writer = tokenizer.writer()
    for i in tokenizer.encode("the fox"):
        writer.push(i)
    repr(
        (
            tokenizer,
            tokenizer.kind,
            tokenizer.specials,
            tokenizer.surrounding_tokens,
            tokenizer.pad,
            tokenizer.unknown,
            tokenizer.digest,
        )
    )


def failures(seeds: Iterable[int]) -> list[str]:
    """Mutations that were neither read nor refused in a sentence, within a second and 200 MB."""
    found, whole = [], subjects()
    with tempfile.TemporaryDirectory() as folder:
        for tokenizer in whole:
            with contextlib.suppress(WonderlandError):  # not every part goes with every vocabulary
                use(tokenizer, Path(folder))
        for seed in seeds:
            value, words = mutated(whole, random.Random(seed))
            if not isinstance(value, bytes):
                value = dumps(value)
            reset_peak()
            before, began = resident("VmRSS"), time.process_time()
            try:
                use(value, Path(folder))
            except WonderlandError as error:
                if any(not (letter.isprintable() or letter in "\n\t") for letter in str(error)):
                    found.append(f"seed {seed} ({words[:300]}): control characters in {str(error)!r}")
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                found.append(f"seed {seed} ({words[:300]}): {error!r}")
            seconds, taken = time.process_time() - began, resident("VmHWM") - before
            if seconds > 1 or taken > 200:
                found.append(f"seed {seed} ({words[:300]}): {seconds:.1f} s and {taken:.0f} MB")
    return found


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for begin in range(first, first + count, 500):
        for failure in failures(range(begin, min(begin + 500, first + count))):
            print(json.dumps(failure), flush=True)
        print(f"{begin + 500 - first} done", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
