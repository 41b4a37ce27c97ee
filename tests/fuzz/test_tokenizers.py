"""Mutated tokenizers: read or refused in a sentence, within a second and 200 MB, and what is read cuts texts."""

import json
import random
import time

import pytest

from tests.fuzz import corpus, mutate
from tests.fuzz.worker import reset_peak, resident
from wonderland.core import WonderlandError
from wonderland.data.text.tokenizer import Tokenizer

TEXTS = ["the fox ran over the hill and back home", "a small town by the sea", "42 boats"] * 5
ODD = ["the fox and a whale", "", " " * 300, "aaaa" * 300, "é\u0301ﬁ🙃\n\t", "<unk></s>"]
# Parts as published tokenizers have them, put into a learned one so that they are mutated too.
PARTS = {
    "normalizer": [
        {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    ],
    "pre_tokenizer": [
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}| ?\p{L}+|\s+(?!\S)|\s+"}, "behavior": "Isolated", "invert": False},
        {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "FixedLength", "length": 5}]},
    ],
    "post_processor": [
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
         "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]}}},
        {"type": "BertProcessing", "sep": ["</s>", 3], "cls": ["<s>", 2]},
    ],
    "decoder": [
        {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
    ],
}  # fmt: skip


def subjects() -> list[dict]:
    """One tokenizer of each kind, and some with parts of published ones."""
    learned = [json.loads(Tokenizer.train(iter(TEXTS), kind=kind, vocab=300).to_json()) for kind in
               ("characters", "words", "bpe", "wordpiece", "unigram")]  # fmt: skip
    return learned + [{**learned[i % 5], slot: part} for slot, parts in PARTS.items() for i, part in enumerate(parts)]


def failures(seeds) -> list[str]:
    found, whole = [], subjects()
    for tokenizer in whole:
        Tokenizer.from_json(tokenizer).encode_batch(ODD)
    for seed in seeds:
        draw = random.Random(seed)
        saved = draw.choice(whole)
        if draw.random() < 0.5:  # the parts, which are few beside the tokens of the vocabulary
            slot = draw.choice(["normalizer", "pre_tokenizer", "post_processor", "decoder", "added_tokens"])
            changed, words = mutate.mutate_json_value({slot: saved.get(slot)}, draw)
            value = {**saved, **changed} if isinstance(changed, dict) else changed
        else:
            value, words = mutate.mutate_json_value(saved, draw)
        try:
            text = json.dumps(value)
        except RecursionError:  # nested more deeply than JSON is written
            continue
        reset_peak()
        before, began = resident("VmRSS"), time.process_time()
        try:
            tokenizer = Tokenizer.from_json(text)
            for odd in ODD:
                tokenizer.decode(tokenizer.encode(odd, add_special_tokens=True, specials=True))
                tokenizer.decode(tokenizer.encode(odd))
            tokenizer.pieces()
        except WonderlandError:
            pass
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            found.append(f"seed {seed} ({words[:300]}): {error!r}")
        if time.process_time() - began > 1 or resident("VmHWM") - before > 200:
            found.append(f"seed {seed} ({words[:300]}): too much time or memory")
    return found


@pytest.mark.parametrize(("kind", "path", "value"), corpus.TOKENIZERS)
def test_tokenizers_that_once_failed(kind, path, value):
    saved = json.loads(Tokenizer.train(iter(TEXTS), kind=kind, vocab=300).to_json())
    holder = saved
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    with pytest.raises(WonderlandError):
        Tokenizer.from_json(saved).encode("the fox and a whale")


def test_a_few_mutations():
    assert failures(range(100)) == []


@pytest.mark.slow
def test_many_mutations():
    assert failures(range(10_000, 20_000)) == []
